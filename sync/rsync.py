"""A mirror by rsync itself, of a folder here or on another machine."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import IO

from palace.errors import DualwallError, UnreachableError
from sync import mirror
from sync.mirror import Job, Plan, Tick, Tool, argv, change, printable

_INSTALL = {
    "apt-get": "sudo apt-get install rsync",
    "dnf": "sudo dnf install rsync",
    "pacman": "sudo pacman -S rsync",
    "apk": "sudo apk add rsync",
    "zypper": "sudo zypper install rsync",
    "brew": "brew install rsync",
}


def find() -> Tool:
    """The rsync on PATH. Raises DualwallError with the command that installs one."""
    program = shutil.which("rsync")
    if program is None:
        raise DualwallError("There is no rsync on this machine.", _install())
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, errors="replace")
    found = mirror.tool(program, answer.stdout)
    if found is None:
        said = answer.stdout.partition("\n")[0] or f"exit code {answer.returncode}"
        raise DualwallError(f"{program} is no rsync of version 3 or newer, nor openrsync ({said}).", _install())
    return found


def _install() -> str:
    command = next((line for tool, line in _INSTALL.items() if shutil.which(tool)), "Install the package rsync")
    return f'{command}\n  A vault on this machine can do without: mirror = "copy" (or "reflink") in its settings.'


@dataclass(slots=True)
class RsyncMirror:
    """Mirrors by rsync. `lock`: a descriptor that rsync inherits, so that the lock lives as long as any rsync does."""

    job: Job
    lock: int | None
    tool: Tool = field(default_factory=find)

    @property
    def costs(self) -> tuple[str, ...]:
        """What this machine's rsync cannot do."""
        return self.tool.costs

    def plan(self) -> Plan:
        """What a run would do. Raises UnreachableError when the source's root is not there."""
        # Bytes are compared once, in the run itself: they decide what is copied, never what is deleted.
        job = replace(self.job, max_delete=None, checksum=self.job.checksum and self.job.dry_run, dry_run=True)
        return self._run(job, _silent, None)

    def carry_out(self, plan: Plan, tick: Tick) -> Plan:
        """Mirror, and return what was done. The next run completes one that broke off.

        No more is deleted than was planned: what went away since then may be a disk that was taken out.
        Raises UnreachableError and DualwallError when rsync gave up.
        """
        return self._run(replace(self.job, max_delete=plan.removals, dry_run=False), tick, plan.copies)

    def _run(self, job: Job, tick: Tick, total: int | None) -> Plan:
        plan = Plan()
        asides: list[str] = []
        with tempfile.TemporaryFile() as errors:
            with self._rsync(argv(self.tool, job), errors) as process:
                for line in process.stdout or ():
                    found = change(line)
                    if found is None:
                        asides.append(mirror.unescaped(line))
                    else:
                        plan.add(found)
                        tick(plan.copies, total if total is None else max(total, plan.copies))
                code = process.wait()
            errors.seek(0)
            said = [mirror.unescaped(line) for line in errors]
        self._judge(code, said)
        plan.problems += mirror.problems([*said, *(line for line in asides if mirror.is_complaint(line))], job.source)
        return plan

    @contextmanager
    def _rsync(self, arguments: Sequence[str], errors: IO[bytes]) -> Iterator["subprocess.Popen[bytes]"]:
        """A running rsync; it ends when the block does, whatever happens there."""
        # Its messages are read here, so they must be the untranslated ones.
        environment = {**os.environ, "LC_ALL": "C"}
        inherited = () if self.lock is None else (self.lock,)
        with subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            pass_fds=inherited,
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.terminate()

    def _judge(self, code: int, said: Sequence[str]) -> None:
        """Raise what an exit code means, unless the run is done but for single files."""
        source, text = self.job.source, "".join(said)
        words = printable(text.strip().partition("\n")[0]) or f"exit code {code}"
        if any(full in text for full in mirror.FULL):
            where = f"The disk of the mirror {self.job.target} is full: {words}"
            raise DualwallError(where, "Free some space, then sync again.")
        missing = mirror.root_missing(said) if code == mirror.PARTIAL else None
        if missing is not None:
            raise UnreachableError(f"{source} cannot be entered: {missing}. Nothing was deleted.", _AWAY)
        if code not in mirror.PARTLY:
            raise self._gave_up(code, words)

    def _gave_up(self, code: int, words: str) -> DualwallError:
        source = self.job.source
        reason = mirror.REASONS.get(code, f"it ended with exit code {code}")
        if self.job.remote and code in mirror.CONNECTION:
            return UnreachableError(f"{source} cannot be reached: {reason}. {words}", self._try_by_hand())
        return DualwallError(f"rsync gave up on {source}: {reason}. {words}", "The next sync completes the mirror.")

    def _try_by_hand(self) -> str:
        host = self.job.source.partition(":")[0]
        return f"Try it by hand, without a password: ssh -o BatchMode=yes {host} rsync --version"


def _silent(done: int, total: int | None) -> None:
    """Looking is quick; nobody is told."""


_AWAY = "Is the disk mounted, and the folder where the settings say?"
