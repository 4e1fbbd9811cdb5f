"""Where one search looks: from the rooms that were named to a scope of the reader's."""

import threading
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from palace.errors import UnreachableError
from palace.search.legs import State
from palace.search.rooms import Choice, choose, nearest
from palace.stores.ports import Graph
from palace.vocabulary import Room, Status
from palace.walls import Reader, Scope

_REMEMBERED = 256


@dataclass(frozen=True, slots=True)
class Where:
    """`scope`: where hits come from; `whole`: the reader's whole scope; `reason`: why nothing was narrowed as asked."""

    scope: Scope
    whole: Scope
    reason: str | None = None
    hints: tuple[str, ...] = ()

    @property
    def narrowed(self) -> bool:
        """Whether a room or wing was named and known."""
        return self.scope != self.whole

    @property
    def searched(self) -> dict[str, tuple[str, ...]]:
        """The places and wings that the scope was narrowed to; both empty when it is the whole one."""
        places = self.scope.places or frozenset()
        wings = self.scope.wings or frozenset(p.partition("/")[0] for p in places)
        return {"rooms": tuple(sorted(places)), "wings": tuple(sorted(wings))}


@dataclass(slots=True)
class Finder:
    """Finds rooms by name. The rooms of a reader are remembered until something was written."""

    graph: Graph
    state: State
    _known: dict[frozenset[str], "_Listed"] = field(default_factory=dict)
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, reader: Reader, rooms: Sequence[str], wings: Sequence[str], hidden: frozenset[Status]) -> Where:
        """The scope of those rooms and wings; of unknown ones alone, or without a graph, the whole scope with the reason."""
        whole = reader.scope(hidden=hidden)
        if not rooms and not wings:
            return Where(whole, whole)
        try:
            known = self._listed(reader)
        except UnreachableError as error:
            return Where(whole, whole, f"Rooms cannot be looked up, so the whole scope was searched: {error.message}")
        listed, choice = known.rooms, known.choice(tuple(rooms), tuple(wings))
        hints = tuple(_unknown(listed, name) for name in choice.unknown)
        if choice.places is None and (rooms or choice.wings is None):
            names = ", ".join(f"“{name}”" for name in choice.unknown)
            reason = f"This reader sees no room or wing called {names}; the whole scope was searched instead."
            return Where(whole, whole, reason, hints)
        return Where(reader.scope(choice.places, choice.wings, hidden), whole, None, hints)

    def listed(self, reader: Reader) -> list[Room]:
        """Every room of the reader's cubes."""
        return self._listed(reader).rooms

    def _listed(self, reader: Reader) -> "_Listed":
        stamp = self.state.stamp()
        with self._guard:
            known = self._known.get(reader.cubes)
        if known is None or known.stamp != stamp:
            known = _Listed(stamp, self.graph.rooms(reader.scope(hidden=())))
            with self._guard:
                self._known[reader.cubes] = known
        return known


@dataclass(slots=True)
class _Listed:
    """The rooms of a reader, and what names were found to mean among them: an injection names the same ones each time."""

    stamp: Hashable
    rooms: list[Room]
    _choices: dict[tuple[tuple[str, ...], tuple[str, ...]], Choice] = field(default_factory=dict)

    def choice(self, rooms: tuple[str, ...], wings: tuple[str, ...]) -> Choice:
        known = self._choices.get((rooms, wings))
        if known is None:
            known = choose(self.rooms, rooms, wings)
            if len(self._choices) < _REMEMBERED:
                self._choices[rooms, wings] = known
        return known


def _unknown(listed: Sequence[Room], name: str) -> str:
    near = nearest(listed, name)
    return f"No room “{name}”. Nearest: {', '.join(near)}." if near else f"No room “{name}”, and none of a near name."
