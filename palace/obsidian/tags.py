"""What a tag is. The one rule of the body that the Markdown parser does not know. Pure."""

import re
from collections.abc import Iterator

# Bytes of UTF-8, so that offsets need no conversion. A tag holds ASCII letters, digits, `-`, `_`, `/`, and every other
# character but white space, controls, U+2000-206F and U+2E00-2E7F.
_CHARACTERS = (
    rb"(?:[0-9A-Za-z_/-]++|(?!\xc2[\x80-\xa0]|\xe2\x80|\xe2\x81[\x80-\xaf]|\xe2[\xb8\xb9]"
    rb"|\xe1\x9a\x80|\xe3\x80\x80|\xef\xbb\xbf)[\x80-\xff])++"
)
# What may stand before `#`: the start, white space, `*` `_` `~` `=`, an escaped bracket.
_BEFORE = (
    rb"(?:(?<=[\t-\r *_~=]#)|(?<!.#)|(?<=\xc2\xa0#)|(?<=\xe3\x80\x80#)|(?<=\xef\xbb\xbf#)|(?<=\xe2\x80[\x80-\x8a\xa8\xa9\xaf]#)"
    rb"|(?<=\xe2\x81\x9f#)|(?<=\xe1\x9a\x80#)|(?<=\\[\[\]]#))"
)
_CHAIN = rb"(" + _CHARACTERS + rb"(?:#" + _CHARACTERS + rb")*+)"
_INLINE = re.compile(rb"#" + _BEFORE + _CHAIN, re.DOTALL)
_AT_START = re.compile(rb"#" + _CHAIN)
_WHOLE = re.compile(_CHARACTERS)
_QUOTE_MARKS = re.compile(rb"[ \t>]*>")
_HASH, _BAR, _GREATER = b"#|>"
_LOOK_BACK = 64
_URL_LOOK_BACK = 2048
_FULL_WIDTH = re.compile("[、。〈-】〔-〗！＂（），．：；？｛｝]")


def inline_tags(data: bytes, start: int, end: int) -> Iterator[tuple[str, int]]:
    """Tags in a run of plain text [start, end) as (name without `#`, byte offset of its `#`)."""
    if data[start] == _HASH and _opens(data, start) and (match := _AT_START.match(data, start, end)):
        yield from _names(match)
        start = match.end()
    for match in _INLINE.finditer(data, start, end):
        if not _in_url(data, match.start()):
            yield from _names(match)


def tag_name(text: str) -> str | None:
    """The name of a tag from the properties, with or without `#`; None for what Obsidian takes for no tag."""
    raw = text.strip().removeprefix("#").encode("utf-8", "replace")
    return _name(raw) if _WHOLE.fullmatch(raw) else None


def full_width_mark(name: str) -> str | None:
    """The full-width punctuation in a tag: Obsidian takes it for a letter, the writer hardly did."""
    match = None if name.isascii() else _FULL_WIDTH.search(name)
    return match[0] if match else None


def _names(match: re.Match[bytes]) -> Iterator[tuple[str, int]]:
    at = match.start()
    for part in match[1].split(b"#"):
        name = _name(part)
        if name is None:
            return
        yield name, at
        at += len(part) + 1


def _name(raw: bytes) -> str | None:
    raw = raw.rstrip(b"/")
    return None if not raw or raw.isdigit() else raw.decode()


def _opens(data: bytes, start: int) -> bool:
    """Whether text that starts with `#` stands at the start of a table's cell or of a quoted line."""
    before = data[start - 1] if start else 0
    if before != _GREATER:
        return before == _BAR
    lowest = max(0, start - _LOOK_BACK)
    line = data.rfind(b"\n", lowest, start) + 1
    return (line > 0 or lowest == 0) and _QUOTE_MARKS.fullmatch(data, line, start) is not None


def _in_url(data: bytes, at: int) -> bool:
    if at == 0 or data[at - 1] not in b"*_~=":
        return False
    words = data[max(0, at - _URL_LOOK_BACK) : at].split()
    return bool(words) and (b"://" in words[-1] or words[-1].startswith(b"www."))
