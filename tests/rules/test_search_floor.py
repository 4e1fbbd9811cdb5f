"""Where the floor lies, and the questions that it is drawn from."""

import json
from dataclasses import replace
from statistics import NormalDist

import pytest

from palace.search.floor import LEAST, Floor, Known, Signs, calibrate, known_questions
from palace.stores.payload import Payload
from palace.stores.ports import Record
from palace.vocabulary import ChunkId, NoteId, Sha256


def chunk(name: str, text: str) -> Record:
    digest = Sha256("a" * 64)
    payload = Payload(
        cube_id="global", note_id=NoteId("n"), wing=(), room=(), place=(), vault="v", path="n.md", title="n",
        heading_path=(), section="", tags=(), aliases=(), kind="note", status="active", trust="owner", created=None,
        modified=None, valid_from=None, invalid_at=None, lines=(1, 1), span=(0, 1), text=text, note_sha256=digest,
        chunk_sha256=digest, passage_sha256=digest, model="m", generation=1,
    )  # fmt: skip
    return Record(ChunkId(name), payload, has_dense=True)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("- Leeks like [[Rich Soil|good soil]] and sun.", "Leeks like good soil and sun."),
        ("Short. The beds want water twice a week.", "The beds want water twice a week."),
        ("参见[[个人查找搜索系统#用法]]的价值。短句。", "参见个人查找搜索系统的价值。"),
        ("| 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 |\n```\nx = f(y)[0] + {1: 2, 3: 4}\n```", None),
        ("", None),
    ],
)
def test_a_question_is_a_sentence_of_a_chunk(text: str, question: str | None) -> None:
    assert [k.text for k in known_questions([chunk("a", text)])] == ([question] if question else [])


def test_the_same_questions_are_drawn_whatever_the_order() -> None:
    records = [chunk(str(i), f"A sentence about the number {i} of a note.") for i in range(500)]
    drawn = known_questions(records, 50)
    assert len(drawn) == len({k.source for k in drawn}) == 50
    assert drawn == known_questions(reversed(records), 50)


def signs_of(known: Known) -> Signs | None:
    """The n-th thousandth of a normal palace; the last hundred find nothing."""
    n = int(known.text)
    z = NormalDist().inv_cdf((n + 0.5) / 900) if n < 900 else 0.0
    return Signs(0.85 + 0.02 * z, 0.5 + 0.15 * z) if n < 900 else None


def test_two_in_a_hundred_known_questions_lie_under_the_floor() -> None:
    known = [Known(str(i), ChunkId("a")) for i in range(0, 1000, 5)]
    floor = calibrate(known, signs_of, "m")
    assert floor is not None
    assert (floor.n, floor.model) == (180, "m")
    under = [k for k in known if (s := signs_of(k)) and floor.strength(s) < floor.floor]
    assert len(under) in {3, 4}
    assert floor.strength(Signs(0.75, 0.0)) < floor.floor < floor.strength(Signs(0.86, 0.6))


def test_too_few_answers_give_no_floor() -> None:
    known = [Known("1", ChunkId("a"))] * (LEAST - 1)
    assert calibrate(known, signs_of, "m") is None
    assert calibrate([], signs_of, "m") is None


def test_a_palace_of_one_text_over_and_over_has_a_floor_too() -> None:
    floor = calibrate([Known("500", ChunkId("a"))] * LEAST, signs_of, "m")
    assert floor is not None
    assert floor.floor == pytest.approx(0.0)


def test_one_odd_question_of_a_few_does_not_set_the_floor() -> None:
    known = [Known(str(i), ChunkId("a")) for i in range(300, 600, 10)]
    floor = calibrate([*known, Known("0", ChunkId("a"))], signs_of, "m")
    odd = signs_of(Known("0", ChunkId("a")))
    assert floor is not None
    assert odd is not None
    assert floor.strength(odd) < floor.floor < floor.strength(Signs(0.84, 0.4))


def test_a_floor_goes_through_json() -> None:
    floor = Floor(0.85, 0.02, 0.6, 0.2, -3.5, 200, "m")
    assert Floor.from_dict(json.loads(json.dumps(floor.as_dict()))) == floor
    assert floor.strength(Signs(0.85, 0.6)) == 0.0
    assert replace(floor, cos_mean=0.8).strength(Signs(0.85, 0.6)) == pytest.approx(2.5)
