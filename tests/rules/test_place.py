"""Which rooms a note stands in. A test's docstring says what is put in."""

from collections.abc import Sequence

import pytest

from librarian.place import MOST_ROOMS, PlaceRules, folder_rooms, glob_rules, home_of, place
from palace.settings import Rule
from palace.vocabulary import ParsedNote, Placement, RoomAddress, Tag


def note(*tags: str) -> ParsedNote:
    found = tuple(Tag(name, line, inline=True) for line, name in enumerate(tags, start=1))
    return ParsedNote("n.md", 0, {}, found, (), (), (), (), (), ())


def rooms(path: str, tags: Sequence[str] = (), rules: PlaceRules | None = None) -> list[str]:
    placements, _ = place(path, note(*tags), rules or PlaceRules())
    return [f"{one.wing_label}/{one.room_label}" for one in placements]


def codes(path: str, tags: Sequence[str] = (), rules: PlaceRules | None = None) -> list[tuple[str, int | None]]:
    _, problems = place(path, note(*tags), rules or PlaceRules())
    assert all(problem.code == "reserved-room" and problem.hint for problem in problems)
    return [(problem.path, problem.line) for problem in problems]


@pytest.mark.parametrize(
    ("path", "room", "section"),
    [
        ("projects/AI-Fortune/mvp.md", "projects/AI-Fortune", ""),
        ("projects/AI-Fortune/old/2020/mvp.md", "projects/AI-Fortune", "old/2020"),
        ("projects/a.md", "projects/projects", ""),
        ("a.md", "inbox/inbox", ""),
        ("projects/raw/a.md", "projects/inbox", ""),
        ("projects/AI/Raw/deep/a.md", "projects/inbox", "AI/deep"),
        ("projects/AI/x/y/INBOX/a.md", "projects/inbox", "AI/x/y"),
        ("raw/papers/a.md", "inbox/inbox", "papers"),
        ("Inbox/a.md", "inbox/inbox", ""),
        ("项目/甲/乙/a.md", "项目/甲", "乙"),
        ("  spaced /b /a.md", "spaced/b", ""),
        ("   /a.md", "inbox/inbox", ""),
    ],
)
def test_a_folder_gives_the_room(path: str, room: str, section: str) -> None:
    home, problems = home_of(path, PlaceRules())
    assert (f"{home.wing_label}/{home.room_label}", home.section) == (room, section)
    assert not problems
    assert home.reason.startswith("folder:")


def test_the_folder_rule_starts_at_the_public_folder() -> None:
    rules = PlaceRules(public=("Notes/open", "Notes"))
    assert rooms("Notes/open/projects/AI/a.md", rules=rules) == ["projects/AI"]
    assert rooms("Notes/other/a.md", rules=rules) == ["other/other"]
    assert rooms("Notes/a.md", rules=rules) == ["inbox/inbox"]


def test_each_tag_gives_one_more_room() -> None:
    """#projects/AI-Fortune #a/b/c #idea, and one of them twice in other letters"""
    tags = ("projects/AI-Fortune", "a/b/c", "idea", "Idea")
    assert rooms("x/y/n.md", tags) == ["x/y", "projects/AI-Fortune", "a/b/c", "tags/idea"]
    placements, _ = place("x/y/n.md", note(*tags), PlaceRules())
    assert [one.address.place for one in placements] == ["x/y", "projects/ai-fortune", "a/b/c", "tags/idea"]
    assert [one.reason for one in placements] == ["folder:x/y", "tag:projects/AI-Fortune", "tag:a/b/c", "tag:idea"]


def test_a_tag_of_the_own_folder_adds_nothing() -> None:
    assert rooms("projects/AI/n.md", ("Projects/ai",)) == ["projects/AI"]


def test_a_flat_tag_joins_the_one_folder_room_of_its_name() -> None:
    """#PS5 beside the folder games/ps5; #Ideas where work/ideas and home/ideas both exist"""
    homes = [home_of(path, PlaceRules())[0] for path in ("games/ps5/a.md", "work/ideas/a.md", "home/ideas/a.md")]
    rules = PlaceRules(folder_rooms=folder_rooms(homes))
    placements, _ = place("n.md", note("PS5", "Ideas"), rules)
    assert [one.address for one in placements[1:]] == [
        RoomAddress("global", "games", "ps5"),
        RoomAddress("global", "tags", "ideas"),
    ]


@pytest.mark.parametrize(
    "tag", ["ff0000", "FFF", "0f0", "1a2b3c", "aabbcc", "1a2b3c80", "a", "书", "todo", "Todo/later"]
)
def test_colours_single_characters_and_denied_tags_make_no_room(tag: str) -> None:
    assert rooms("x/n.md", (tag,), PlaceRules(deny_tags=frozenset({"todo"}))) == ["x/x"]
    assert not codes("x/n.md", (tag,))


@pytest.mark.parametrize(
    "tag", ["cafe", "facade", "decade", "bee", "b2b", "e2e", "deadbeef", "ui/ff0000", "y1984", "todos"]
)
def test_words_that_look_like_colours_are_rooms(tag: str) -> None:
    assert len(rooms("x/n.md", (tag,), PlaceRules(deny_tags=frozenset({"todo"})))) == 2


RESERVED_TAGS = ("diary", "System_Config", "ｄｉａｒｙ", "dіary", "DAILY", "daily/2024", "work/diary", "system-config")


@pytest.mark.parametrize("tag", RESERVED_TAGS)
def test_a_tag_with_a_reserved_name_makes_no_room(tag: str) -> None:
    """#diary, #System_Config, full-width, Cyrillic: the twenty-fifth input of the list"""
    assert rooms("x/n.md", ("first", tag)) == ["x/x", "tags/first"]
    assert codes("x/n.md", ("first", tag)) == [("x/n.md", 2)]


@pytest.mark.parametrize(
    ("path", "room", "folder"),
    [
        ("diary/n.md", "inbox/inbox", "diary"),
        ("Ｄiary/2024/n.md", "inbox/inbox", "Ｄiary"),
        ("work/System-Config/n.md", "work/work", "work/System-Config"),
        ("daily/2024-01-05.md", "inbox/inbox", "daily"),
    ],
)
def test_a_folder_with_a_reserved_name_makes_no_room(path: str, room: str, folder: str) -> None:
    assert rooms(path) == [room]
    assert codes(path) == [(folder, None)]


def test_below_its_room_a_folder_may_have_any_name() -> None:
    assert rooms("work/app/diary/n.md") == ["work/app"]
    assert not codes("work/app/diary/n.md")


def test_daily_notes_stand_in_the_daily_room() -> None:
    rules = PlaceRules(daily_folder="journal", is_daily=lambda path: path.endswith("-05.md"))
    home, problems = home_of("journal/2024/2024-01-05.md", rules)
    assert (home.address.place, home.section, home.reason, problems) == ("daily/daily", "2024", "folder:journal", ())
    assert rooms("journal/plans.md", rules=rules) == ["journal/journal"]
    assert rooms("journals/2024-01-05.md", rules=rules) == ["journals/journals"]


def test_daily_notes_may_lie_at_the_top() -> None:
    rules = PlaceRules(daily_folder="", is_daily=lambda path: path == "2024-01-05.md")
    assert rooms("2024-01-05.md", rules=rules) == ["daily/daily"]
    assert rooms("other.md", rules=rules) == ["inbox/inbox"]


def test_the_longest_glob_that_matches_wins_over_the_folder() -> None:
    rules = PlaceRules(
        globs=glob_rules(
            [
                Rule(glob="work/**", wing="Work", room="all"),
                Rule(glob="work/clients/**", wing="Work", room="Clients"),
                Rule(glob="*.draft.md", wing="Desk", room="drafts/open"),
            ]
        )
    )
    assert rooms("work/clients/x/n.md", ("t/u",), rules) == ["Work/Clients", "t/u"]
    assert rooms("work/n.md", rules=rules) == ["Work/all"]
    assert rooms("home/n.draft.md", rules=rules) == ["Desk/drafts/open"]
    assert rooms("home/n.md", rules=rules) == ["home/home"]
    assert home_of("work/n.md", rules)[0].reason == "rule:work/**"


@pytest.mark.parametrize("tag", ["../../etc", "..", "/", "//a//b/", "a/../../b", "\u202e/x"])
def test_tags_that_climb_stay_names(tag: str) -> None:
    placements, _ = place("x/n.md", note(tag), PlaceRules())
    assert all(one.address.wing and one.address.room for one in placements)


def test_nfd_and_nfc_are_one_room() -> None:
    placements, _ = place("x/n.md", note("caf\u00e9/a", "cafe\u0301/A"), PlaceRules())
    assert len(placements) == 2
    assert isinstance(placements[1], Placement)
    assert placements[1].wing_label == "caf\u00e9"


def test_a_note_that_names_a_room_a_line_stands_in_the_first_hundred() -> None:
    placements, problems = place("a/b/c.md", note(*(f"t/{n}x" for n in range(500))), PlaceRules())
    assert len(placements) == MOST_ROOMS + 1
    assert [p.code for p in problems] == ["too-many-rooms"]
