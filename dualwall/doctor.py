"""`dualwall doctor`: everything that a run needs, each line ok, warn or fail with how to mend it."""

import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

import click

from dualwall.common import common, print_json, say
from palace import lock
from palace.configuration import find, load
from palace.errors import BusyError, DualwallError, Exit
from palace.settings import Settings

_LITTLE = 2 * 1024**3
"""Bytes of free disk that make a warning; a tenth of it is a failure."""
_PATIENCE = 3.0
"""Seconds that a server gets to answer."""
_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@dataclass(frozen=True, slots=True)
class Check:
    """One line. `exit`: what a failure makes of the exit code."""

    name: str
    state: Literal["ok", "warn", "fail"]
    message: str
    mend: str = ""
    exit: Exit = Exit.FAILED


@click.command()
@click.option("--prepare-model", is_flag=True, hidden=True, help="Only build the embedding model, if it isn't there.")
@common
def command(*, prepare_model: bool, config: Path | None, as_json: bool) -> Exit:
    """Check settings, vaults, rsync, hardlinks, the model, stores, locks, the clock and the disk."""
    if prepare_model:
        from palace.embedding.model import ensure  # noqa: PLC0415

        ensure(say=say)
        return Exit.DONE
    checks = [Check("settings", "ok", str(find(config))), *examine(load(config))]
    if as_json:
        print_json({"checks": [asdict(check) for check in checks]})
    else:
        for check in checks:
            state = click.style(f"{check.state:<4}", fg=_COLOURS[check.state])
            click.echo(f"{state}  {check.name:<18} {check.message}")
            if check.mend:
                click.echo(f"{'':<25}{check.mend}")
    return max((check.exit for check in checks if check.state == "fail"), default=Exit.DONE)


def examine(settings: Settings) -> Iterator[Check]:
    """Every check, in the order in which a run would meet them; none stops another."""
    yield from _vaults(settings)
    yield from _private(settings)
    for check in (_rsync, _data, _hardlinks, _disk, _model, _locks, _qdrant, _neo4j, _stores, _clock):
        yield from _checked(check, settings)


def _checked(check: Callable[[Settings], Iterator[Check]], settings: Settings) -> Iterator[Check]:
    """What a check finds; an error of it is a finding too."""
    name = check.__name__.strip("_")
    try:
        yield from check(settings)
    except DualwallError as error:
        yield Check(name, "fail", error.message, error.hint, error.exit_code)
    except (OSError, sqlite3.Error) as error:
        yield Check(name, "fail", str(error), "Mend that, then run doctor again.")


def _vaults(settings: Settings) -> Iterator[Check]:
    for name, vault in settings.vaults.items():
        title = f"vault {name}"
        if vault.remote:
            yield Check(title, "ok", f"{vault.source} (on another machine; `dualwall sync --dry-run` tries it)")
        elif not os.access(vault.source, os.R_OK | os.X_OK):
            mend = "Is its disk mounted? Is the source in the settings right?"
            yield Check(title, "fail", f"{vault.source} is not there, or not readable.", mend, Exit.UNREACHABLE)
        else:
            absent = [folder for folder in vault.public if not Path(vault.source, folder).is_dir()]
            yield Check(
                title,
                "warn" if absent else "ok",
                f"{vault.source} has no folder {', '.join(absent)}." if absent else vault.source,
                "Mend `public` in the settings." if absent else "",
            )


def _private(settings: Settings) -> Iterator[Check]:
    for entry in settings.private:
        root = Path(entry.path)
        if entry.in_vault:
            vault, inner = entry.in_vault
            if settings.vaults[vault].remote:
                continue
            root = Path(settings.vaults[vault].source, inner)
        there = root.is_dir()
        mend = "" if there else "Mend its path in the settings; until then its notes stay as they were last read."
        yield Check(
            f"private {entry.cube}", "ok" if there else "warn", f"{root}{'' if there else ' is not there.'}", mend
        )


def _rsync(settings: Settings) -> Iterator[Check]:
    from sync.rsync import find as find_rsync  # noqa: PLC0415

    if not any(vault.mirror == "rsync" for vault in settings.vaults.values()):
        return
    tool = find_rsync()
    version = "openrsync" if tool.openrsync else "rsync " + ".".join(map(str, tool.version))
    yield Check("rsync", "warn" if tool.costs else "ok", f"{tool.program}: {version}", " ".join(tool.costs))


def _data(settings: Settings) -> Iterator[Check]:
    settings.data.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryFile(dir=settings.data):
        pass
    others = settings.data.stat().st_mode & 0o077
    mend = f"It holds private notes: chmod 700 {settings.data}" if others else ""
    yield Check("data", "warn" if others else "ok", str(settings.data), mend)


def _hardlinks(settings: Settings) -> Iterator[Check]:
    """By making one, from the mirror to the palace: asking the file system's name proves nothing."""
    folders = [settings.data / name for name in ("mirror", "palace", "inbox")]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folders[0], prefix=".doctor-") as probe:
        for folder in folders[1:]:
            link = folder / Path(probe.name).name
            try:
                os.link(probe.name, link)
            except OSError as error:
                mend = "The palace is made of copies then, and takes the vault's size again. Put the data folder on one mount."
                yield Check("hardlinks", "warn", f"From {folders[0]} to {folder}: {error.strerror}.", mend)
                return
            link.unlink()
    yield Check("hardlinks", "ok", "mirror, inbox and palace are on one mount")


def _disk(settings: Settings) -> Iterator[Check]:
    free = shutil.disk_usage(settings.data).free
    state: Literal["ok", "warn", "fail"] = "ok" if free > _LITTLE else "warn" if free > _LITTLE // 10 else "fail"
    yield Check(
        "disk", state, f"{free / 1024**3:.1f} GiB free", "" if state == "ok" else "Make room on the data folder's disk."
    )


def _model(settings: Settings) -> Iterator[Check]:
    from palace.embedding import model  # noqa: PLC0415

    embedding = settings.embedding
    if embedding.provider == "openai":
        yield Check("model", "ok", f"{embedding.model} at {embedding.url} (asked when it is needed)")
    elif embedding.model not in model.NAMES:
        yield Check("model", "ok", f"{embedding.model}, by fastembed (loaded when it is needed)")
    elif model.is_built(embedding.vocabulary):
        yield Check("model", "ok", f"{embedding.model} in {model.folder(embedding.vocabulary)}")
    else:
        mend = "The next run builds it, once, from a package of 91 MB: dualwall nightly"
        yield Check("model", "warn", f"{embedding.model} is not built yet.", mend)


def _locks(settings: Settings) -> Iterator[Check]:
    writer, owner = lock.holder(settings), lock.owner(settings)
    yield Check("writer", "ok", f"held by {writer}" if writer else "nobody writes")
    yield Check("owner", "ok", f"held by {owner}" if owner else "nobody has the store open")


def _stores(settings: Settings) -> Iterator[Check]:
    """Opened for a moment, unless somebody owns them or there are none yet."""
    from palace.library import Library  # noqa: PLC0415

    if not settings.catalogue.is_file():
        yield Check("stores", "warn", "There are none yet.", "Run: dualwall nightly")
        return
    try:
        with lock.own(settings, "doctor"):
            library = Library.open(settings)
            try:
                told, points = library.status(), library.vectors.count()
            finally:
                library.close()
    except BusyError:
        yield Check("stores", "ok", "open in the process that owns them")
        return
    waiting = told["pending"]
    message = f"{settings.stores.vectors} with {points} chunks of {told['notes']} notes, {settings.stores.graph}"
    mend = "dualwall ingest goes on with them." if waiting else ""
    yield Check(
        "stores",
        "warn" if waiting else "ok",
        message + (f"; {waiting} wait for their vectors" if waiting else ""),
        mend,
    )


def _qdrant(settings: Settings) -> Iterator[Check]:
    """Whether the server answers to this key; an error of it says how to mend it."""
    if settings.stores.vectors != "qdrant":
        return
    from palace.stores.qdrant_server import Server  # noqa: PLC0415

    asked = settings.stores.qdrant
    with closing(Server(asked, read=_PATIENCE)) as server:
        version = server.version()
        there = server.read("asking", lambda client: client.collection_exists(asked.collection))
        risks = server.warnings()
    held = asked.collection if there else f"{asked.collection} is made by the first night"
    message = f"{asked.url}, version {version}, {held}"
    yield Check("qdrant", "warn" if risks else "ok", message, " ".join(risks))


def _neo4j(settings: Settings) -> Iterator[Check]:
    """Whether the server answers to this password and its database is ours; an error of it says how to mend it."""
    if settings.stores.graph != "neo4j":
        return
    from palace.stores.neo4j_server import Server  # noqa: PLC0415

    asked = settings.stores.neo4j
    with closing(Server(asked)) as server:
        message = f"{asked.url}, version {server.version()}, database {asked.database}"
        risks = server.warnings()
    yield Check("neo4j", "warn" if risks else "ok", message, " ".join(risks))


def _clock(settings: Settings) -> Iterator[Check]:
    now = datetime.now(UTC)
    local = now.astimezone(ZoneInfo(settings.timezone))
    made = datetime.fromtimestamp(Path(__file__).stat().st_mtime, UTC)
    message = f"{local:%Y-%m-%d %H:%M} in {settings.timezone}"
    if now < made:
        yield Check(
            "clock", "fail", f"{message}, which is before this program was installed.", "Set the machine's clock."
        )
    else:
        yield Check("clock", "ok", message)
    yield Check("python", "ok", f"{sys.version.split()[0]}, SQLite {sqlite3.sqlite_version}")
