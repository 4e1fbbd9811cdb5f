"""Names of folders and files in the palace, and labels of rooms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from librarian.names import FileInRoom, file_names, folder_name, folder_names
from librarian.place import PlaceRules
from librarian.plan import Difference, ReadNote, arrange, difference, digest
from palace.manifest import Entry
from palace.names import fold
from palace.vocabulary import Sha256, Stat, Tag

STAT = Stat(1, 1, 1, 1, 1)


def read(path: str, *tags: str, vault: str = "main", text: str = "x", inode: int = 1) -> ReadNote:
    found = tuple(Tag(tag, 1, inline=True) for tag in tags)
    return ReadNote(vault, path, path, Stat(1, inode, 1, 1, 1), Sha256(text), found)


def arranged(*notes: ReadNote) -> tuple[Entry, ...]:
    return arrange(notes, {"main": PlaceRules(), "other": PlaceRules()}).entries


def links(*notes: ReadNote) -> list[str]:
    return sorted(link.removeprefix("global/") for entry in arranged(*notes) for link in entry.links)


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("AI-Fortune", "AI-Fortune"),
        ("b/c", "b.c"),
        ("../../etc", "_etc"),
        ("..", "_"),
        (".hidden", "_hidden"),
        ("a\x00b\nc", "a_b_c"),
        ('a:b*c?d"e<f>g|h\\i', "a_b_c_d_e_f_g_h_i"),
        ("NUL", "NUL_"),
        ("com1.txt", "com1.txt_"),
        ("trailing. .", "trailing"),
        ("\u202egnp", "_gnp"),
        ("人工智能 🌱", "人工智能 🌱"),
    ],
)
def test_a_label_becomes_a_safe_folder(label: str, name: str) -> None:
    assert folder_name(label) == name


@given(st.text(min_size=1, max_size=400))
def test_any_label_becomes_a_folder_that_every_disk_takes(label: str) -> None:
    name = folder_name(label)
    assert 0 < len(name.encode()) <= 255
    assert "/" not in name
    assert "\x00" not in name
    assert not name.startswith(".")
    assert not name.endswith((".", " "))


def test_rooms_whose_safe_names_meet_get_a_hash_and_the_true_name_keeps_it() -> None:
    names = folder_names({1: ("b/c", "b/c"), 2: ("b.c", "b.c"), 3: ("x", "X")})
    assert names[2] == "b.c"
    assert names[1].startswith("b.c~")
    assert names[3] == "X"


def test_equal_file_names_get_the_folder_above_then_a_hash() -> None:
    """Three README.md that meet in one room by their tag, two of them from folders of one name."""
    notes = [
        read("a/x/README.md", "t/u"),
        read("b/x/readme.md", "t/u"),
        read("c/y/README.md", "t/u"),
        read("d/z.md", "t/u"),
    ]
    expected = links(*notes)
    assert "t/u/README (y).md" in expected
    assert "t/u/z.md" in expected
    hashed = [link for link in expected if link.startswith("t/u/") and "(x) " in link]
    assert len(hashed) == 2
    assert links(*reversed(notes)) == expected


def test_a_name_that_looks_like_a_renamed_one_is_not_overwritten() -> None:
    """README.md twice, and a note that is called `README (x).md`"""
    found = [link for link in links(*(read(p, "t/u") for p in ("a/x/README.md", "b/y/README.md", "c/z/README (x).md"))) if link[:4] == "t/u/"]  # fmt: skip
    assert len({fold(link) for link in found}) == 3


names = st.text(st.characters(codec="utf-8", exclude_characters="/\x00"), min_size=1, max_size=80)


@given(
    st.lists(st.builds(FileInRoom, names.map("{}.md".format), names, names), max_size=8, unique_by=lambda f: f.identity)
)
def test_names_in_a_room_are_all_different_and_know_no_order(files: list[FileInRoom]) -> None:
    made = file_names(files)
    assert len({fold(name) for name in made}) == len(files)
    assert all(len(name.encode()) <= 255 for name in made)
    assert list(reversed(file_names(list(reversed(files))))) == made


def test_a_room_has_its_most_frequent_spelling_for_a_label() -> None:
    """#PS5 once, #ps5 twice; Ideas and ideas once each: the tie goes to the first in order"""
    entries = arranged(read("a.md", "Games/PS5"), read("b.md", "games/ps5"), read("c.md", "games/ps5"), read("d.md", "x/ideas", "y/Z"), read("e.md", "X/Ideas"))  # fmt: skip
    labels = {one.address.place: (one.wing_label, one.room_label) for entry in entries for one in entry.placements}
    assert labels["games/ps5"] == ("games", "ps5")
    assert labels["x/ideas"] == ("X", "Ideas")
    assert {link for entry in entries for link in entry.links if "games" in link.lower()} == {
        f"global/games/ps5/{name}.md" for name in "abc"
    }


def test_flat_tags_join_folder_rooms_of_the_whole_palace_whatever_the_order() -> None:
    notes = [read("z.md", "ps5"), read("games/PS5/a.md", vault="other")]
    assert links(*notes) == links(*reversed(notes)) == ["games/PS5/a.md", "games/PS5/z.md", "inbox/inbox/z.md"]


def test_the_digest_knows_rooms_and_bytes_and_no_inode() -> None:
    one = arranged(read("a/b/n.md", "t/u"), read("m.md"))
    assert digest(one) == digest(arranged(read("m.md", inode=7), read("a/b/n.md", "t/u", inode=9)))
    assert digest(one) != digest(arranged(read("a/b/n.md", "t/v"), read("m.md")))
    assert digest(one) != digest(arranged(read("a/b/n.md", "t/u", text="y"), read("m.md")))


def test_a_difference_names_what_changes() -> None:
    old = arranged(
        read("a/a/same.md"), read("a/a/text.md"), read("a/b/tag.md", "old/room"), read("gone/x/n.md"), read("t.md")
    )
    new = arranged(read("a/a/same.md"), read("a/a/text.md", text="y"), read("a/b/tag.md", "new/room"), read("n.md"), read("t.md", inode=5))  # fmt: skip
    found = difference(old, new)
    assert found == Difference(
        new=("main/n.md",),
        changed=("main/a/a/text.md",),
        rooms_only=("main/a/b/tag.md",),
        gone=("main/gone/x/n.md",),
        relinked=("main/t.md",),
        new_rooms=(("new/room", 1),),
        gone_rooms=(("gone/x", 1), ("old/room", 1)),
    )
    assert not found.empty
    assert "notes that go: 1" in list(found.lines())
    assert difference(new, new).empty
