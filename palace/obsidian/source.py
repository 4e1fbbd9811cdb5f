"""A note's bytes as text: encodings, line ends, control characters. Pure."""

import re

from palace.vocabulary import Problem

_BOM = b"\xef\xbb\xbf"
_LONE_CR = re.compile(rb"\r(?!\n)")
_CONTROL = bytes([*range(9), 11, 12, *range(14, 32), 127])
_OTHER_BOMS = {
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}
_SAVE_AS_UTF8 = "Save the file as UTF-8; Obsidian reads nothing else."


class Source:
    """The bytes of one note, with lone carriage returns as line feeds, so that every offset stays where it is.

    `start`: offset of the first byte after a BOM. `problem`: why the bytes are no UTF-8 text, else None.
    """

    __slots__ = ("_at", "_line", "_text", "data", "path", "problem", "start")

    def __init__(self, data: bytes, path: str) -> None:
        self.path = path
        self.data = _LONE_CR.sub(b"\n", data) if b"\r" in data else data
        self.start = len(_BOM) if data.startswith(_BOM) else 0
        self._at = 0
        self._line = 1
        self._text = ""
        self.problem = self._decode()

    def text(self, start: int, end: int) -> str:
        """The text of a byte span."""
        return self._text[start:end] if len(self._text) == len(self.data) else self.data[start:end].decode()

    def text_from(self, start: int) -> str:
        """The text from a byte offset to the end of the file, without decoding it again."""
        return self._text[len(self.text(0, start)) :]

    def line(self, offset: int) -> int:
        """The line, from 1, of a byte offset. Cheapest when asked in ascending order."""
        if offset >= self._at:
            self._line += self.data.count(b"\n", self._at, offset)
        else:
            self._line -= self.data.count(b"\n", offset, self._at)
        self._at = offset
        return self._line

    def control_characters(self) -> Problem | None:
        """A Problem at the first NUL or other control character; the note is read all the same."""
        if len(self.data.translate(None, _CONTROL)) == len(self.data):
            return None
        at = next(i for i, byte in enumerate(self.data) if byte in _CONTROL)
        return Problem(
            self.path,
            self.line(at),
            "control-character",
            f"The note holds a control character (0x{self.data[at]:02x}).",
            "Remove it; some programs stop reading there.",
        )

    def _decode(self) -> Problem | None:
        try:
            self._text = self.data.decode()
        except UnicodeDecodeError as error:
            for mark, name in _OTHER_BOMS.items():
                if self.data.startswith(mark):
                    return self._encoding(f"The note is {name}, not UTF-8.", 1)
            byte = self.data[error.start]
            return self._encoding(f"The note is not UTF-8: byte 0x{byte:02x}.", self.line(error.start))
        if self.data.count(0) * 4 > len(self.data):
            return self._encoding("The note looks like UTF-16 or binary data, not like UTF-8 text.", 1)
        return None

    def _encoding(self, message: str, line: int) -> Problem:
        return Problem(self.path, line, "not-utf8", message, _SAVE_AS_UTF8)
