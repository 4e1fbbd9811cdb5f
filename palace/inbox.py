"""What agents write: one file a memory, as a candidate, in the inbox of the writer's own cube. Nothing else can be named.

The next ingest brings it into the stores. A person reads, edits or removes the files as they like.
"""

import json
import os
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from palace.errors import UsageError
from palace.names import nfc
from palace.settings import Settings
from palace.vocabulary import GLOBAL, NoteRef, Status

VAULT = "inbox"
"""What stands as the vault of a note that an agent wrote."""
_UNNAMED = "Memory"
_LONGEST_NAME = 60
_NO_NAME = re.compile(r'[\\/:*?"<>|#^\[\]`]+')
"""What a file name must not hold on some system, or what would break a link to it."""


@dataclass(frozen=True, slots=True)
class Memory:
    """What is to be kept. `time` is aware."""

    reader: str
    cube: str
    text: str
    title: str
    time: datetime

    @property
    def name(self) -> str:
        """The file's name: the title and a mark of the text, so that the same memory twice is one file."""
        mark = sha256(f"{self.title}\0{self.text}".encode()).hexdigest()[:8]
        return f"{self.title} {mark}.md"

    @property
    def ref(self) -> NoteRef:
        """The note that it will be."""
        return NoteRef(self.cube, VAULT, nfc(self.name))

    def render(self) -> str:
        """The file: who wrote it and when, then the text as it came."""
        when = self.time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        properties = {
            "aliases": [self.title],
            "source": f"reader {self.reader}",
            "created": when,
            "status": Status.CANDIDATE.value,
        }
        lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in properties.items()]
        return "\n".join(("---", *lines, "---", "", self.text.rstrip("\n"), ""))


def home(reader: str, cubes: Sequence[str]) -> str:
    """The writer's own cube: the one that bears its name, else its first one that is not everybody's, else that."""
    own = [cube for cube in cubes if cube != GLOBAL]
    return reader if reader in own else own[0] if own else GLOBAL


def title_of(text: str, title: str | None) -> str:
    """The title given, or the text's first words: one short line that can be a file's name."""
    for candidate in (title or "", *text.splitlines()[:20]):
        plain = "".join(" " if unicodedata.category(c)[0] in "CZ" else c for c in nfc(candidate))
        plain = " ".join(_NO_NAME.sub(" ", plain).split()).strip(" .-_")
        if plain:
            return (
                plain
                if len(plain) <= _LONGEST_NAME
                else plain[:_LONGEST_NAME].rpartition(" ")[0] or plain[:_LONGEST_NAME]
            )
    return _UNNAMED


def keep(settings: Settings, memory: Memory) -> bool:
    """Write the memory; False when it was there already. The file is whole when it can be seen.

    Raises UsageError for an empty one, OSError when the disk refuses.
    """
    if not memory.text.strip():
        raise UsageError("There is nothing to remember: the text is empty.", "Say it in a sentence or a paragraph.")
    folder = settings.data / "inbox" / memory.cube
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    file, part = folder / memory.name, folder / f".{os.urandom(8).hex()}.part"
    if file.exists():
        return False
    _write(part, memory.render())
    part.replace(file)
    return True


def _write(part: Path, text: str) -> None:
    with part.open("x", encoding="utf-8", newline="\n") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
