"""An owner in the background: for programs that ask and must not load the engine themselves.

`dualwall serve --background` is started when nobody owns the store. It answers on the Unix socket alone, and ends by
itself when it has not been asked for a while.
"""

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from dualwall import client
from dualwall.common import Json
from dualwall.questions import Question
from palace import lock
from palace.errors import BusyError, UnreachableError
from palace.settings import Settings

PATIENCE = 60.0
"""Seconds that a question waits for an owner that does not answer yet: a cold start loads the engine and the model."""
_STEP = 0.05


@dataclass(slots=True)
class Owner:
    """Whoever owns the store of these settings; started when nobody does. `config`: the settings' file."""

    settings: Settings
    config: Path
    _child: subprocess.Popen[bytes] | None = field(default=None, init=False)

    @property
    def log(self) -> Path:
        """What the last owner that was started here had to say."""
        return self.settings.data / "owner.log"

    def ask(self, question: Question, reader: str) -> Json:
        """The owner's answer. Raises what the library raises, UnreachableError when no owner can be started."""
        deadline = time.monotonic() + PATIENCE
        while True:
            owner = self.wake()
            answer = client.over_socket(owner.socket, question, reader) if owner and owner.socket else None
            if answer is not None:
                return answer
            if time.monotonic() > deadline:
                raise BusyError(
                    f"The store is owned by {owner or 'a process that is starting'}, which does not answer.",
                    "Wait until it is done, or stop it, then ask again.",
                )
            time.sleep(_STEP)

    def wake(self) -> lock.Holder | None:
        """Who owns the store; when nobody does, one is started and None is returned until it has it."""
        owner = lock.owner(self.settings)
        if owner is None and (self._child is None or self._child.poll() is not None):
            self._check_last()
            self._start()
        return owner

    def _start(self) -> None:
        command = [sys.executable, "-m", "dualwall.cli", "serve", "--background", "--config", str(self.config)]
        self.settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        try:
            # A session of its own: it outlives the client that started it, and a ctrl-c there does not reach it.
            self._child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=descriptor, start_new_session=True
            )
        finally:
            os.close(descriptor)

    def _check_last(self) -> None:
        """Raises UnreachableError when the one that was started failed; one that lost a race for the store did not."""
        code = None if self._child is None else self._child.poll()
        self._child = None
        if code not in (None, 0, BusyError.exit_code):
            raise UnreachableError(
                f"`dualwall serve` could not be started (exit code {code}).", f"What it said is in {self.log}."
            )
