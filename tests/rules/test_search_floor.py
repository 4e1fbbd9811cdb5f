"""Where the floor lies, and the questions that it is drawn from."""

import json
from dataclasses import replace

import pytest

from palace.search.floor import LEAST, Floor, Known, Signs, calibrate, known_questions
from palace.stores.payload import Payload
from palace.vocabulary import NoteId, Sha256


def chunk(note: str, title: str, *headings: str, text: str = "") -> Payload:
    digest = Sha256("a" * 64)
    return Payload(
        cube_id="global", note_id=NoteId(note), wing=(), room=(), place=(), vault="v", path=f"{note}.md", title=title,
        heading_path=headings, section="", tags=(), aliases=(), kind="note", status="active", trust="owner",
        created=None, modified=None, valid_from=None, invalid_at=None, lines=(1, 1), span=(0, 1), text=text,
        note_sha256=digest, chunk_sha256=digest, passage_sha256=digest, model="m", generation=1,
    )  # fmt: skip


def test_questions_are_titles_headings_and_sentences_around_links() -> None:
    payloads = [
        chunk(
            "a",
            "How to grow leeks",
            "Beds",
            "Watering in dry summers",
            text="Leeks like [[Rich Soil|good soil]]. More.",
        ),
        chunk("b", "短", "如何学会考试", text="参见[[个人查找搜索系统#用法]]的价值。后文。"),
    ]
    texts = {k.text for k in known_questions(payloads)}
    assert texts == {
        *("How to grow leeks", "Watering in dry summers", "Leeks like good soil."),
        *("如何学会考试", "参见个人查找搜索系统的价值。"),
    }
    assert {k.source for k in known_questions(payloads)} == {"a", "b"}


def test_the_same_questions_are_drawn_whatever_the_order() -> None:
    payloads = [chunk(str(i), f"A note about number {i}") for i in range(500)]
    drawn = known_questions(payloads, 50)
    assert len(drawn) == 50
    assert drawn == known_questions(reversed(payloads), 50) == known_questions(payloads * 2, 50)


def signs_of(known: Known) -> Signs | None:
    share = int(known.text) / 1000
    return Signs(0.8 + share / 10, share) if share < 0.9 else None


def test_two_in_a_hundred_true_questions_lie_under_the_floor() -> None:
    known = [Known(str(i), NoteId("a")) for i in range(0, 1000, 5)]
    floor = calibrate(known, signs_of, "m")
    assert floor is not None
    assert floor.n == 180
    assert floor.model == "m"
    under = [k for k in known if (s := signs_of(k)) and floor.strength(s) < floor.floor]
    assert len(under) == 4
    assert floor.strength(Signs(0.0, 0.0)) < floor.floor < floor.strength(Signs(0.9, 0.9))


def test_too_few_answers_give_no_floor() -> None:
    known = [Known("1", NoteId("a"))] * (LEAST - 1)
    assert calibrate(known, signs_of, "m") is None
    assert calibrate([], signs_of, "m") is None


def test_a_palace_of_one_text_over_and_over_has_a_floor_too() -> None:
    floor = calibrate([Known("500", NoteId("a"))] * LEAST, signs_of, "m")
    assert floor is not None
    assert floor.floor == pytest.approx(0.0)


def test_a_floor_goes_through_json() -> None:
    floor = Floor(0.85, 0.02, 0.6, 0.2, -3.5, 200, "m")
    assert Floor.from_dict(json.loads(json.dumps(floor.as_dict()))) == floor
    assert floor.strength(Signs(0.85, 0.6)) == 0.0
    assert replace(floor, cos_mean=0.8).strength(Signs(0.85, 0.6)) == pytest.approx(2.5)
