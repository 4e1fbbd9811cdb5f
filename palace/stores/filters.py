"""The walls as conditions, apart from any engine: engines take an empty filter for "everything", so none can be made here."""

from collections.abc import Iterable
from dataclasses import dataclass

from palace.errors import WallError
from palace.walls import Scope

DENSE = "dense"
BM25 = "bm25"
"""The names of a point's vectors."""


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A payload key that has to hold one of these values; there is at least one, sorted."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wall:
    """What stands inside a scope: in one of its cubes, inside each narrowing, and of no hidden status."""

    cubes: AnyOf
    narrowing: tuple[AnyOf, ...]
    hidden: AnyOf | None


def any_of(key: str, values: Iterable[str]) -> AnyOf:
    """A condition on a key. Raises WallError when there is no value."""
    wanted = tuple(sorted(values))
    if not wanted:
        raise WallError(f"A filter on {key} without a value would mean everything.", "This is a bug; please report it.")
    return AnyOf(key, wanted)


def wall(scope: Scope) -> Wall:
    """The conditions that equal `Scope.admits`."""
    narrowing = (("place", scope.places), ("wing", scope.wings))
    return Wall(
        cubes=any_of("cube_id", scope.cubes),
        narrowing=tuple(any_of(key, values) for key, values in narrowing if values is not None),
        hidden=any_of("status", scope.hidden) if scope.hidden else None,
    )
