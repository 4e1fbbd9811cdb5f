"""A data folder with mirrors for tests of the palace: files are written into the mirror as sync would."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from librarian.build import BuildResult, build
from palace import manifest
from palace.manifest import Entry, Generation
from palace.settings import Settings
from palace.vocabulary import GLOBAL

_OLD = 1_700_000_000
"""Seconds: an mtime that nobody doubts."""


@dataclass
class House:
    """A data folder. `more`: settings beside `data`; each vault's source is outside and never looked at."""

    data: Path
    more: Mapping[str, Any]

    @property
    def settings(self) -> Settings:
        vaults: dict[str, dict[str, Any]] = {"main": {}, **self.more.get("vaults", {})}
        whole = {name: {"source": f"/nowhere/{name}"} | vault for name, vault in vaults.items()}
        for name in whole:
            (self.data / "mirror" / name).mkdir(parents=True, exist_ok=True)
        return Settings.model_validate({**self.more, "data": self.data, "vaults": whole})

    def mirror(self, path: str, vault: str = "main") -> Path:
        return self.data / "mirror" / vault / path

    def write(self, notes: Mapping[str, str | bytes], vault: str = "main", mtime: float | None = _OLD) -> None:
        """Put files into a mirror as rsync does: into a new inode, with the source's mtime (None: now)."""
        for path, text in notes.items():
            target = self.mirror(path, vault)
            target.parent.mkdir(parents=True, exist_ok=True)
            part = target.with_name(".part")
            part.write_bytes(text if isinstance(text, bytes) else text.encode())
            if mtime is not None:
                os.utime(part, (mtime, mtime))
            part.replace(target)

    def build(self, *, dry_run: bool = False, full: bool = False) -> BuildResult:
        return build(self.settings, dry_run=dry_run, full=full)

    @property
    def current(self) -> Generation:
        found = manifest.current(self.settings)
        assert found is not None
        return found

    @property
    def entries(self) -> dict[str, Entry]:
        """By path, or `vault:path` for another vault than main."""
        read = manifest.read(self.current.folder / manifest.MANIFEST)
        return {e.ref.path if e.ref.vault == "main" else f"{e.ref.vault}:{e.ref.path}": e for e in read}

    @property
    def skipped(self) -> dict[str, str]:
        """State and reason of what stands on no shelf, by path."""
        read = manifest.read_skipped(self.current.folder / manifest.SKIPPED)
        return {one.path: f"{one.state}: {one.reason}" for one in read}

    def tree(self) -> list[str]:
        """Every file of the palace, below `global/`."""
        top = self.data / "palace" / manifest.CURRENT / GLOBAL
        return sorted(str(file.relative_to(top)) for file in top.rglob("*") if not file.is_dir())

    def generations(self) -> list[str]:
        return sorted(path.name for path in (self.data / "palace").iterdir())
