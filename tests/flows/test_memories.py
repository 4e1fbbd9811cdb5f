"""What an agent keeps, what changed lately, and what a reader is told of the index: inside its walls."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace.errors import UsageError
from palace.inbox import Memory, home, title_of
from palace.library import Library
from tests.house import House

WHEN = datetime(2026, 11, 30, 8, 15, tzinfo=UTC)
NOTES = {
    "projects/Oven/plan.md": "The oven hinge.\n",
    "areas/Garden/beds.md": "Bed one.\n",
    "areas/Garden/old.md": "Long ago.\n",
    "Agents/scout/SOUL.md": "I am Scout.\n",
}


@pytest.fixture
def house(tmp_path: Path, embeddings_url: str) -> House:
    house = House(tmp_path, embeddings_url, "memory")
    house.furnish(NOTES)
    text = house.settings_file.read_text()
    house.settings_file.write_text(text.replace('["global", "scout"]', '["global", "scout"]\nwrite = true'))
    past = (datetime.now(UTC) - timedelta(days=30)).timestamp()
    os.utime(house.vault / "areas/Garden/old.md", (past, past))
    house.place()
    return house


def ingested(house: House, library: Library) -> Library:
    from ingest import worker  # noqa: PLC0415

    worker.run(library, house.settings)
    return library


def test_what_changed_lately_is_told_newest_first_and_by_room(house: House) -> None:
    with house.library() as opened:
        library = ingested(house, opened)
        told = library.recent("me")
        assert ({n["title"] for n in told["notes"]}, told["truncated"]) == ({"plan", "beds"}, False)
        assert "old" in {n["title"] for n in library.recent("me", days=40)["notes"]}
        assert [n["title"] for n in library.recent("me", "Garden")["notes"]] == ["beds"]
        assert [n["title"] for n in library.recent("scout", "system_config")["notes"]] == ["SOUL"]
        one = library.recent("me", limit=1)
        assert (len(one["notes"]), one["truncated"]) == (1, True)
        changed = [n["changed"] for n in library.recent("scout", days=3660)["notes"]]
        assert changed == sorted(changed, reverse=True)


def test_an_unknown_or_anothers_room_widens_with_a_reason(house: House) -> None:
    with house.library() as opened:
        library = ingested(house, opened)
        for room in ("nowhere", "system_config", "scout/system_config"):
            told = library.recent("me", room)
            assert (told["fallback"], bool(told["reason"])) == (True, True)
            assert "SOUL" not in str(told["notes"])


@pytest.mark.parametrize(("days", "limit"), [(0, 10), (-1, 10), (4000, 10), (7, 0), (7, 5000)])
def test_more_than_there_can_be_is_refused(house: House, days: int, limit: int) -> None:
    with house.library() as library, pytest.raises(UsageError, match="cannot be listed"):
        library.recent("me", None, days, limit)


def test_a_reader_is_told_of_its_own_cubes_alone(house: House) -> None:
    with house.library() as opened:
        library = ingested(house, opened)
        whole, scouts, mine = (
            library.status(files=True),
            library.status_of("scout", files=True),
            library.status_of("me"),
        )
        assert (whole["notes"], scouts["notes"], mine["notes"]) == (4, 4, 3)
        assert set(mine) == set(whole) - {"files"}
        assert {f["cube"] for f in library.status_of("me", files=True)["files"]} == {"global"}
        assert {f["cube"] for f in scouts["files"]} == {"global", "scout"}


def test_what_is_remembered_is_found_after_an_ingest_by_its_writer_alone(house: House) -> None:
    with house.library() as library:
        kept = library.remember("scout", "The gate squeaks in the wind.", "Gate: squeaks!")
        assert (kept["cube"], kept["title"], kept["room"], kept["new"]) == (
            "scout",
            "Gate squeaks!",
            "inbox/inbox",
            True,
        )
        ingested(house, library)
        hit = library.search("scout", "gate squeaks")["hits"][0]
        assert (hit["ref"], hit["status"], hit["trust"], hit["rooms"]) == (kept["ref"], "candidate", "agent", ["inbox"])
        assert library.search("scout", "Gate squeaks!")["hits"][0]["ref"] == kept["ref"]
        assert "gate" not in str(library.search("me", "gate squeaks")["hits"])
        assert 'source: "reader scout"' in library.read("scout", kept["ref"])["text"]


def test_only_a_reader_with_write_may_remember_and_not_nothing(house: House) -> None:
    with house.library() as library:
        with pytest.raises(UsageError, match="may not write"):
            library.remember("me", "x")
        with pytest.raises(UsageError, match="nothing to remember"):
            library.remember("scout", " \n ")
    assert not list((house.settings.data / "inbox").rglob("*.md"))


@pytest.mark.parametrize(
    ("reader", "cubes", "expected"),
    [
        ("me", ("global",), "global"),
        ("scout", ("global", "scout"), "scout"),
        ("scout", ("owl", "global", "scout"), "scout"),
        ("boss", ("global", "owl", "scout"), "owl"),
    ],
)
def test_a_writers_own_cube(reader: str, cubes: tuple[str, ...], expected: str) -> None:
    assert home(reader, cubes) == expected


@pytest.mark.parametrize(
    ("text", "title", "expected"),
    [
        ("Text", "A title", "A title"),
        ("# A heading\n\nText", None, "A heading"),
        ("\n\n  - first words of it\n", None, "first words of it"),
        ("Text", "../../etc/passwd", "etc passwd"),
        ("Text", ".hidden", "hidden"),
        ("Text", "a\x00b\u202ec", "a b c"),
        ("Text", "[[x]]|#^", "x"),
        ("Text", "番茄", "番茄"),
        ("...", "///", "Memory"),
        ("word " * 100, None, " ".join(["word"] * 12)),
    ],
)
def test_a_title_is_one_short_line_that_can_be_a_file(text: str, title: str | None, expected: str) -> None:
    assert title_of(text, title) == expected


@given(st.text(), st.text())
def test_whatever_the_words_the_file_is_one_name_and_the_text_whole(text: str, title: str) -> None:
    memory = Memory("scout", "scout", text, title_of(text, title), WHEN)
    name = memory.name
    assert "/" not in name
    assert not name.startswith(".")
    assert len(name.encode()) <= 255
    head, _, body = memory.render().partition("\n---\n")
    assert head.startswith("---\naliases: [")
    assert text.rstrip("\n") in body
    assert memory.name == Memory("scout", "scout", text, title_of(text, title), WHEN + timedelta(days=1)).name
