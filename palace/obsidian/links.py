"""Links: their parts, and which note they mean by Obsidian's rules. Pure."""

import re
from collections.abc import Iterable, Sequence
from posixpath import dirname
from urllib.parse import unquote

from palace.names import fold

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:|//")
_MD = ".md"


def parts(link: str) -> tuple[str, str | None, str | None]:
    """Target, heading and block of a link as written: `page#a#b` has the heading `a#b`, `page#^b` the block `b`."""
    target, mark, sub = link.partition("#")
    if not mark or not sub:
        return target.strip(), None, None
    if sub.startswith("^"):
        return target.strip(), None, sub[1:]
    return target.strip(), sub, None


def wikilink(inner: str) -> tuple[str, str | None] | None:
    """Link and alias of what stands between `[[` and `]]`; None for what is no link to Obsidian."""
    bar = inner.find("|")
    # A bar in the first place separates nothing: `[[|x]]` is a link to `|x`.
    link, alias = (inner[:bar].removesuffix("\\"), inner[bar + 1 :].strip()) if bar > 0 else (inner, None)
    link = link.strip()
    return None if not link or "\n" in inner else (link, alias)


def markdown_link(destination: str) -> str | None:
    """The link of a Markdown link's destination, percent-decoded; None for an address outside the vault."""
    if not destination or _SCHEME.match(destination):
        return None
    if "%" not in destination:
        return destination
    try:
        return unquote(destination, errors="strict")
    except UnicodeDecodeError:
        return destination


def link_key(target: str) -> str:
    """What a link and every note that it could mean have in common: the folded file name without `.md`."""
    return fold(target.rsplit("/", 1)[-1]).removesuffix(_MD)


def resolve(target: str, source_path: str, candidates: Sequence[str]) -> str | None:
    """The path that a link in `source_path` means, among `candidates`: paths with the target's `link_key`.

    Case-insensitive: the exact path, then the same folder, then the shortest path; `./`, `../` and `/` are exact.
    An empty target is the note itself. Spellings of the target's own case win a tie, then the alphabet.
    """
    if not target:
        return source_path
    if target.startswith(("./", "../", "/")):
        path = _absolute(target, dirname(source_path))
        return None if path is None else _named(path, candidates)
    exact = _named(target, candidates)
    if exact is not None:
        return exact
    near = f"{dirname(source_path)}/{target}".removeprefix("/")
    return _named(near, candidates) or _shortest(target, candidates)


class LinkIndex:
    """Every path of a vault by its `link_key`."""

    def __init__(self, paths: Iterable[str] = ()) -> None:
        self._by_key: dict[str, list[str]] = {}
        for path in paths:
            self.add(path)

    def add(self, path: str) -> None:
        """A note came; adding it again changes nothing."""
        named = self._by_key.setdefault(link_key(path), [])
        if path not in named:
            named.append(path)

    def discard(self, path: str) -> None:
        """A note went."""
        named = self._by_key.get(link_key(path), [])
        if path in named:
            named.remove(path)

    def candidates(self, target: str) -> Sequence[str]:
        """The paths that a link could mean."""
        return self._by_key.get(link_key(target), ())

    def resolve(self, target: str, source_path: str) -> str | None:
        """The path that a link in `source_path` means, or None."""
        return resolve(target, source_path, self.candidates(target))


def _absolute(target: str, folder: str) -> str | None:
    """The path of `./x`, `../x` or `/x` from a folder; None when it leads out of the vault."""
    steps = [] if target.startswith("/") else [s for s in folder.split("/") if s]
    for step in target.split("/"):
        if step == "..":
            if not steps:
                return None
            steps.pop()
        elif step not in {"", "."}:
            steps.append(step)
    return "/".join(steps)


def _named(path: str, candidates: Sequence[str]) -> str | None:
    """The candidate that has this path, in any case."""
    for wanted in _spellings(path):
        folded = fold(wanted)
        found = [c for c in candidates if fold(c) == folded]
        if found:
            return min(found, key=lambda c, w=wanted: (c != w, c))  # type: ignore[misc]
    return None


def _shortest(target: str, candidates: Sequence[str]) -> str | None:
    """The shortest candidate whose path ends in the target."""
    for wanted in _spellings("/" + target):
        folded = fold(wanted)
        found = [c for c in candidates if fold("/" + c).endswith(folded)]
        if found:
            return min(found, key=lambda c, w=wanted: (len(c), not ("/" + c).endswith(w), c))  # type: ignore[misc]
    return None


def _spellings(path: str) -> tuple[str, ...]:
    """A link may leave `.md` out; a file of exactly the written name comes first."""
    return (path,) if fold(path).endswith(_MD) else (path, path + _MD)
