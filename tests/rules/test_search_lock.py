"""Which names a question may mean, and which notes bear them inside a scope."""

import pytest

from palace.search.lock import MemoryNames, asked_names, lock, name_key
from palace.stores.ports import NoteNode
from palace.vocabulary import ChunkId, NoteId
from palace.walls import Reader

ME = Reader("me", frozenset({"global"}))


def node(name: str, *aliases: str, cube: str = "global", room: str = "ideas", status: str = "active") -> NoteNode:
    id_ = f"{cube}:{name}"
    rooms = (("work", room, "Work", room),)
    return NoteNode(
        NoteId(id_), cube, "v", f"{name}.md", name, aliases, (), rooms, "2026-01-01", (ChunkId(id_ + "#0"),), status
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("AI-Fortune", "ai-fortune"),
        ("  Big   Plan ", "big plan"),
        ("ＡＩ笔记", "AI笔记"),
        ("Cafe\u0301", "Café"),
        ("STRASSE", "straße"),
    ],
)
def test_spellings_of_one_name_have_one_key(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


def test_the_whole_question_counts_whole_and_a_part_by_its_share() -> None:
    asked = asked_names("what is ai-fortune?")
    assert asked["what is ai-fortune?"] == asked["what is ai-fortune"] == 1.0
    assert asked["ai-fortune"] == pytest.approx(10 / 19)


@pytest.mark.parametrize("query", ["“AI-Fortune”", "[[AI-Fortune]]", "AI-Fortune？", " ai-fortune "])
def test_marks_around_a_name_do_not_count(query: str) -> None:
    assert asked_names(query)["ai-fortune"] == 1.0


def test_parts_begin_and_end_at_words_and_ideographs() -> None:
    asked = asked_names("知识管理 systems of 2024")
    assert "知识" in asked
    assert "管理" in asked
    assert "system" not in asked
    assert "知" not in asked
    assert "of" not in asked
    assert "2024" not in asked


def test_a_long_question_asks_for_a_bounded_number_of_names() -> None:
    assert len(asked_names("如何学习 and remember " * 100)) < 1000


def test_titles_and_aliases_lock_inside_the_scope_alone() -> None:
    names = MemoryNames([node("Rust", "铁锈语言"), node("Rust", cube="dev-cat"), node("Garden", room="home")])
    assert [s.note_id for s in lock("rust", names, ME.scope())] == ["global:Rust"]
    assert [s.score for s in lock("铁锈语言", names, ME.scope())] == [1.0]
    assert lock("rust", names, ME.scope(places=["work/home"])) == []
    assert [s.note_id for s in lock("rust in the garden", names, ME.scope())] == ["global:Garden", "global:Rust"]


def test_hidden_notes_do_not_lock() -> None:
    names = MemoryNames([node("Plan", status="superseded")])
    assert lock("plan", names, ME.scope()) == []
    assert len(lock("plan", names, ME.scope(hidden=()))) == 1
