"""The two walls. Only a Reader makes a Scope; a Scope narrows and never widens; no search runs without one."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from palace.errors import WallError
from palace.vocabulary import HIDDEN_STATUSES, RoomAddress

_MADE_BY_A_READER = object()


@dataclass(frozen=True, slots=True)
class Scope:
    """Cubes and places that one query may touch.

    `places` None means every place of the cubes; an empty set is refused, since an empty filter would mean
    everything. `hidden`: statuses filtered before ranking.
    """

    cubes: frozenset[str]
    places: frozenset[str] | None = None
    wings: frozenset[str] | None = None
    hidden: frozenset[str] = field(default=frozenset(HIDDEN_STATUSES))
    _key: object = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self._key is not _MADE_BY_A_READER:
            raise WallError("A scope can only be made by a reader.", "Use Reader.scope().")
        if not self.cubes or "" in self.cubes:
            raise WallError("A scope needs at least one cube.", "Give the reader a cube in the settings.")
        if self.places is not None and not self.places:
            raise WallError("A scope with an empty list of rooms would mean every room.", "Leave the rooms out.")
        if self.wings is not None and not self.wings:
            raise WallError("A scope with an empty list of wings would mean every wing.", "Leave the wings out.")

    def admits(self, cube: str, places: Iterable[str], wings: Iterable[str], status: str) -> bool:
        """Whether a point with this payload stands inside both walls: the rule that every store's filter equals."""
        return (
            cube in self.cubes
            and (self.places is None or not self.places.isdisjoint(places))
            and (self.wings is None or not self.wings.isdisjoint(wings))
            and status not in self.hidden
        )

    def sees(self, address: RoomAddress) -> bool:
        """Whether a room stands inside the scope."""
        return self.admits(address.cube, (address.place,), (address.wing,), "active")


@dataclass(frozen=True, slots=True)
class Reader:
    """Who asks: an identity with the cubes that it may read."""

    name: str
    cubes: frozenset[str]

    def scope(
        self,
        places: Iterable[str] | None = None,
        wings: Iterable[str] | None = None,
        hidden: Iterable[str] = HIDDEN_STATUSES,
    ) -> Scope:
        """The reader's scope, narrowed to places (`wing/room` keys) and wings (keys) when given."""
        return Scope(
            cubes=self.cubes,
            places=None if places is None else frozenset(places),
            wings=None if wings is None else frozenset(wings),
            hidden=frozenset(hidden),
            _key=_MADE_BY_A_READER,
        )
