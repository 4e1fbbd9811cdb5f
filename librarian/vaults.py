"""What the settings and the vaults' own files say of each vault: where it is, what is public, which rules place its notes."""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Any

from pathspec import GitIgnoreSpec

from librarian.place import PlaceRules, glob_rules
from librarian.read import Source
from librarian.scan import Row, scan
from librarian.sift import Sieve
from palace.configuration_rules import faults
from palace.errors import SettingsError
from palace.names import fold, nfc
from palace.obsidian.daily import daily_date
from palace.obsidian.vault import VaultConfig, conflict_copy
from palace.settings import Private, Settings, Vault

_ABOUT_VAULTS = frozenset({"vaults", "private", "rooms"})


@dataclass(frozen=True, slots=True)
class OneVault:
    """One vault, ready to be read. `public`: longest folder first, "" is the whole vault."""

    name: str
    mirror: Path
    settings: Vault
    public: tuple[str, ...]
    private: frozenset[str]
    config: VaultConfig

    def scan(self) -> list[Row]:
        """Its public files with their stats."""
        return scan(self.mirror, self.name, self.public, self.private)

    def source(self) -> Source:
        """Where its notes are read."""
        return Source(self.mirror, self.settings.compat)

    def sieve(self, max_bytes: int) -> Sieve:
        """What it keeps off the shelves."""
        exclude = GitIgnoreSpec.from_lines(nfc(glob) for glob in self.settings.exclude)
        return Sieve(self.name, exclude, self.config.is_excluded, conflict_copy, self.config.templates, max_bytes)

    def rules(self, settings: Settings) -> PlaceRules:
        """How its notes are placed, but for the folder rooms, which all vaults make together."""
        deny = frozenset(fold(tag.strip().lstrip("#")) for tag in settings.rooms.deny_tags)
        folder, written = self._daily()
        # A folder of their own holds daily notes only; at the vault's top their names tell them apart.
        is_daily = partial(_is_daily, written=written) if folder == "" else _any
        return PlaceRules(self.public, folder, is_daily, deny, glob_rules(settings.rooms.rules))

    def _daily(self) -> tuple[str | None, str]:
        """Folder (None without daily notes) and Moment format: the settings', else the vault's own."""
        own = self.settings.daily
        return (_folder(own.folder), own.format) if own else (self.config.daily_folder, self.config.daily_format)


def open_vaults(settings: Settings) -> list[OneVault]:
    """Every vault of the settings. Raises SettingsError when a wall would leak: nothing is read then."""
    wrong = [fault for fault in faults(settings) if fault.where[:1] and fault.where[0] in _ABOUT_VAULTS]
    if wrong:
        lines = (f"{'.'.join(map(str, fault.where))}: {fault.message}. {fault.hint}".strip() for fault in wrong)
        raise SettingsError("\n".join(lines), "Nothing was touched. Mend the settings, then run the command again.")
    return [_open(settings, name, vault) for name, vault in settings.vaults.items()]


def digest(settings: Settings, vaults: list[OneVault]) -> str:
    """SHA-256 of all that decides which notes are read, and how they are read and placed."""
    values: dict[str, Any] = {
        "version": _version(),
        "rooms": settings.rooms.model_dump(mode="json"),
        "max_note_bytes": settings.ingest.max_note_bytes,
        "vaults": [_digested(vault) for vault in sorted(vaults, key=lambda v: v.name)],
    }
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _digested(vault: OneVault) -> Mapping[str, Any]:
    own = vault.settings.model_dump(mode="json", include={"exclude", "daily", "compat"})
    return own | {
        "name": vault.name,
        "public": vault.public,
        "private": sorted(vault.private),
        "config": repr(vault.config),
    }


def _open(settings: Settings, name: str, vault: Vault) -> OneVault:
    mirror = settings.mirror(name)
    public = sorted((_folder(path) for path in vault.public), key=lambda folder: (-len(folder), folder))
    private = {place for entry in settings.private if (place := _place(settings, entry, name, vault)) is not None}
    return OneVault(name, mirror, vault, tuple(public), frozenset(private), VaultConfig.load(mirror))


def _is_daily(path: str, written: str) -> bool:
    return daily_date(path, "", written) is not None


def _any(_path: str) -> bool:
    return True


def _folder(path: str) -> str:
    """`.` is the whole vault: an empty path."""
    return "/".join(part for part in PurePosixPath(nfc(path)).parts if part != ".")


def _place(settings: Settings, entry: Private, name: str, vault: Vault) -> str | None:
    """A private root's folded path in this vault; None when it is elsewhere.

    The settings keep private roots out of public folders already; that the librarian does not enter them is the
    second lock on the same door.
    """
    if entry.in_vault:
        return fold(_folder(entry.in_vault[1])) if entry.in_vault[0] == name else None
    for root in [str(settings.mirror(name))] if vault.remote else [str(settings.mirror(name)), vault.source]:
        inner = os.path.relpath(os.path.realpath(entry.path), os.path.realpath(root))
        if not inner.startswith(".."):
            return fold(_folder(inner))
    return None


def _version() -> str:
    """A new version may read notes in another way, so it reads them all again."""
    try:
        return metadata.version("dualwall")
    except metadata.PackageNotFoundError:
        return "unknown"
