"""No question of any reader, in any room, by any leg, brings a note from outside its walls."""

import json
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from palace.search.legs import LEGS
from palace.search.receipt import answer_json
from palace.search.rooms import RoomsQuery
from palace.vocabulary import HIDDEN_STATUSES, Answer
from palace.walls import Reader
from tests.flows.searching import Leaf, SmallPalace

CUBES = ("global", "cat", "dog")
WORDS = ("rose", "plan", "launch", "prune", "code")
WINGS, ROOMS = ("work", "home"), ("garden", "ideas")
PLACES = tuple(f"{wing}/{room}" for wing in WINGS for room in ROOMS)

words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
leaves = st.lists(
    st.builds(
        Leaf,
        title=words,
        texts=st.lists(words, min_size=1, max_size=3).map(tuple),
        places=st.lists(st.sampled_from(PLACES), min_size=1, max_size=2, unique=True).map(tuple),
        cube=st.sampled_from(CUBES),
        status=st.sampled_from(("active", "active", "candidate", "superseded", "rejected")),
        embedded=st.booleans(),
    ),
    max_size=8,
    unique_by=lambda leaf: leaf.ref.id,
)
readers = st.sets(st.sampled_from(CUBES), min_size=1).map(lambda cubes: Reader("r", frozenset(cubes)))
names = st.lists(st.sampled_from((*PLACES, *ROOMS, "nowhere")), max_size=2)
legs = st.sets(st.sampled_from(LEGS), min_size=1).map(frozenset)


@settings(max_examples=60, deadline=None)
@given(leaves, readers, words, names, legs)
def test_no_answer_crosses_a_wall(
    leaves: list[Leaf], reader: Reader, query: str, rooms: list[str], legs: frozenset[str]
) -> None:
    answer = SmallPalace(leaves, legs=legs).searcher().search(query, reader, rooms=rooms, limit=100)
    by_ref = {str(leaf.ref.id): leaf for leaf in leaves}
    searched = set(answer.receipt.searched["rooms"])
    for hit in answer.hits:
        leaf = by_ref[hit.ref]
        assert leaf.cube in reader.cubes
        assert leaf.status not in HIDDEN_STATUSES
        assert not searched or not searched.isdisjoint(leaf.places)
    for other in answer.elsewhere:
        leaf = by_ref[other.ref]
        assert leaf.cube in reader.cubes
        assert leaf.status not in HIDDEN_STATUSES
        assert searched.isdisjoint(leaf.places)
    assert_silent(answer, leaves, reader)
    assert set(answer.receipt.cubes) == reader.cubes


def assert_silent(answer: Answer, leaves: Sequence[Leaf], reader: Reader) -> None:
    """Not even a ref of a note outside stands anywhere in what is printed."""
    shown = json.dumps(answer_json(answer))
    assert all(leaf.ref.id not in shown for leaf in leaves if leaf.cube not in reader.cubes)


@settings(max_examples=25, deadline=None)
@given(leaves, readers, words, names)
def test_what_others_keep_changes_no_answer(leaves: list[Leaf], reader: Reader, query: str, rooms: list[str]) -> None:
    own = [leaf for leaf in leaves if leaf.cube in reader.cubes]
    with_others = SmallPalace(leaves).searcher().search(query, reader, rooms=rooms)
    alone = SmallPalace(own).searcher().search(query, reader, rooms=rooms)
    assert answer_json(with_others) == answer_json(alone)


@settings(max_examples=25, deadline=None)
@given(leaves, readers, words)
def test_what_others_keep_changes_no_list_of_rooms(leaves: list[Leaf], reader: Reader, query: str) -> None:
    own = [leaf for leaf in leaves if leaf.cube in reader.cubes]
    listed = SmallPalace(leaves).searcher().rooms(reader, RoomsQuery(query))
    assert listed == SmallPalace(own).searcher().rooms(reader, RoomsQuery(query))
    assert {r.address.cube for r in listed.rooms} <= reader.cubes
