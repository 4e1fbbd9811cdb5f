"""What a vault's own settings say, and which files are a sync tool's conflict copies. Pure, but for `VaultConfig.load`."""

import json
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Self

from palace.names import fold, nfc
from palace.vocabulary import Problem

_FOLDER = ".obsidian"
_APP, _DAILY, _TEMPLATES = "app.json", "daily-notes.json", "templates.json"
_DEFAULT_FORMAT = "YYYY-MM-DD"
_JS_GROUP = re.compile(r"\(\?<(?=[A-Za-z_])")
_CONFLICT = re.compile(
    r"\([^()]*conflicted copy [^()]*\d{4}-?\d{2}-?\d{2}[^()]*\)$|\([^()]*case conflict[^()]*\)$"
    r"|\.sync-conflict-\d{8}-\d{6}-[0-9A-Z]{7}$",
    re.IGNORECASE,
)
"""Obsidian Sync, Dropbox, Nextcloud; Syncthing."""
_MACHINE = re.compile(r"[A-Z][A-Z0-9-]{3,14}")
"""A computer's name as OneDrive appends it. It tells nothing after a name that is in capitals itself."""


@dataclass(frozen=True, slots=True)
class VaultConfig:
    """Three files of `.obsidian`. `daily_folder`: None without daily-notes.json, "" for the vault's top.

    `templates`: the templates folder, without slashes at its ends; `ignored`: "Excluded files", as written.
    """

    daily_folder: str | None = None
    daily_format: str = _DEFAULT_FORMAT
    templates: str | None = None
    ignored: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    @classmethod
    def read(cls, app: bytes | None, daily: bytes | None, templates: bytes | None) -> Self:
        """From the files' bytes; None for a file that is absent. What cannot be read is a Problem, never an error."""
        problems: list[Problem] = []
        from_app = _json(app, _APP, problems)
        from_daily = _json(daily, _DAILY, problems)
        ignored = from_app.get("userIgnoreFilters")
        filters = tuple(str(f) for f in ignored if f) if isinstance(ignored, list) else ()
        problems += [_bad_pattern(f) for f in filters if _tester(f) is None]
        return cls(
            daily_folder=None if daily is None else _folder(from_daily.get("folder")),
            daily_format=str(from_daily.get("format") or _DEFAULT_FORMAT),
            templates=_folder(_json(templates, _TEMPLATES, problems).get("folder")) or None,
            ignored=filters,
            problems=tuple(problems),
        )

    @classmethod
    def load(cls, vault: Path) -> Self:
        """From a vault's folder, or its mirror."""
        app, daily, templates = (_bytes(vault / _FOLDER / name) for name in (_APP, _DAILY, _TEMPLATES))
        return cls.read(app, daily, templates)

    def is_excluded(self, path: str) -> bool:
        """Whether the vault's "Excluded files" name a path: by its beginning, or by a pattern between slashes."""
        return any(test(path) for f in self.ignored if (test := _tester(f)) is not None)


def conflict_copy(name: str, siblings: Collection[str]) -> bool:
    """Whether a file's name is that of a conflict copy; `siblings`: the names in its folder."""
    stem, dot, extension = name.rpartition(".")
    if not dot:
        return False
    if _CONFLICT.search(stem):
        return True
    dashes = (i for i, character in enumerate(stem) if character == "-" and i and not stem[:i].isupper())
    return any(_MACHINE.fullmatch(stem, i + 1) and f"{stem[:i]}.{extension}" in siblings for i in dashes)


@lru_cache(maxsize=256)
def _tester(written: str) -> Callable[[str], object] | None:
    if len(written) > 2 and written.startswith("/") and written.endswith("/"):
        try:
            return re.compile(_JS_GROUP.sub("(?P<", written[1:-1]), re.IGNORECASE).search
        except re.error:
            return None
    beginning = fold(written.lstrip("/"))
    return lambda path: fold(path).startswith(beginning)


def _bad_pattern(written: str) -> Problem:
    message = f"The vault's excluded files hold a pattern that cannot be read: {written}"
    hint = "Nothing is excluded by it; add a glob to `exclude` of the vault in the settings."
    return Problem(f"{_FOLDER}/{_APP}", None, "vault-settings", message, hint)


def _json(data: bytes | None, name: str, problems: list[Problem]) -> dict[str, object]:
    if data is None or not data.strip():
        return {}
    try:
        loaded = json.loads(data)
    except (ValueError, RecursionError):
        loaded = None
    if isinstance(loaded, dict):
        return loaded
    message = f"The vault's {name} is no valid JSON object and is passed over."
    problems.append(
        Problem(f"{_FOLDER}/{name}", None, "vault-settings", message, "Save those settings in Obsidian again.")
    )
    return {}


def _folder(value: object) -> str:
    return nfc(value).strip("/") if isinstance(value, str) else ""


def _bytes(file: Path) -> bytes | None:
    try:
        return file.read_bytes()
    except OSError:
        return None
