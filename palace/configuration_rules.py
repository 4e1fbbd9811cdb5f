"""What settings must not say, beyond their shapes: walls that would leak, folders inside each other, names that climb."""

import os
import re
import zoneinfo
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path, PurePosixPath

from cronsim import CronSim, CronSimError
from pathspec import GitIgnoreSpec
from rapidfuzz import process

from palace.names import reserved, room_key
from palace.paths import contains
from palace.settings import Private, Settings, Vault
from palace.toml_lines import KeyPath
from palace.vocabulary import GLOBAL

_PLAIN = re.compile(r"[a-z0-9_-]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong at one key: `message` continues the key's name and has no full stop; `hint` is a sentence."""

    where: KeyPath
    message: str
    hint: str = ""


def faults(settings: Settings) -> list[Fault]:
    """Every fault of settings whose paths are absolute. Looks at the disk only to follow symlinks."""
    rules: tuple[Callable[[Settings], Iterator[Fault]], ...] = (
        _clock, _sources, _names, _climbing, _readers, _tokens, _reserved_rooms, _data_apart, _private_roots, _walls, _provider, _serving,
    )  # fmt: skip
    return [fault for rule in rules for fault in rule(settings)]


def did_you_mean(word: str, known: Collection[str]) -> str:
    """A sentence with the known name that a word was meant to be, or with all of them if they are few, or nothing."""
    near = process.extractOne(word, sorted(known), score_cutoff=70)
    if near:
        return f"Did you mean {near[0]}?"
    return f"Known here: {', '.join(sorted(known))}." if 0 < len(known) <= 20 else ""


def _clock(settings: Settings) -> Iterator[Fault]:
    try:
        zoneinfo.ZoneInfo(settings.timezone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        hint = did_you_mean(settings.timezone, zoneinfo.available_timezones())
        yield Fault(("timezone",), f'there is no time zone "{settings.timezone}"', hint)


def _sources(settings: Settings) -> Iterator[Fault]:
    if not settings.vaults and not settings.private:
        yield Fault((), "there is no vault", 'Add one: [vaults.main] and source = "~/Notes"')


def _names(settings: Settings) -> Iterator[Fault]:
    named: list[tuple[KeyPath, str, str]] = [(("vaults", name), name, "vault") for name in settings.vaults]
    named += [(("private", at, "cube"), entry.cube, "cube") for at, entry in enumerate(settings.private)]
    named += [(("readers", name), name, "reader") for name in settings.readers]
    for where, name, kind in named:
        if not _PLAIN.fullmatch(name):
            yield Fault(where, f'"{name}" is no {kind} name', "Use a-z, 0-9, - and _ only.")
        if kind == "cube" and name == GLOBAL:
            yield Fault(where, '"global" is the cube of public notes', "Give the private root its agent's id.")


def _climbing(settings: Settings) -> Iterator[Fault]:
    """Paths inside a vault or root that leave it."""
    inner: list[tuple[KeyPath, str]] = []
    for name, vault in settings.vaults.items():
        inner += [(("vaults", name, "public"), path) for path in vault.public]
        inner += [(("vaults", name, "exclude"), path) for path in vault.exclude]
        inner += [(("vaults", name, "daily", "folder"), vault.daily.folder)] if vault.daily else []
    for at, entry in enumerate(settings.private):
        inner += [(("private", at, "path"), entry.in_vault[1])] if entry.in_vault else []
        inner += [(("private", at, "rooms", room), glob) for room, globs in entry.rooms.items() for glob in globs]
    inner += [(("rooms", "rules", at), rule.glob) for at, rule in enumerate(settings.rooms.rules)]
    for where, path in inner:
        if path.startswith(("/", "~")) or ".." in PurePosixPath(path).parts:
            yield Fault(where, f'"{path}" leaves its folder', "Write it relative to the folder, without `..`.")


def _readers(settings: Settings) -> Iterator[Fault]:
    if not settings.readers:
        yield Fault((), "there is no reader, so nobody may ask", 'Add one: [readers.me] and cubes = ["global"]')
    cubes = {GLOBAL, *(entry.cube for entry in settings.private)}
    for name, reader in settings.readers.items():
        for cube in reader.cubes:
            if cube not in cubes:
                yield Fault(("readers", name, "cubes"), f'there is no cube "{cube}"', did_you_mean(cube, cubes))


def _tokens(settings: Settings) -> Iterator[Fault]:
    seen: dict[str, str] = {}
    for name, reader in settings.readers.items():
        token, where = reader.token_sha256, ("readers", name, "token_sha256")
        if token is None:
            continue
        if not _SHA256.fullmatch(token):
            yield Fault(where, "is no SHA-256 (64 lower-case hex digits)", f"Make one: dualwall token {name}")
        elif (other := seen.setdefault(token, name)) != name:
            yield Fault(where, f'is the token of "{other}" too, so nobody could tell them apart')


def _reserved_rooms(settings: Settings) -> Iterator[Fault]:
    for at, rule in enumerate(settings.rooms.rules):
        for key, label in (("wing", rule.wing), ("room", rule.room)):
            if not room_key(label):
                yield Fault(("rooms", "rules", at, key), "is empty")
            elif name := reserved(label):
                yield Fault(("rooms", "rules", at, key), f'"{label}" is, or looks like, the reserved room "{name}"')
    for at, entry in enumerate(settings.private):
        for label in entry.rooms:
            if not room_key(label) or "/" in label:
                yield Fault(("private", at, "rooms", label), f'"{label}" is no room name', "Leave out the slash.")


def _data_apart(settings: Settings) -> Iterator[Fault]:
    roots: list[tuple[KeyPath, Path]] = [
        (("vaults", name, "source"), Path(vault.source)) for name, vault in settings.vaults.items() if not vault.remote
    ]
    roots += [
        (("private", at, "path"), Path(entry.path)) for at, entry in enumerate(settings.private) if not entry.in_vault
    ]
    for where, root in roots:
        if contains(root, settings.data):
            yield Fault(
                ("data",), f"{settings.data} lies inside {root}", "The vault is never written: keep the data apart."
            )
        elif contains(settings.data, root):
            yield Fault(where, f"{root} lies inside the data folder {settings.data}", "Keep the two apart.")


def _private_roots(settings: Settings) -> Iterator[Fault]:
    """Private roots that name no vault, or that another cube's root would read as well."""
    for at, entry in enumerate(settings.private):
        if entry.in_vault and entry.in_vault[0] not in settings.vaults:
            yield Fault(("private", at, "path"), f'there is no vault "{entry.in_vault[0]}"')
        elif entry.in_vault and not entry.in_vault[1]:
            yield Fault(("private", at, "path"), "is the whole vault", "Name a folder in it: vault:main/Agents/dev-cat")
    for (one, a), (two, b) in combinations(enumerate(settings.private), 2):
        if a.cube != b.cube and any(_overlap(x, y) for x in _places(settings, a) for y in _places(settings, b)):
            yield Fault(
                ("private", two, "path"),
                f'{b.path} and {a.path} overlap, so cubes "{a.cube}" and "{b.cube}" would share notes',
                f"Keep private root {one + 1} and private root {two + 1} apart.",
            )


def _places(settings: Settings, entry: Private) -> Iterator[tuple[str, PurePosixPath]]:
    """Where a private root stands: (vault, path in it) for each vault that holds it, ("", path) on this machine."""
    if entry.in_vault:
        vault, inner = entry.in_vault
        yield vault, PurePosixPath(inner)
        if vault not in settings.vaults or settings.vaults[vault].remote:
            return
        path = Path(settings.vaults[vault].source, inner)
    else:
        path = Path(entry.path)
    real = Path(os.path.realpath(path))
    yield "", PurePosixPath(real)
    for name, other in settings.vaults.items():
        inside = None if other.remote else _below(Path(other.source), real)
        if inside is not None:
            yield name, inside


def _below(folder: Path, path: Path) -> PurePosixPath | None:
    """Where a real path lies below a folder, also when the folder is known by another name (a bind mount)."""
    root = next((place for place in reversed((path, *path.parents)) if contains(folder, place)), None)
    return None if root is None else PurePosixPath(path.relative_to(root))


def _overlap(one: tuple[str, PurePosixPath], two: tuple[str, PurePosixPath]) -> bool:
    return one[0] == two[0] and (one[1].is_relative_to(two[1]) or two[1].is_relative_to(one[1]))


def _walls(settings: Settings) -> Iterator[Fault]:
    """A private root that the librarian would read too, or a public folder that a private root would swallow."""
    for at, entry in enumerate(settings.private):
        for vault, place in dict.fromkeys(_places(settings, entry)):
            if vault in settings.vaults:
                yield from _leaks(("private", at, "path"), place, vault, settings.vaults[vault])
        if not entry.in_vault:
            for name, other in settings.vaults.items():
                if not other.remote and contains(Path(entry.path), Path(other.source)):
                    yield Fault(("private", at, "path"), f'holds the whole vault "{name}"', "Keep the two apart.")


def _leaks(where: KeyPath, private: PurePosixPath, name: str, vault: Vault) -> Iterator[Fault]:
    for folder in vault.public:
        public = PurePosixPath(folder)
        if public.is_relative_to(private):
            yield Fault(where, f'holds the public folder "{folder}" of vault "{name}"', "Keep the two apart.")
        elif private.is_relative_to(public) and not _excluded(private, vault):
            hint = f'Add "{private}/**" to exclude of [vaults.{name}], and take nothing back with `!`.'
            yield Fault(
                where, f'lies in the public folder "{folder}" of vault "{name}", which does not exclude it', hint
            )


def _excluded(folder: PurePosixPath, vault: Vault) -> bool:
    """Whether nothing in a folder of the vault, at any depth, would be read as public; `!` might take some of it back."""
    globs = GitIgnoreSpec.from_lines(vault.exclude)
    return not any(glob.startswith("!") for glob in vault.exclude) and all(
        globs.match_file(str(folder / probe)) for probe in ("a.md", "b/a.md", "b/c/a.md")
    )


def _provider(settings: Settings) -> Iterator[Fault]:
    if settings.embedding.provider == "openai" and not settings.embedding.url:
        yield Fault(("embedding", "url"), "is missing", 'Say where: url = "http://127.0.0.1:8080/v1"')


def _serving(settings: Settings) -> Iterator[Fault]:
    if settings.serve.schedule:
        try:
            CronSim(settings.serve.schedule, datetime(2026, 1, 1, tzinfo=UTC))
        except CronSimError as error:
            hint = 'Write it as "50 2 * * *" (minute, hour, day, month, weekday), or "" for none.'
            yield Fault(("serve", "schedule"), f"is no time: {error}", hint)
    if not re.fullmatch(r"(?:\[[0-9a-fA-F:.]+\]|[^\s:\[\]]+):\d{1,5}", settings.serve.listen):
        yield Fault(("serve", "listen"), f'"{settings.serve.listen}" is no HOST:PORT', "Write it as 127.0.0.1:8377.")
