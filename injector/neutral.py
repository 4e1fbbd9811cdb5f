"""Other people's text made harmless inside a prompt: nothing in it can close its fence or speak to a template. Pure.

What a note says stays readable. That it is no instruction is the fence's business, not this module's.
"""

import re

from palace.names import plain_letters

NOTES = "dualwall-untrusted-notes"
"""The marker of the fence around recalled notes."""
DIRECTIVE = "dualwall-directive"
"""The marker around the agent's own directives."""
BROKEN = "[fence]"
"""What stands where a text had one of the markers."""

_LINE_ENDS = re.compile(r"\r\n?|[\v\f\x85\u2028\u2029]")
# Unicode's Default_Ignorable_Code_Point, controls, half characters, annotation marks, format marks of rare scripts.
_INVISIBLE = re.compile(
    "[\\x00-\\x08\\x0e-\\x1f\\x7f-\\x9f\\u00ad\\u034f\\u061c\\u070f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f"
    "\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164\\ud800-\\udfff\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff0-\\ufffb"
    "\\ufffe\\uffff\\U00013430-\\U00013455\\U0001bca0-\\U0001bca3\\U0001d173-\\U0001d17a\\U000e0000-\\U000e0fff]"
)
_TEMPLATE = re.compile(r"\{(?=[{%#])|<(?=[%|])")
"""Openings of Jinja, Handlebars and the like, of ERB, and of the special tokens of chat models."""


def _marker(*markers: str) -> re.Pattern[str]:
    """Any spelling of a marker in `plain_letters`: blanks, dashes and accents between its letters do not count."""
    spelled = "|".join(r"[\W_]*+".join(re.sub(r"\W", "", marker)) for marker in markers)
    return re.compile(rf"(?:<[\s/_]*+)?(?:{spelled})(?:[\s/_]*+>)?")


_MARKERS = _marker(NOTES, DIRECTIVE)


def neutralise(text: str) -> str:
    """The text without invisible and bidirectional characters, its line ends made one, markers and templates broken.

    Doing it twice changes nothing more.
    """
    visible = _INVISIBLE.sub("", _LINE_ENDS.sub("\n", text))
    return _TEMPLATE.sub(r"\g<0> ", _without_markers(visible))


def one_line(text: str) -> str:
    """The same on one line: for titles, paths and headings."""
    return " ".join(neutralise(text).split())


def _without_markers(text: str) -> str:
    parts, at = [], 0
    for match in _MARKERS.finditer(plain_letters(text)):
        parts += [text[at : match.start()], BROKEN]
        at = match.end()
    return "".join([*parts, text[at:]])
