"""What of a vault is mirrored: one set of rules, as rsync's filters and as a predicate. Pure.

Left out: dot files and dot folders (`.trash`, `.git`, …), what the settings exclude (gitignore's globs), and of
`.obsidian` everything but the three files that say where notes are. A private root inside the vault stays in,
although the settings exclude it from the public notes: the ingest reads it from the mirror.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pathspec import GitIgnoreSpec

from palace.names import nfc
from palace.settings import Settings

OBSIDIAN = ".obsidian"
OBSIDIAN_FILES = ("app.json", "daily-notes.json", "templates.json")
"""What the librarian reads of a vault's own settings: excluded files, daily notes, templates folder."""


@dataclass(frozen=True)
class Filters:
    """`exclude`: gitignore's globs; `keep`: folders, relative to the vault with `/`, that these don't touch."""

    exclude: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings, vault: str) -> "Filters":
        """What the settings say of one vault."""
        roots = (entry.in_vault for entry in settings.private)
        keep = tuple(nfc(root[1]) for root in roots if root is not None and root[0] == vault and root[1])
        return cls(settings.vaults[vault].exclude, keep)

    def takes(self, path: str) -> bool:
        """Whether a file is mirrored; `path` relative to the vault."""
        path = nfc(path)
        if path.startswith(f"{OBSIDIAN}/"):
            return path.removeprefix(f"{OBSIDIAN}/") in OBSIDIAN_FILES
        inside = self._inside_kept(path)
        return not _dotted(path if inside is None else inside) and (inside is not None or not self._excludes(path))

    def enters(self, folder: str) -> bool:
        """Whether a folder may hold files that are mirrored; `folder` relative to the vault, without a last slash."""
        folder = nfc(folder)
        if folder == OBSIDIAN or any(root == folder or root.startswith(f"{folder}/") for root in self.keep):
            return True
        inside = self._inside_kept(folder)
        if inside is not None:
            return not _dotted(inside)
        return not _dotted(folder) and not self._excludes(f"{folder}/")

    def rules(self) -> tuple[str, ...]:
        """The same as rsync's filter rules; the first that matches decides."""
        settings = (f"+ /{OBSIDIAN}/", *(f"+ /{OBSIDIAN}/{name}" for name in OBSIDIAN_FILES), f"- /{OBSIDIAN}/**")
        kept = tuple(rule for root in self.keep for spelt in _spellings(_escaped(root)) for rule in _kept(spelt))
        siblings = tuple(f"- /{folder}/*" for folder in self._hidden_parents())
        # gitignore: the last match decides, rsync: the first one.
        excluded = tuple(rule for glob in reversed(self.exclude) for rule in _glob_rules(glob))
        return (*settings, *kept, *siblings, "- .*", *excluded)

    @cached_property
    def _spec(self) -> GitIgnoreSpec:
        return GitIgnoreSpec.from_lines(nfc(glob) for glob in self.exclude)

    def _excludes(self, path: str) -> bool:
        return bool(self.exclude) and self._spec.match_file(path)

    def _inside_kept(self, path: str) -> str | None:
        """The path below the kept folder that it lies in, None if it lies in none."""
        if not self.keep:
            return None
        return next((path[len(root) + 1 :] for root in self.keep if path.startswith(f"{root}/")), None)

    def _hidden_parents(self) -> Iterator[str]:
        """Folders that are entered for the sake of a kept one alone: nothing else of theirs may come along."""
        for root in self.keep:
            parts = root.split("/")
            for depth in range(1, len(parts)):
                folder = "/".join(parts[:depth])
                if _dotted(folder) or self._excludes(f"{folder}/"):
                    yield from _spellings(_escaped(folder))


def _dotted(path: str) -> bool:
    return path.startswith(".") or "/." in path


def _kept(root: str) -> Iterator[str]:
    parts = root.split("/")
    folders = ("/".join(parts[: depth + 1]) for depth in range(len(parts)))
    yield from (f"+ {_rsync(f'/{folder}/')}" for folder in folders)
    yield from (f"- /{root}/.*", f"- /{root}/**/.*", f"+ /{root}/**")


def _glob_rules(glob: str) -> Iterator[str]:
    """One of gitignore's globs as rsync's rules."""
    body = re.sub(r"(?<!\\)\s+$", "", glob)
    if not body or body.startswith("#"):
        return
    sign, body = ("+", body[1:]) if body.startswith("!") else ("-", body)
    for spelling in _spellings(body):
        yield from (f"{sign} {pattern}" for pattern in _patterns(spelling))


def _patterns(body: str) -> Iterator[str]:
    last = "/" if body.endswith("/") else ""
    # Inside a name `**` means `*` to gitignore; to rsync it would cross folders.
    parts = [part if part == "**" else re.sub(r"\*\*+", "*", part) for part in body.strip("/").split("/")]
    root = "/" if "/" in body.rstrip("/") else ""
    while len(parts) > 1 and parts[0] == "**":
        root, parts = "", parts[1:]
    yield from (_rsync(f"{root}{'/'.join(way)}{last}") for way in _without_middles(parts))


def _without_middles(parts: list[str]) -> Iterator[list[str]]:
    """`a/**/b` matches `a/b` too: every way to leave a `**` between two names out."""
    at = next((n for n, part in enumerate(parts[:-1]) if n and part == "**"), None)
    if at is None:
        yield parts
        return
    for rest in _without_middles([parts[0], *parts[at + 1 :]]):
        yield [*parts[:at], *rest[1:]]
        yield [*parts[: at + 1], *rest[1:]]


def _escaped(path: str) -> str:
    """A path as a glob that matches it alone."""
    return re.sub(r"([\\*?\[])", r"\\\1", path)


def _rsync(glob: str) -> str:
    """To rsync a backslash escapes only where the pattern has a wildcard, escaped or not."""
    return glob if re.search(r"[*?\[]", glob) else re.sub(r"\\(.)", r"\1", glob)


def _spellings(text: str) -> tuple[str, ...]:
    """NFC and NFD: a Mac's disks hand out the second."""
    return tuple(dict.fromkeys((nfc(text), unicodedata.normalize("NFD", text))))
