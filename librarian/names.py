"""Names of folders and files in the palace: safe on every file system, and the same whatever the order. Pure."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from palace.names import fold

_LIMIT = 255
"""Bytes that a name may have on every common file system."""
_UNSAFE = re.compile(r'[\x00-\x1f\x7f-\x9f<>:"\\|?*\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]')
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?", re.IGNORECASE)

_Key = TypeVar("_Key", bound=Hashable)


def folder_name(label: str) -> str:
    """A label as a folder's name: no slash (`b/c` becomes `b.c`), no climbing, no device of Windows, at most 255 bytes."""
    name = _UNSAFE.sub("_", label.replace("/", ".")).strip().rstrip(". ")
    if name.startswith("."):
        name = "_" + name.lstrip(".")
    if not name or _DEVICES.fullmatch(name):
        name += "_"
    return name if len(name.encode()) <= _LIMIT else _cut(name, f"~{_hash(label, 8)}")


def folder_names(labels: Mapping[_Key, tuple[str, str]]) -> dict[_Key, str]:
    """One folder name a key, from its (folded key, label); names that a case-blind disk takes for one get a hash."""
    names = {key: folder_name(label) for key, (_, label) in labels.items()}
    return {
        key: names[key] if len(group) == 1 or names[key] == labels[key][1] else _tagged(names[key], labels[key][0])
        for group in _alike(names)
        for key in group
    }


@dataclass(frozen=True, slots=True)
class FileInRoom:
    """A note's file: its name on disk, the folder above it, and what tells it from every other note."""

    name: str
    parent: str
    identity: str


def file_names(files: Sequence[FileInRoom]) -> list[str]:
    """One name a file, all different on every disk: equal ones get the folder above, then a short hash."""
    names = {i: _fitting(file.name, "") for i, file in enumerate(files)}
    for suffix in (_with_parent, _with_hash, _with_long_hash):
        alike = [group for group in _alike(names) if len(group) > 1]
        if not alike:
            break
        names |= {i: suffix(files[i]) for group in alike for i in group}
    return [names[i] for i in range(len(files))]


def _alike(names: Mapping[_Key, str]) -> Iterable[list[_Key]]:
    groups: dict[str, list[_Key]] = defaultdict(list)
    for key, name in names.items():
        groups[fold(name)].append(key)
    return groups.values()


def _with_parent(file: FileInRoom) -> str:
    return _fitting(file.name, f" ({folder_name(file.parent)})")


def _with_hash(file: FileInRoom) -> str:
    return _fitting(file.name, f" ({folder_name(file.parent)}) {_hash(file.identity, 8)}")


def _with_long_hash(file: FileInRoom) -> str:
    return _fitting(file.name, f" {_hash(file.identity, 64)}")


def _fitting(name: str, suffix: str) -> str:
    """`stem`, suffix and extension; the stem, then the suffix, give way when the name grows too long."""
    stem, dot, extension = name.rpartition(".")
    stem, extension = (stem, dot + extension) if stem and len(extension) <= 8 else (name, "")
    whole = f"{stem}{suffix}{extension}"
    if len(whole.encode(errors="surrogateescape")) <= _LIMIT:
        return whole
    return _cut(stem, f"~{_hash(f'{name}/{suffix}', 12)}{extension}")


def _tagged(name: str, key: str) -> str:
    tag = f"~{_hash(key, 8)}"
    return name + tag if len((name + tag).encode()) <= _LIMIT else _cut(name, tag)


def _cut(name: str, end: str) -> str:
    """The longest beginning of a name that fits with this end; whole characters only."""
    left = _LIMIT - len(end.encode(errors="surrogateescape"))
    beginning = name.encode(errors="surrogateescape")[:left]
    return beginning.decode(errors="ignore").rstrip(". ") + end


def _hash(text: str, digits: int) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()[:digits]
