"""What a room's name means to a reader, what is near it, and the pages of the list."""

import pytest

from palace.search.rooms import (
    Choice,
    choose,
    first_sentence,
    likeness,
    nearest,
)
from palace.vocabulary import Room, RoomAddress


def room(wing: str, label: str, cube: str = "global", notes: int = 1) -> Room:
    return Room(RoomAddress(cube, wing.casefold(), label.casefold()), wing, label, notes, "2026-01-01T00:00:00Z")


ROOMS = [
    room("Work", "Garden"),
    room("Home", "Garden"),
    room("projects", "AI-Fortune"),
    room("projects", "投资理财"),
    room("a", "b/c"),
]


def places(*names: str) -> frozenset[str]:
    return frozenset(names)


@pytest.mark.parametrize(
    ("rooms", "wings", "choice"),
    [
        (["garden"], [], Choice(places("work/garden", "home/garden"), None, ())),
        (["GARDEN "], [], Choice(places("work/garden", "home/garden"), None, ())),
        (["work/garden"], [], Choice(places("work/garden"), None, ())),
        (["garden"], ["Work"], Choice(places("work/garden"), None, ())),
        (["ai-fortune", "投资理财"], [], Choice(places("projects/ai-fortune", "projects/投资理财"), None, ())),
        (["b/c"], [], Choice(places("a/b/c"), None, ())),
        (["a/b/c"], [], Choice(places("a/b/c"), None, ())),
        ([], ["PROJECTS"], Choice(None, places("projects"), ())),
        (["nowhere"], [], Choice(None, None, ("nowhere",))),
        (["nowhere", "garden"], ["home"], Choice(places("home/garden"), None, ("nowhere",))),
        (["garden"], ["projects"], Choice(None, places("projects"), ("garden",))),
        ([], ["nowhere"], Choice(None, None, ("nowhere",))),
        (["work/投资理财"], [], Choice(None, None, ("work/投资理财",))),
        ([""], [], Choice(None, None, ("",))),
    ],
)
def test_a_room_is_named_by_key_or_label_with_or_without_its_wing(
    rooms: list[str], wings: list[str], choice: Choice
) -> None:
    assert choose(ROOMS, rooms, wings) == choice


def test_the_nearest_rooms_are_those_of_a_near_spelling() -> None:
    assert nearest(ROOMS, "gardn")[:2] == ["home/garden", "work/garden"]
    assert nearest(ROOMS, "AI fortune")[0] == "projects/ai-fortune"
    assert nearest(ROOMS, "投资")[0] == "projects/投资理财"
    assert nearest(ROOMS, "xyzzy") == []
    assert nearest([], "garden") == []


def test_a_query_names_a_room_by_words_or_spelling() -> None:
    fortune = room("projects", "AI-Fortune")
    assert likeness("ai-fortune", fortune) == 1.0
    assert likeness("how far is the ai fortune project", fortune) > 0.6
    assert likeness("我的投资理财计划", room("projects", "投资理财")) > 0.9
    assert likeness("watering tomatoes", fortune) == 0.0


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("# Garden\n\nAll about beds. And more.", "All about beds."),
        ("这里是投资笔记。还有别的。", "这里是投资笔记。"),
        ("- a list item\n- another", "a list item - another"),
        ("\n---\n![[cover.png]]\nWhat we grow\n\nRest", "What we grow"),
        ("# Only a heading", None),
        ("", None),
    ],
)
def test_a_description_is_the_first_sentence(text: str, sentence: str | None) -> None:
    assert first_sentence(text) == sentence


def test_a_long_description_is_cut() -> None:
    sentence = first_sentence("word " * 100)
    assert sentence is not None
    assert len(sentence) <= 160
    assert sentence.endswith("…")
