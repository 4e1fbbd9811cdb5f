"""Answers for people: the JSON of contract.md as text. Pure, but for colours where there is a terminal."""

import shutil
import textwrap
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import click

_Object: TypeAlias = Mapping[str, Any]

_EXCERPT_LINES = 6
_LIKE_IT = 3
"""Problems of one kind that are shown, when there are more."""
_WIDTH = 140
"""Columns at most; notes are often cut at 120 already."""


def answer(found: _Object, *, explain: bool) -> str:
    """A search's answer with its receipt."""
    lines: list[str] = []
    if found["fallback"]:
        lines += [click.style(str(found["reason"]), fg="yellow"), ""]
    if found["status"] == "miss":
        lines += [click.style("Nothing here answers that.", bold=True), ""]
    for number, hit in enumerate(found["hits"], start=1):
        lines += _hit(number, hit, explain=explain)
    lines += _hints(found["hints"]) + _elsewhere(found["elsewhere"]) + _receipt(found["receipt"], explain=explain)
    return "\n".join(lines)


def rooms(found: _Object) -> str:
    """Rooms by wing, with counts; in the order given when there was a query."""
    listed = found["rooms"]
    if not listed:
        return "There is no room yet. Run: dualwall nightly"
    names = [f"{room['wing']}/{room['label']}" for room in listed]
    width = min(max(map(_columns, names)), 48)
    lines = []
    for name, room in zip(names, listed, strict=True):
        cube = "" if room["cube"] == "global" else f"  [{room['cube']}]"
        score = "" if room["score"] is None else f"  {room['score']:.2f}"
        about = f"  {room['description']}" if room["description"] else ""
        lines.append(
            f"{name}{' ' * (width - _columns(name))}  {_count(room['notes'], 'note'):>9}{score}{cube}{click.style(about, dim=True)}"
        )
    if found["next"]:
        lines.append(f"There is more: --cursor {found['next']}")
    return "\n".join(lines)


def note(found: _Object) -> str:
    """A note's text under a line that says which bytes it is."""
    stale = click.style("  (stale: the file has changed since)", fg="yellow") if found["stale"] else ""
    head = f"{click.style(str(found['title']), bold=True)}  {found['path']}  in {', '.join(found['rooms'])}{stale}"
    return f"{head}\n{click.style('sha256 ' + found['note_sha256'], dim=True)}\n\n{found['text']}"


def neighborhood(found: _Object) -> str:
    """Links, backlinks, notes with the same tags, and links to nothing."""
    lines: list[str] = []
    for title, key in (("Links to", "links"), ("Linked from", "backlinks"), ("Same tags", "shared_tags")):
        if found[key]:
            lines.append(click.style(title, bold=True))
            lines += [
                f"  {other['title']}  {click.style(other['path'], dim=True)}  {other['via']}" for other in found[key]
            ]
    if found["unresolved"]:
        lines.append(click.style("Links to nothing yet", bold=True))
        lines += [f"  {_unresolved(link)}" for link in found["unresolved"]]
    return "\n".join(lines) or "Nothing links to this note, and it links to nothing."


def injection(found: _Object, *, explain: bool) -> str:
    """Both blocks as an agent gets them, and their receipt."""
    receipt = found["receipt"]
    blocks = [block for block in (found["directive"], found["recall"]) if block]
    line = (
        f"Receipt: {receipt['reader']} gets {_count(len(receipt['included']), 'entry', 'entries')} of "
        f"{receipt['tokens']} tokens, {len(receipt['left_out'])} left out{', late' if receipt['late'] else ''}"
    )
    told = [click.style(line, dim=True)]
    if explain:
        told += [f"  {one['channel']:<9}  {one['tokens']} tokens  ref {one['ref']}" for one in receipt["included"]]
        told += [
            f"  left out   {one['reason']}{f'  ref {ref}' if (ref := one['ref']) else ''}"
            for one in receipt["left_out"]
        ]
    return "\n\n".join([*(blocks or ["Nothing goes before this response."]), "\n".join(told)])


def status(found: _Object) -> str:
    """Each file's state if there are files, then the counts."""
    return "\n".join([*_files(found.get("files") or ()), _table(found)])


def differences(found: _Object, *, repaired: bool) -> str:
    """Counts, each difference, and what to do about them."""
    lines = [_table(found), *(f"  {difference}" for difference in found["differences"])]
    if found["differences"]:
        lines.append(
            "Now run: dualwall ingest" if repaired else "Mend it: dualwall verify --repair, then dualwall ingest"
        )
    return "\n".join(lines)


def problems(listed: Sequence[_Object]) -> str:
    """Problems by kind, the rarest first, each with its place and what to do; of many of a kind the first few."""
    kinds: dict[str, list[_Object]] = {}
    for one in listed:
        kinds.setdefault(str(one["code"]), []).append(one)
    lines: list[str] = []
    for kind in sorted(kinds.values(), key=len):
        shown = kind if len(kind) <= _LIKE_IT + 1 else kind[:_LIKE_IT]
        for one in shown:
            place = one["path"] if one["line"] is None else f"{one['path']}:{one['line']}"
            lines.append(f"  {place}  {one['message']}")
        if len(shown) < len(kind):
            lines.append(f"  … and {len(kind) - len(shown)} more of this kind (--json lists them all)")
        hints = dict.fromkeys(str(one["hint"]) for one in shown if one["hint"])
        lines += [f"    {hint}" for hint in hints]
    return "\n".join(lines)


def _hit(number: int, hit: _Object, *, explain: bool) -> Iterator[str]:
    first, last = hit["lines"]
    stale = click.style("  stale", fg="yellow") if hit["stale"] else ""
    yield f"{number}. {click.style(hit['title'], bold=True)}{_heading(hit)}"
    yield f"   {hit['path']}:{first}-{last}  in {', '.join(hit['rooms'])}{stale}"
    parts = [f"score {hit['score']:.2f}", f"sha256 {hit['note_sha256'][:12]}"]
    if explain:
        parts += [f"{leg} {_plain(score)}" for leg, score in hit["legs"].items()]
        parts += [f"cube {hit['cube']}", hit["status"], f"by {hit['trust']}", f"ref {hit['ref']}"]
    yield click.style(f"   {'  '.join(parts)}", dim=True)
    yield from (f"   │ {line}" for line in _excerpt(hit["text"]))
    yield ""


def _heading(hit: _Object) -> str:
    """The headings above the passage, but for one that only says the title again."""
    heading = str(hit["heading"]).removeprefix(str(hit["title"])).removeprefix(" > ")
    return f"  › {heading}" if heading else ""


def _excerpt(text: str) -> list[str]:
    width = min(shutil.get_terminal_size((_WIDTH, 24)).columns, _WIDTH) - 8
    lines = [part for line in text.strip().splitlines() for part in textwrap.wrap(line, _letters(line, width)) or [""]]
    return [*lines[:_EXCERPT_LINES], "…"] if len(lines) > _EXCERPT_LINES else lines


def _columns(text: str) -> int:
    """How wide a terminal shows it: Chinese, Japanese and Korean letters take two columns."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _letters(line: str, columns: int) -> int:
    """How many of a line's letters fill so many columns."""
    return columns * len(line) // max(_columns(line), 1) or 1


def _hints(hints: Sequence[str]) -> list[str]:
    return [*(f"Hint: {hint}" for hint in hints), ""] if hints else []


def _elsewhere(others: Sequence[_Object]) -> list[str]:
    if not others:
        return []
    found = [f"   {one['title']}  in {', '.join(one['rooms'])}  score {one['score']:.2f}" for one in others]
    return ["Stronger outside the rooms that you named:", *found, ""]


def _receipt(receipt: _Object, *, explain: bool) -> list[str]:
    searched = ", ".join(receipt["searched"]["rooms"] or receipt["searched"]["wings"]) or "every room"
    share = receipt["dense_share"]
    dense = "" if share >= 1 else f", {share:.0%} of the dense vectors are there"
    line = f"Receipt: {receipt['reader']} ({', '.join(receipt['cubes'])}) searched {searched}, generation {receipt['generation']}{dense}"
    if explain:
        line += f"\n  at {receipt['time']}; legs {_pairs(receipt['legs'])}; floors {_pairs(receipt['floors'])}; model {receipt['model']}"
    return [click.style(line, dim=True)]


def _pairs(values: _Object) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items()) or "none"


def _table(values: _Object) -> str:
    """Names and values, one a line; lists are counted."""
    rows = [(name.replace("_", " "), _plain(value)) for name, value in values.items() if name != "files"]
    width = max((len(name) for name, _ in rows), default=0)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in rows)


def _files(listed: Iterable[_Object]) -> Iterator[str]:
    """One line a file: its state, where it is, its rooms or why it has none."""
    for one in listed:
        cube = "" if one["cube"] == "global" else f"[{one['cube']}] "
        yield f"{_state(one['state'])}  {cube}{one['path']}  {one['reason'] or ', '.join(one['rooms'])}"


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_plain(inner)}" for name, inner in value.items()) or "none"
    if isinstance(value, list | tuple):
        return str(len(value))
    if isinstance(value, float):
        return f"{value:.3g}"
    return "–" if value is None else str(value)


def _state(state: str) -> str:
    colour = {"indexed": "green", "stale": "yellow", "quarantined": "red"}.get(state, "white")
    return click.style(f"{state:<11}", fg=colour)


def _unresolved(link: object) -> str:
    if isinstance(link, Mapping):
        return f"{link.get('link')}  line {link.get('line')}"
    return "  line ".join(map(str, link)) if isinstance(link, list | tuple) else str(link)


def _count(number: int, what: str, many: str = "") -> str:
    return f"{number} {what}" if number == 1 else f"{number} {many or f'{what}s'}"


def parsed(seen: _Object) -> str:
    """What is in one file, a line each."""
    lines = [click.style(str(seen["path"]), bold=True)]
    lines += [f"  property   {name}: {value}" for name, value in seen["properties"].items()]
    lines += [f"  alias      {alias}" for alias in seen["aliases"]]
    lines += [f"  tag        #{tag}" for tag in seen["tags"]]
    lines += [f"  heading    {'#' * one['level']} {one['text']}  (line {one['line']})" for one in seen["headings"]]
    for one in seen["links"]:
        shown = f" shown as {one['alias']}" if one["alias"] else ""
        lines.append(f"  {'embed' if one['embed'] else 'link':<10} {one['link']}{shown}  (line {one['line']})")
    lines += [f"  problem    {one['message']}  (line {one['line']})  {one['hint']}" for one in seen["problems"]]
    return "\n".join(lines)
