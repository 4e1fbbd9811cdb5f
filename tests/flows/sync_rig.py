"""What the tests of the mirror share: a vault, its settings, and pictures of folders before and after."""

import os
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from palace.settings import Private, ReaderEntry, Settings, Vault

needs_rsync = pytest.mark.skipif(shutil.which("rsync") is None, reason="needs rsync")


@dataclass
class Rig:
    """A vault `main` and a data folder; more vaults by `add`."""

    root: Path
    vaults: dict[str, Vault] = field(default_factory=dict)
    private: tuple[Private, ...] = ()

    def __post_init__(self) -> None:
        self.add("main", str(self.vault))

    @property
    def vault(self) -> Path:
        return self.root / "vault"

    @property
    def mirror(self) -> Path:
        return self.settings.mirror("main")

    @property
    def settings(self) -> Settings:
        return Settings(
            data=self.root / "data",
            vaults=self.vaults,
            private=self.private,
            readers={"me": ReaderEntry(cubes=("global",))},
        )

    def add(self, name: str, source: str, **more: object) -> None:
        self.vaults[name] = Vault.model_validate({"source": source, **more})

    def write(self, **files: str) -> None:
        """Write files given as `path="text"`, with paths as keys of a mapping."""
        write(self.vault, files)

    def notes(self, count: int, folder: str = "") -> None:
        write(self.vault, {f"{folder}note {n}.md": f"This is note {n} of {folder}.\n" for n in range(count)})


def write(root: Path, files: dict[str, str]) -> None:
    """Write files below a folder, making folders on the way."""
    root.mkdir(parents=True, exist_ok=True)
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def files(root: Path) -> dict[str, bytes]:
    """Every regular file below a folder that is not hidden, with its bytes."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for path in sorted(root.rglob("*"))
        if not path.is_symlink() and path.is_file() and not _hidden(path.relative_to(root))
    }


def everything(root: Path) -> list[tuple[object, ...]]:
    """All that a folder is: names, kinds, modes, times, inodes, bytes and targets of links."""
    return [_picture(path, root) for path in sorted([root, *root.rglob("*")])]


def _picture(path: Path, root: Path) -> tuple[object, ...]:
    status = path.lstat()
    body: object = None
    if path.is_symlink():
        body = path.readlink()
    elif path.is_file():
        body = path.read_bytes()
    return os.fsencode(path.relative_to(root)), stat.filemode(status.st_mode), status.st_mtime_ns, status.st_ino, body


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def untold(done: int, total: int | None) -> None:
    """Nobody listens to the progress."""


def script(path: Path, text: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def in_process(rig: Rig) -> "subprocess.Popen[bytes]":
    """A sync of `main` in a process of its own, which leads a process group."""
    code = (
        "import sys; from palace.settings import Settings; from sync.run import sync\n"
        "sync(Settings.model_validate_json(sys.argv[1]), 'main')"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    arguments = [sys.executable, "-c", code, rig.settings.model_dump_json()]
    return subprocess.Popen(arguments, env=environment, start_new_session=True)
