"""Names as identities: NFC, folding, room keys. Pure."""

import re
import unicodedata

from palace.vocabulary import RESERVED_ROOMS

# Letters of other scripts that look like the letters of the reserved names (Unicode TR39, the part that bites here).
_CONFUSABLES = str.maketrans(
    {
        "а": "a", "ɑ": "a", "α": "a", "с": "c", "ϲ": "c", "ԁ": "d", "е": "e", "ҽ": "e", "ƒ": "f", "ɡ": "g", "ց": "g",
        "і": "i", "ι": "i", "ı": "i", "ӏ": "l", "ⅼ": "l", "ⅿ": "m", "м": "m", "ո": "n", "ѕ": "s", "т": "t", "τ": "t",
        "у": "y", "γ": "y", "ү": "y", "г": "r", "о": "o", "ο": "o", "υ": "u", "ս": "u", "ν": "v", "ѵ": "v", "ԝ": "w", "ѡ": "w",
        "-": "_", " ": "_", "‐": "_", "–": "_",
    }
)  # fmt: skip
_INVISIBLE = re.compile(
    r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
)


def nfc(text: str) -> str:
    """The normal form that identities are kept in; macOS hands out NFD."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def fold(text: str) -> str:
    """NFC and case-folded: equal for spellings that people take for one name."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def room_key(label: str) -> str:
    """A room's or wing's key from what people typed. `PS5` and `ps5` are one."""
    return fold(label.strip())


def reserved(label: str) -> str | None:
    """The reserved room that a label is, or could be taken for (full-width, Cyrillic, hyphen), else None."""
    skeleton = unicodedata.normalize("NFKC", _INVISIBLE.sub("", label)).casefold()
    skeleton = unicodedata.normalize("NFKD", skeleton).translate(_CONFUSABLES)
    skeleton = "".join(c for c in skeleton if not unicodedata.combining(c)).strip("_")
    return skeleton if skeleton in RESERVED_ROOMS else None


class _Plain(dict[int, str]):
    """Code points to the one letter that people would take them for, worked out when first asked for."""

    def __missing__(self, code: int) -> str:
        letter = unicodedata.normalize("NFKD", chr(code))[0].casefold()[0]
        self[code] = plain = letter.translate(_CONFUSABLES)
        return plain


_PLAIN = _Plain()


def plain_letters(text: str) -> str:
    """The text as it looks, letter for letter (the same length): width, case, accents and look-alikes folded."""
    return text.translate(_PLAIN)
