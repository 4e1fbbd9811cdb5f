"""The walls (`palace.stores.filters`) as the embedded engine's filters."""

from collections.abc import Iterable

from qdrant_edge import FieldCondition, Filter, HasVectorCondition, MatchAny, MatchValue

from palace.stores import filters
from palace.stores.filters import DENSE, AnyOf
from palace.walls import Scope

# Up to here one condition a value is faster than MatchAny over a wide scope (60 000 points: 2.7 ms against 9.6), beyond slower.
_FEW = 12


def any_of(key: str, values: Iterable[str]) -> list[FieldCondition]:
    """Conditions of which one has to hold. Raises WallError when there is no value."""
    return _conditions(filters.any_of(key, values))


def wall(scope: Scope, *, hide: bool = True, embedded: bool = False) -> Filter:
    """What stands inside a scope; the rule is `Scope.admits`.

    `hide` False leaves out the condition on the status: for a store that holds no note of a hidden status, where it
    would cost more than the search. `embedded`: only points with a dense vector.
    """
    rule = filters.wall(scope)
    must: list[FieldCondition | Filter | HasVectorCondition] = []
    for one in rule.narrowing:
        conditions = _conditions(one)
        must += conditions if len(conditions) == 1 else [Filter(should=list(conditions))]
    if embedded:
        must.append(HasVectorCondition(DENSE))
    hidden = _conditions(rule.hidden) if hide and rule.hidden else []
    # The cubes stand at the top, not in a nested filter: so the engine walks their index instead of testing each point.
    return Filter(should=list(_conditions(rule.cubes)), must=list(must), must_not=list(hidden))


def in_cubes(scope: Scope) -> list[FieldCondition]:
    """The scope's cubes."""
    return any_of("cube_id", scope.cubes)


def _conditions(one: AnyOf) -> list[FieldCondition]:
    if len(one.values) > _FEW:
        return [FieldCondition(key=one.key, match=MatchAny(any=list(one.values)))]
    return [FieldCondition(key=one.key, match=MatchValue(value=v)) for v in one.values]
