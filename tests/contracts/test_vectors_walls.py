"""For any points and any reader: what a store answers stands inside both walls, whole, and as the memory store has it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palace.stores.memory import MemoryVectors
from palace.stores.ports import Point, Scored, VectorStore
from palace.vocabulary import HIDDEN_STATUSES, ChunkId, Status
from palace.walls import Reader, Scope
from tests.contracts.stores import (
    CUBES,
    DIMENSIONS,
    PLACES,
    chunk_id,
    emptied_vectors,
    note_id,
    payload,
    point,
    unit,
    words,
)

SHARED = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
PATHS = ("a.md", "b.md", "c.md", "d.md", "e.md")
places = st.lists(st.sampled_from(PLACES), unique=True, max_size=3)
statuses = st.sampled_from([str(s) for s in Status])
cubes = st.sampled_from(CUBES)
dense = st.none() | st.tuples(*[st.integers(-3, 3)] * 3).filter(any).map(lambda v: unit(*v))
sparse = st.lists(st.integers(1, 6), unique=True, max_size=4).map(lambda tokens: words(*tokens))
points = st.builds(
    point,
    st.sampled_from(PATHS),
    st.integers(0, 4),
    cubes,
    places,
    statuses,
    dense,
    sparse,
)


@dataclass(frozen=True)
class Narrowing:
    cubes: frozenset[str]
    places: frozenset[str] | None
    wings: frozenset[str] | None
    hidden: frozenset[str]

    def scope(self) -> Scope:
        return Reader("any", self.cubes).scope(self.places, self.wings, self.hidden)

    def holds(self, own: Point) -> bool:
        """The rule, said once more and apart from the program's own words for it."""
        p = own.payload
        in_place = self.places is None or any(f"{w}" in self.places for w in p.place)
        in_wing = self.wings is None or any(place.split("/")[0] in self.wings for place in p.place)
        return p.cube_id in self.cubes and in_place and in_wing and p.status not in self.hidden


narrowings = st.builds(
    Narrowing,
    st.frozensets(cubes, min_size=1),
    st.none() | st.frozensets(st.sampled_from(PLACES), min_size=1),
    st.none() | st.frozensets(st.sampled_from(["work", "home", "never"]), min_size=1),
    st.just(frozenset(map(str, HIDDEN_STATUSES))) | st.frozensets(statuses),
)


@SHARED
@given(st.lists(points, max_size=25), narrowings)
def test_no_leg_crosses_a_wall_and_none_falls_short(
    opened_vectors: VectorStore, written: list[Point], narrowing: Narrowing
) -> None:
    store = emptied_vectors(opened_vectors)
    store.upsert(written)
    last = {p.id: p for p in written}
    inside = {i for i, p in last.items() if narrowing.holds(p)}
    scope = narrowing.scope()
    embedded = {i for i in inside if last[i].dense is not None}
    assert {s.id for s in store.dense(unit(1), scope, 100)} == embedded
    asked = words(1, 2, 3)
    holding = {i for i in inside if set(last[i].sparse.indices) & set(asked.indices)}
    assert {s.id for s in store.sparse(asked, scope, 100)} == holding
    assert {r.id for r in store.retrieve(sorted(last), scope)} == inside
    assert store.count(scope) == len(inside)
    assert store.share(scope) == pytest.approx(len(embedded) / len(inside) if inside else 1.0)
    assert store.waiting() == sum(p.dense is None for p in last.values())


Operation = Callable[[VectorStore], object]


def _set_rooms(path: str, cube: str, new: Sequence[str], status: str) -> Operation:
    own = payload(path, places=new)
    changes = {"place": own.place, "wing": own.wing, "room": own.room, "status": status}
    return lambda store: store.set_payload(note_id(path, cube), changes)


notes = st.tuples(st.sampled_from(PATHS), cubes).map(lambda n: note_id(*n))
chunks = st.tuples(st.sampled_from(PATHS), st.integers(0, 4), cubes).map(lambda c: chunk_id(*c))
vector = st.tuples(*[st.integers(-3, 3)] * 3).filter(any).map(lambda v: unit(*v))
operations: st.SearchStrategy[Operation] = st.one_of(
    st.lists(points, max_size=8).map(lambda ps: lambda store: store.upsert(ps)),
    st.lists(st.tuples(chunks, vector), max_size=5).map(lambda vs: lambda store: store.set_dense(vs)),
    st.builds(_set_rooms, st.sampled_from(PATHS), cubes, places, statuses),
    st.lists(notes, max_size=2).map(lambda ids: lambda store: store.forget(ids)),
    st.lists(chunks, max_size=3).map(lambda ids: lambda store: store.forget_chunks(ids)),
)


@SHARED
@given(st.lists(operations, max_size=12), narrowings)
def test_after_any_writes_a_store_equals_the_memory_store(
    opened_vectors: VectorStore, writes: list[Operation], narrowing: Narrowing
) -> None:
    store, yardstick = emptied_vectors(opened_vectors), MemoryVectors(DIMENSIONS)
    for write in writes:
        write(store)
        write(yardstick)
    scope = narrowing.scope()
    assert sorted(store.scroll(), key=lambda r: r.id) == list(yardstick.scroll())
    same_ranking(store.dense(unit(1, 2), scope, 100), yardstick.dense(unit(1, 2), scope, 100))
    same_ranking(store.sparse(words(1, 2, 3), scope, 100), yardstick.sparse(words(1, 2, 3), scope, 100))
    same_ranking(store.sparse(words(4, 2), scope, 3), yardstick.sparse(words(4, 2), scope, 3))
    assert (store.count(scope), store.waiting()) == (yardstick.count(scope), yardstick.waiting())
    assert store.share(scope) == pytest.approx(yardstick.share(scope))


def same_ranking(found: list[Scored], wanted: list[Scored]) -> None:
    """Equal scores in order; equal ids but for ties, which a store may order, and cut, as it likes."""
    assert [s.score for s in found] == pytest.approx([s.score for s in wanted], rel=1e-4, abs=1e-5)
    lowest = wanted[-1].score + 1e-4 if wanted else 0.0
    assert {s.id: s.note_id for s in found if s.score > lowest} == {s.id: s.note_id for s in wanted if s.score > lowest}
    assert ranked_apart(found) == ranked_apart(wanted)


def ranked_apart(found: list[Scored]) -> list[ChunkId]:
    """Ids whose score no other one is near, best first, the last one left out since it may be cut from a tie."""
    scores = [s.score for s in found]
    return [s.id for s in found[:-1] if sum(abs(s.score - other) < 1e-4 for other in scores) == 1]
