"""What every vector store does alike."""

from collections.abc import Callable, Iterable

import numpy as np
import pytest

from palace.errors import StoreError, WallError
from palace.stores.memory import MemoryVectors
from palace.stores.ports import Point, Scored, Sparse, Vector, VectorStore
from palace.vocabulary import ChunkId
from palace.walls import Scope
from tests.contracts.stores import (
    ALL,
    CAT,
    DIMENSIONS,
    ME,
    chunk_id,
    note_id,
    payload,
    point,
    unit,
    words,
)


def ids(found: list[Scored]) -> list[ChunkId]:
    return [s.id for s in found]


def test_what_was_written_is_read_back_whole(vectors: VectorStore) -> None:
    written = point("a.md", 1, places=("work/garden", "home/ideas"), dense=unit(1))
    vectors.upsert([written])
    [record] = vectors.retrieve([written.id], ME.scope())
    assert record.payload == written.payload
    assert record.has_dense
    assert list(vectors.scroll()) == [record]


def test_an_upsert_twice_is_an_upsert_once(vectors: VectorStore) -> None:
    points = [point("a.md", n, dense=unit(1, n)) for n in range(5)]
    vectors.upsert(points)
    before = sorted(vectors.scroll(), key=lambda r: r.id), vectors.sparse(words(1), ME.scope(), 10)
    vectors.upsert(points)
    assert (sorted(vectors.scroll(), key=lambda r: r.id), vectors.sparse(words(1), ME.scope(), 10)) == before
    assert vectors.count() == 5


def test_the_nearest_comes_first_with_its_cosine_and_its_note(vectors: VectorStore) -> None:
    vectors.upsert(
        [point("far.md", dense=unit(0, 1)), point("near.md", dense=unit(1, 0.1)), point("mid.md", dense=unit(1, 1))]
    )
    found = vectors.dense(unit(1), ME.scope(), 2)
    assert ids(found) == [chunk_id("near.md"), chunk_id("mid.md")]
    assert found[0].note_id == note_id("near.md")
    assert found[1].score == pytest.approx(np.sqrt(0.5), abs=1e-5)


def test_bm25_counts_words_in_the_readers_cubes_alone(vectors: VectorStore) -> None:
    """Word 7 is rare in the reader's cubes and common in another: its weight must not tell of the other."""
    vectors.upsert([point("a.md", sparse=words(7)), point("b.md", sparse=words(8)), point("c.md", sparse=words(8))])
    before = vectors.sparse(Sparse((7, 8), (1.0, 1.0)), ME.scope(), 10)
    assert ids(before)[0] == chunk_id("a.md")
    assert before[0].score == pytest.approx(np.log((3 - 1 + 0.5) / (1 + 0.5) + 1), rel=1e-5)
    vectors.upsert([point(f"{n}.md", cube="dev-cat", sparse=words(7)) for n in range(20)])
    after = vectors.sparse(Sparse((7, 8), (1.0, 1.0)), ME.scope(), 10)
    assert sorted(ids(after)) == sorted(ids(before))
    assert [s.score for s in after] == pytest.approx([s.score for s in before], rel=1e-5)


def test_bm25_forgets_the_words_of_what_was_deleted(vectors: VectorStore) -> None:
    vectors.upsert([point(f"{n}.md", sparse=words(7)) for n in range(10)] + [point("rest.md", sparse=words(8))])
    vectors.forget([note_id(f"{n}.md") for n in range(1, 10)])
    [hit] = vectors.sparse(Sparse((7,), (1.0,)), ME.scope(), 10)
    assert hit.score == pytest.approx(np.log((2 - 1 + 0.5) / (1 + 0.5) + 1), rel=1e-5)


def test_odd_queries_find_nothing_and_break_nothing(vectors: VectorStore) -> None:
    vectors.upsert([point("a.md", dense=unit(1))])
    assert vectors.sparse(Sparse((), ()), ME.scope(), 10) == []
    assert vectors.sparse(words(999), ME.scope(), 10) == []
    assert vectors.dense(unit(1), ME.scope(), 0) == []
    assert vectors.retrieve([], ME.scope()) == []
    assert vectors.retrieve([chunk_id("never.md")], ME.scope()) == []


def test_an_empty_store_answers_too(vectors: VectorStore) -> None:
    assert vectors.dense(unit(1), ME.scope(), 5) == []
    assert vectors.sparse(words(1), ME.scope(), 5) == []
    assert (vectors.count(), vectors.count(ME.scope()), vectors.waiting()) == (0, 0, 0)
    assert vectors.share(ME.scope()) == 1.0
    assert list(vectors.scroll()) == []


def test_one_cube_does_not_see_another(vectors: VectorStore) -> None:
    vectors.upsert([point("a.md", dense=unit(1)), point("a.md", cube="dev-cat", dense=unit(1))])
    hers = chunk_id("a.md", 0, "dev-cat")
    for reader, sees in ((ME, False), (CAT, True)):
        scope = reader.scope()
        assert (hers in ids(vectors.dense(unit(1), scope, 10))) is sees
        assert (hers in ids(vectors.sparse(words(1), scope, 10))) is sees
        assert bool(vectors.retrieve([hers], scope)) is sees
        assert vectors.count(scope) == 1 + sees


def test_two_half_matching_rooms_do_not_make_one(vectors: VectorStore) -> None:
    """A note in work/ideas and home/garden has wing `work` and room `garden`, and does not stand in work/garden."""
    vectors.upsert(
        [point("trap.md", places=("work/ideas", "home/garden"), dense=unit(1)), point("in.md", dense=unit(1, 1))]
    )
    scope = ME.scope(places=["work/garden"])
    assert ids(vectors.dense(unit(1), scope, 10)) == [chunk_id("in.md")]
    assert ids(vectors.sparse(words(1), scope, 10)) == [chunk_id("in.md")]
    assert [r.id for r in vectors.retrieve([chunk_id("trap.md"), chunk_id("in.md")], scope)] == [chunk_id("in.md")]
    assert vectors.count(scope) == 1


def test_rooms_and_wings_narrow_together(vectors: VectorStore) -> None:
    vectors.upsert([point("w.md", places=("work/ideas",)), point("h.md", places=("home/ideas",))])
    assert vectors.count(ME.scope(wings=["work"])) == 1
    assert vectors.count(ME.scope(places=["work/ideas", "home/ideas"], wings=["home"])) == 1
    assert vectors.count(ME.scope(places=["work/ideas"], wings=["home"])) == 0


def test_many_rooms_are_as_good_as_few(vectors: VectorStore) -> None:
    places = [f"w/{n}" for n in range(80)]
    vectors.upsert([point(f"{n}.md", places=(p,), dense=unit(1, n)) for n, p in enumerate(places)])
    assert vectors.count(ME.scope(places=places[:60])) == 60
    assert len(vectors.dense(unit(1), ME.scope(places=places[:60]), 100)) == 60


@pytest.mark.parametrize("status", ["superseded", "rejected", "invalid"])
def test_hidden_statuses_are_filtered_unless_asked_for(vectors: VectorStore, status: str) -> None:
    vectors.upsert([point("old.md", status=status, dense=unit(1)), point("new.md", dense=unit(1, 1))])
    assert ids(vectors.dense(unit(1), ME.scope(), 10)) == [chunk_id("new.md")]
    assert ids(vectors.sparse(words(1), ME.scope(), 10)) == [chunk_id("new.md")]
    assert vectors.count(ME.scope()) == 1
    assert vectors.retrieve([chunk_id("old.md")], ME.scope()) == []
    assert ids(vectors.dense(unit(1), ME.scope(hidden=()), 10)) == [chunk_id("old.md"), chunk_id("new.md")]


def test_a_status_that_changes_hides_at_once(vectors: VectorStore) -> None:
    vectors.upsert([point("a.md", dense=unit(1))])
    assert len(vectors.dense(unit(1), ME.scope(), 10)) == 1
    vectors.set_payload(note_id("a.md"), {"status": "rejected"})
    assert vectors.dense(unit(1), ME.scope(), 10) == []


@pytest.mark.parametrize("narrowing", [{"cubes": frozenset()}, {"places": frozenset()}, {"wings": frozenset()}])
def test_an_empty_scope_cannot_be_made(narrowing: dict[str, frozenset[str]]) -> None:
    key = ME.scope()._key
    with pytest.raises(WallError):
        Scope(**{"cubes": ME.cubes, **narrowing}, _key=key)


def test_points_wait_for_their_dense_vector(vectors: VectorStore) -> None:
    vectors.upsert([point("a.md", n) for n in range(4)])
    assert (vectors.waiting(), vectors.share(ME.scope())) == (4, 0.0)
    assert vectors.dense(unit(1), ME.scope(), 10) == []
    assert len(vectors.sparse(words(1), ME.scope(), 10)) == 4
    vectors.set_dense([(chunk_id("a.md", 0), unit(1))])
    assert (vectors.waiting(), vectors.share(ME.scope())) == (3, 0.25)
    assert ids(vectors.dense(unit(1), ME.scope(), 10)) == [chunk_id("a.md", 0)]
    assert [r.has_dense for r in vectors.retrieve([chunk_id("a.md", 0), chunk_id("a.md", 1)], ME.scope())] == [
        True,
        False,
    ]
    assert sorted(r.has_dense for r in vectors.scroll()) == [False, False, False, True]


def test_the_share_is_the_scopes_own(vectors: VectorStore) -> None:
    vectors.upsert([point("a.md", dense=unit(1)), point("b.md", cube="dev-cat")])
    assert vectors.share(ME.scope()) == 1.0
    assert vectors.share(CAT.scope()) == 0.5


def test_a_point_written_without_its_vector_loses_the_old_one(vectors: VectorStore) -> None:
    vectors.upsert([point("a.md", dense=unit(1))])
    vectors.upsert([point("a.md")])
    assert vectors.waiting() == 1
    assert vectors.dense(unit(1), ME.scope(), 10) == []


def test_a_vector_for_a_point_that_is_gone_is_left_out(vectors: VectorStore) -> None:
    """It would bring a deleted note back; its batch mates get theirs all the same."""
    vectors.upsert([point("a.md"), point("b.md"), point("c.md")])
    vectors.forget([note_id("b.md")])
    vectors.set_dense([(chunk_id(p), unit(1)) for p in ("a.md", "b.md", "c.md")])
    assert (vectors.count(), vectors.waiting()) == (2, 0)
    vectors.set_dense([(chunk_id("b.md"), unit(1))])
    vectors.set_dense([])
    assert vectors.count() == 2


def test_a_change_of_rooms_keeps_the_vectors(vectors: VectorStore) -> None:
    vectors.upsert([point("a.md", n, dense=unit(1)) for n in range(3)] + [point("b.md", dense=unit(1))])
    vectors.set_payload(
        note_id("a.md"), {"place": ("home/garden",), "wing": ("home",), "room": ("garden",), "stale": True}
    )
    scope = ME.scope(places=["home/garden"])
    assert sorted(ids(vectors.dense(unit(1), scope, 10))) == sorted(chunk_id("a.md", n) for n in range(3))
    assert vectors.count(ME.scope(places=["work/garden"])) == 1
    [record] = vectors.retrieve([chunk_id("a.md")], scope)
    assert (record.payload.place, record.payload.stale, record.payload.text) == (
        ("home/garden",),
        True,
        payload("a.md").text,
    )


@pytest.mark.parametrize("changes", [{"cube_id": "dev-cat"}, {"note_id": "x"}, {"colour": "red"}])
def test_neither_the_identity_nor_an_unknown_key_can_be_changed(
    vectors: VectorStore, changes: dict[str, object]
) -> None:
    vectors.upsert([point("a.md")])
    with pytest.raises(StoreError):
        vectors.set_payload(note_id("a.md"), changes)


def test_forgetting_goes_by_note_or_by_chunk(vectors: VectorStore) -> None:
    vectors.upsert([point(p, n) for p in ("a.md", "b.md") for n in range(3)])
    vectors.forget_chunks([chunk_id("b.md", 1), chunk_id("never.md")])
    vectors.forget([note_id("a.md"), note_id("never.md")])
    assert sorted(r.id for r in vectors.scroll()) == sorted([chunk_id("b.md", 0), chunk_id("b.md", 2)])


def test_an_empty_list_deletes_nothing(vectors: VectorStore) -> None:
    vectors.upsert([point("a.md"), point("b.md", cube="dev-cat")])
    vectors.forget([])
    vectors.forget_chunks([])
    vectors.upsert([])
    vectors.set_payload(note_id("a.md"), {})
    assert vectors.count() == 2


def test_scroll_takes_some_notes_or_all(vectors: VectorStore) -> None:
    vectors.upsert([point(f"{n}.md", m) for n in range(100) for m in range(6)])
    assert len({r.id for r in vectors.scroll()}) == 600
    assert {r.payload.path for r in vectors.scroll([note_id(f"{n}.md") for n in range(70)])} == {
        f"{n}.md" for n in range(70)
    }
    assert list(vectors.scroll([])) == []


def whole(points: Iterable[Point]) -> list[tuple[object, ...]]:
    """Everything about points, their vectors as bits, sorted by id and token."""
    return sorted(
        (p.id, p.payload.as_dict(), sorted(zip(p.sparse.indices, p.sparse.values, strict=True)), bits(p.dense))
        for p in points
    )


def bits(vector: Vector | None) -> bytes | None:
    return None if vector is None else vector.astype("<f4").tobytes()


def test_points_come_whole_and_written_again_are_the_same_bits(vectors: VectorStore) -> None:
    """Lengths are as a model leaves them: near one, and not near enough for a float."""
    dice = np.random.default_rng(7)
    raw = dice.standard_normal((300, DIMENSIONS)).astype(np.float32)
    rough = (raw / np.linalg.norm(raw, axis=1, keepdims=True)).astype(np.float16).astype(np.float32)
    tokens = Sparse((4_000_000_000, 7, 1), (np.float32(0.1).item(), np.float32(1 / 3).item(), 2.5))
    written = [point("a.md", n, dense=v, sparse=tokens) for n, v in enumerate(rough)]
    written += [point("waits.md", places=(), sparse=tokens), point("wordless.md", dense=unit(1), sparse=Sparse((), ()))]
    vectors.upsert(written)
    first = list(vectors.points())
    assert [p[:3] for p in whole(first)] == [p[:3] for p in whole(written)]
    for read, asked in zip(whole(first), whole(written), strict=True):
        assert (read[3] is None) == (asked[3] is None)
    for read_point in first:
        if read_point.dense is not None:
            assert np.linalg.norm(read_point.dense) == pytest.approx(1, abs=1e-6)
    other = MemoryVectors(DIMENSIONS)
    other.upsert(first)
    vectors.forget([p.payload.note_id for p in first])
    vectors.upsert(list(other.points()))
    assert whole(vectors.points()) == whole(first)
    assert [r.has_dense for r in vectors.scroll([note_id("waits.md")])] == [False]


def test_points_of_some_notes(vectors: VectorStore) -> None:
    vectors.upsert([point(f"{n}.md", m, dense=unit(1, m)) for n in range(100) for m in range(3)])
    some = [note_id(f"{n}.md") for n in range(70)]
    assert sorted(p.id for p in vectors.points(some)) == sorted(r.id for r in vectors.scroll(some))
    assert len({p.id for p in vectors.points()}) == 300
    assert list(vectors.points([])) == []


def test_retrieve_keeps_the_order_asked(vectors: VectorStore) -> None:
    vectors.upsert([point("a.md", n) for n in range(10)])
    asked = [chunk_id("a.md", n) for n in (7, 2, 9, 2, 0)]
    assert [r.id for r in vectors.retrieve(asked, ME.scope())] == [asked[0], asked[1], asked[2], asked[4]]


@pytest.mark.parametrize(
    "write",
    [
        lambda v: v.upsert([point("a.md", dense=np.ones(3, dtype=np.float32))]),
        lambda v: v.set_dense([(chunk_id("a.md"), np.ones(3, dtype=np.float32))]),
        lambda v: v.set_dense([(chunk_id("a.md"), np.full(8, np.nan, dtype=np.float32))]),
        lambda v: v.dense(np.ones(3, dtype=np.float32), ME.scope(), 5),
    ],
)
def test_a_vector_of_another_shape_is_refused_and_poisons_nothing(
    vectors: VectorStore, write: Callable[[VectorStore], object]
) -> None:
    vectors.upsert([point("a.md", dense=unit(1))])
    with pytest.raises(StoreError):
        write(vectors)
    assert ids(vectors.dense(unit(1), ALL.scope(), 5)) == [chunk_id("a.md")]


def test_flush_optimize_and_warm_change_no_answer(vectors: VectorStore) -> None:
    vectors.upsert([point("a.md", n, dense=unit(1, n)) for n in range(20)])
    before = vectors.dense(unit(1), ME.scope(), 10)
    vectors.flush()
    vectors.optimize()
    vectors.warm()
    assert vectors.dense(unit(1), ME.scope(), 10) == before


def test_a_note_that_was_remembered_may_come_and_go(vectors: VectorStore) -> None:
    vectors.upsert([point("a.md", dense=unit(1)), point("b.md", dense=unit(1, 1))])
    vectors.warm()
    vectors.forget([note_id("a.md")])
    assert [s.note_id for s in vectors.dense(unit(1), ME.scope(), 10)] == [note_id("b.md")]
    vectors.upsert([point("a.md", dense=unit(1)), point("c.md", dense=unit(1, 2))])
    assert [s.note_id for s in vectors.dense(unit(1), ME.scope(), 10)] == [note_id(p) for p in ("a.md", "b.md", "c.md")]
