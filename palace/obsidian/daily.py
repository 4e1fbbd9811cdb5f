"""Daily notes: the date in a path, by a Moment format. Pure."""

import re
from calendar import month_abbr, month_name
from collections.abc import Callable
from datetime import date, timedelta
from functools import lru_cache

from palace.names import fold

_TOKEN = re.compile(
    r"\[([^\[\]]*)\]|Mo|MM?M?M?|Do|DDDo|DD?D?D?|dddd|ddd|dd|do|d|wo|ww|w|Wo|WW|W|Qo|Q|YYYY|YY|Y|gggg|gg|GGGG|GG|E|e"
    r"|HH|H|hh|h|kk|k|mm|m|ss|s|S+|A|a|X|x|ZZ|Z|.",
    re.DOTALL,
)
_ORDINAL = r"(\d{1,3})(?:st|nd|rd|th)"
_NUMBER = r"(\d{1,2})"
_NAME = r"([^\W\d_]+\.?)"
_PATTERNS = {
    "YYYY": r"(\d{4})", "Y": r"(\d{4})", "GGGG": r"(\d{4})", "gggg": r"(\d{4})", "YY": r"(\d{2})", "GG": r"(\d{2})",
    "gg": r"(\d{2})", "MM": r"(\d{2})", "M": _NUMBER, "MMM": _NAME, "MMMM": _NAME, "Mo": _ORDINAL, "DD": r"(\d{2})",
    "D": _NUMBER, "Do": _ORDINAL, "DDD": r"(\d{1,3})", "DDDD": r"(\d{3})", "DDDo": _ORDINAL, "d": r"(\d)",
    "do": _ORDINAL, "dd": _NAME, "ddd": _NAME, "dddd": _NAME, "E": r"([1-7])", "e": r"(\d)", "w": _NUMBER, "ww": r"(\d{2})",
    "wo": _ORDINAL, "W": _NUMBER, "WW": r"(\d{2})", "Wo": _ORDINAL, "Q": r"([1-4])", "Qo": _ORDINAL, "A": _NAME, "a": _NAME,
    "X": r"(\d+)", "x": r"(\d+)", "Z": r"([+-]\d\d:\d\d)", "ZZ": r"([+-]\d{4})",
}  # fmt: skip
_TIME = frozenset("HhkmsS")
_MEANINGS: dict[str, str] = {
    "YYYY": "year", "Y": "year", "YY": "year", "M": "month", "MM": "month", "Mo": "month", "MMM": "month", "MMMM": "month",
    "D": "day", "DD": "day", "Do": "day", "DDD": "yearday", "DDDD": "yearday", "DDDo": "yearday", "GGGG": "isoyear",
    "GG": "isoyear", "W": "isoweek", "WW": "isoweek", "Wo": "isoweek", "E": "isoday",
}  # fmt: skip
_MONTHS = {name.lower(): i for names in (month_name, month_abbr) for i, name in enumerate(names) if name}
_PIVOT = 68
"""Two digits up to this are years after 2000."""


def daily_date(path: str, folder: str, format: str) -> date | None:  # noqa: A002 - what Obsidian calls it
    """The day of a daily note; None for a path that is none.

    `path`: in the vault, with `.md`; `folder`: "" for the vault's top; `format`: Moment's, may hold folders
    (`YYYY/MM/YYYY-MM-DD`). Names of months are read in English.
    """
    inside = f"{folder.strip('/')}/".lstrip("/")
    if not path.lower().endswith(".md") or not fold(path).startswith(fold(inside)):
        return None
    pattern, tokens = _compiled(format)
    match = pattern.fullmatch(path[len(inside) : -len(".md")])
    return None if match is None else _date(tokens, match.groups())


@lru_cache(maxsize=64)
def _compiled(format: str) -> tuple[re.Pattern[str], tuple[str, ...]]:  # noqa: A002
    pattern, tokens = [], []
    for match in _TOKEN.finditer(format):
        token = match[0]
        found = _PATTERNS.get(token) or (_NUMBER if token[0] in _TIME and len(token) <= 2 else None)
        if match[1] is not None:
            pattern.append(re.escape(match[1]))
        elif token.startswith("S"):
            pattern.append(r"(\d+)")
            tokens.append(token)
        elif found:
            pattern.append(found)
            tokens.append(token)
        else:
            pattern.append(re.escape(token))
    return re.compile("".join(pattern), re.IGNORECASE), tuple(tokens)


def _date(tokens: tuple[str, ...], texts: tuple[str, ...]) -> date | None:
    found: dict[str, int] = {}
    for token, text in zip(tokens, texts, strict=True):
        meaning = _MEANINGS.get(token)
        value = _value(token, text)
        if meaning is None or value is None:
            continue
        if found.setdefault(meaning, value) != value:  # `2024/05/2024-06-01` is no day
            return None
    for needed, make in _MAKERS:
        if all(part in found for part in needed):
            try:
                return make(*(found[part] for part in needed))
            except (ValueError, OverflowError):
                return None
    return None


def _value(token: str, text: str) -> int | None:
    """The number that a token's text stands for; None for a month's name in another language."""
    if not text.isdecimal():
        return _MONTHS.get(text.lower().rstrip("."))
    number = int(text)
    return number + (2000 if number <= _PIVOT else 1900) if token in {"YY", "GG"} else number


def _of_year(year: int, day: int) -> date:
    found = date(year, 1, 1) + timedelta(days=day - 1)
    if found.year != year:
        raise ValueError(day)
    return found


_MAKERS: tuple[tuple[tuple[str, ...], Callable[..., date]], ...] = (
    (("year", "month", "day"), date),
    (("year", "yearday"), _of_year),
    (("isoyear", "isoweek", "isoday"), date.fromisocalendar),
)
