"""Legs are fused on [0, 1]; a note gives a few chunks at most; a name goes first."""

from hypothesis import given
from hypothesis import strategies as st

from palace.search.fuse import MOST_DEVIATIONS, Fused, Method, deviations, diverse, fuse, reciprocal_rank, shares
from palace.search.lock import MOST_PINNED, locked
from palace.stores.ports import Scored
from palace.vocabulary import ChunkId, NoteId


def leg(*scores: tuple[str, float]) -> list[Scored]:
    """Chunk `a1` is of note `a`."""
    ranked = sorted(scores, key=lambda s: -s[1])
    return [Scored(ChunkId(name), NoteId(name[0]), score) for name, score in ranked]


METHODS: st.SearchStrategy[Method] = st.sampled_from(("zscore", "minmax", "rrf"))


def ranked(**scores: float) -> list[Fused]:
    return [Fused(ChunkId(name), NoteId(name[0]), score) for name, score in scores.items()]


LEGS = st.dictionaries(
    st.sampled_from(["bm25", "dense"]),
    st.dictionaries(st.sampled_from(["a1", "a2", "b1", "b2", "c1", "d1"]), st.floats(-5, 50, allow_nan=False)).map(
        lambda d: leg(*d.items())
    ),
)


def test_min_max_means_the_range_of_each_leg() -> None:
    legs = {"bm25": leg(("a1", 20.0), ("b1", 10.0), ("c1", 0.0)), "dense": leg(("b1", 0.9), ("d1", 0.8))}
    fused = fuse(legs, "minmax")
    assert [(f.id, f.score) for f in fused.order] == [("b1", 0.75), ("a1", 0.5), ("c1", 0.0), ("d1", 0.0)]
    assert fused.legs(ChunkId("b1")) == {"bm25": 10.0, "dense": 0.9}
    assert fused.shares["bm25"][ChunkId("b1")] == 0.5


def test_equal_scores_are_each_the_best_of_their_leg() -> None:
    assert shares(leg(("a1", 3.0), ("b1", 3.0))) == {"a1": 1.0, "b1": 1.0}
    assert shares([]) == {}


def test_words_have_a_zero_of_their_own_and_cosines_have_none() -> None:
    fused = fuse({"bm25": leg(("a1", 20.0), ("b1", 10.0)), "dense": leg(("a1", 0.9), ("b1", 0.8))})
    assert fused.shares == {"bm25": {"a1": 1.0, "b1": 0.5}, "dense": {"a1": 1.0, "b1": 0.0}}


def test_a_leg_weighs_by_how_far_its_best_stands_out() -> None:
    flat, steep = (
        [("a1", 1.0), ("b1", 0.9), ("c1", 0.1), ("d1", 0.0)],
        [("c1", 1.0), ("d1", 0.1), ("a1", 0.05), ("b1", 0.0)],
    )
    assert deviations(leg(*flat)) < deviations(leg(*steep)) < MOST_DEVIATIONS
    assert fuse({"one": leg(*flat), "other": leg(*steep)}).order[0].id == "c1"
    assert deviations(leg(("a1", 3.0))) == deviations(leg(("a1", 3.0), ("b1", 3.0))) == MOST_DEVIATIONS
    assert deviations(leg(("a1", 3.0), ("b1", 2.9)), zero=0.0) == MOST_DEVIATIONS


def test_a_leg_without_candidates_takes_no_part() -> None:
    alone = fuse({"bm25": leg(("a1", 2.0), ("b1", 1.0)), "dense": []})
    assert [f.score for f in alone.order] == [1.0, 0.5]
    assert fuse({"bm25": [], "dense": []}).order == []


def test_the_words_of_a_note_may_stand_in_one_chunk_and_its_sense_in_another() -> None:
    legs = {"bm25": leg(("a1", 9.0), ("b1", 8.0), ("c1", 0.0)), "dense": leg(("a2", 0.9), ("b1", 0.88), ("c1", 0.8))}
    fused = {str(f.id): f.score for f in fuse(legs, "minmax").order}
    assert fused["a1"] == fused["a2"] == 0.75
    apart = {"bm25": legs["bm25"], "dense": leg(("d1", 0.9), ("b1", 0.88), ("c1", 0.8))}
    assert {str(f.id): f.score for f in fuse(apart, "minmax").order}["a1"] == 0.5


def test_a_leg_counts_by_its_weight() -> None:
    legs = {"bm25": leg(("a1", 9.0), ("b1", 0.0)), "dense": leg(("b1", 0.9), ("a1", 0.8))}
    assert [(f.id, f.score) for f in fuse(legs, "minmax", {"dense": 0.25}).order] == [("a1", 0.8), ("b1", 0.2)]
    assert [f.score for f in fuse(legs, "minmax", {"dense": 0.0}).order] == [1.0, 0.0]


def test_reciprocal_rank_counts_ranks_alone() -> None:
    near, far = leg(("a1", 5.0), ("b1", 4.99)), leg(("a1", 5.0), ("b1", -100.0))
    assert reciprocal_rank(near) == reciprocal_rank(far)
    both = fuse({"bm25": near, "dense": far}, "rrf").order
    assert [f.id for f in both] == ["a1", "b1"]
    assert both[0].score == 1.0


@given(LEGS, METHODS)
def test_every_candidate_comes_out_once_in_range_and_order(legs: dict[str, list[Scored]], method: Method) -> None:
    fused = fuse(legs, method).order
    assert {f.id for f in fused} == {s.id for each in legs.values() for s in each}
    assert len({f.id for f in fused}) == len(fused)
    assert all(0 <= f.score <= 1 for f in fused)
    assert [(f.score, f.id) for f in fused] == sorted(((f.score, f.id) for f in fused), key=lambda p: (-p[0], p[1]))


@given(LEGS, st.integers(1, 3), st.integers(1, 5))
def test_a_note_gives_a_few_chunks_at_most(legs: dict[str, list[Scored]], per_note: int, limit: int) -> None:
    fused = fuse(legs).order
    kept = diverse(fused, per_note, limit)
    notes = [f.note_id for f in kept]
    assert all(notes.count(n) <= per_note for n in notes)
    possible = sum(min(per_note, [f.note_id for f in fused].count(n)) for n in {f.note_id for f in fused})
    assert len(kept) == min(limit, possible)
    assert kept == [f for f in fused if f in kept]


def test_a_note_of_exactly_that_name_goes_first_and_begins_with_its_lead_chunk() -> None:
    out = locked(ranked(a1=0.9, b2=0.8, b1=0.3, c1=0.0), leg(("b1", 1.0)))
    assert [f.id for f in out] == ["b1", "b2", "a1", "c1"]
    assert out[0].score == 1.0


def test_a_named_note_that_no_leg_brought_comes_in_with_its_lead_chunk() -> None:
    out = locked(ranked(a1=1.0), leg(("z1", 1.0)))
    assert [(f.id, f.score) for f in out] == [("z1", 1.0), ("a1", 1.0)]


def test_a_name_inside_the_question_lifts_its_note_by_the_share_it_covers() -> None:
    named = leg(("c1", 0.5))
    out = {str(f.id): f.score for f in locked(ranked(a1=1.0, b1=0.6, c1=0.5, d1=0.0), named)}
    assert out["c1"] == 0.5 + 0.5 * 0.25
    assert out["b1"] == 0.6
    assert out["a1"] == 1.0


def test_many_notes_of_one_name_do_not_fill_the_page() -> None:
    many = ranked(**{f"{c}1": i / 10 for i, c in enumerate("jihgfedcba", start=1)})
    out = locked(many, leg(*((f"{c}1", 1.0) for c in "abcdefgh")))
    assert MOST_PINNED == 3
    assert [f.id for f in out][:5] == ["a1", "b1", "c1", "d1", "e1"]
