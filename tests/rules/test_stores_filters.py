"""The walls as conditions: they equal the scope, and none of them can be empty."""

import pytest

from palace.errors import WallError
from palace.stores.filters import AnyOf, any_of, wall
from palace.vocabulary import GLOBAL, HIDDEN_STATUSES
from palace.walls import Reader

CAT = Reader("dev-cat", frozenset({GLOBAL, "dev-cat"}))


def test_a_condition_without_a_value_cannot_be_made() -> None:
    with pytest.raises(WallError):
        any_of("cube_id", [])


def test_every_part_of_a_scope_becomes_a_condition() -> None:
    made = wall(CAT.scope(places=["work/garden", "home/ideas"], wings=["work"]))
    assert made.cubes == AnyOf("cube_id", ("dev-cat", "global"))
    assert made.narrowing == (AnyOf("place", ("home/ideas", "work/garden")), AnyOf("wing", ("work",)))
    assert made.hidden == AnyOf("status", tuple(sorted(HIDDEN_STATUSES)))


def test_what_a_scope_leaves_open_is_no_condition() -> None:
    made = wall(CAT.scope(hidden=()))
    assert (made.narrowing, made.hidden) == ((), None)
