"""From a mirror to a palace and back to the proof, with real files."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from librarian.build import build
from librarian.index import start_here, tokens
from librarian.verify import verify
from palace import manifest
from palace.errors import DualwallError, Exit, SettingsError, UnreachableError
from tests.palaces import House

HouseOf = Callable[..., House]


@pytest.fixture
def house_of(tmp_path: Path) -> HouseOf:
    return lambda **more: House(tmp_path / "data", more)


@pytest.fixture
def house(house_of: HouseOf) -> House:
    return house_of()


NOTES = {
    "projects/AI-Fortune/mvp.md": "A plan. #idea",
    "projects/AI-Fortune/old/notes.md": "---\ntags: [reading/books]\n---\nOld ones.",
    "projects/loose.md": "One level. #ai-fortune",
    "top.md": "At the top. #reading/books",
}


def test_a_mirror_becomes_a_palace_of_hardlinks(house: House) -> None:
    house.write(NOTES)
    result = house.build()
    assert (result.generation, result.changed, result.counts["new"], result.problems) == (1, True, 4, ())
    assert house.tree() == [
        "inbox/inbox/top.md",
        "projects/AI-Fortune/loose.md",
        "projects/AI-Fortune/mvp.md",
        "projects/AI-Fortune/notes.md",
        "projects/projects/loose.md",
        "reading/books/notes.md",
        "reading/books/top.md",
        "tags/idea/mvp.md",
    ]
    for path, entry in house.entries.items():
        links = [house.current.folder / link for link in entry.links]
        assert all(link.samefile(house.mirror(path)) for link in links)
        assert (entry.stat.inode, entry.stat.ctime_ns) == (links[0].stat().st_ino, links[0].stat().st_ctime_ns)
    assert verify(house.settings) == []


def test_the_label_of_a_room_names_its_folder(house: House) -> None:
    house.write({f"{i}.md": "#Games/PS5" for i in range(2)} | {"x.md": "#games/ps5"})
    house.build()
    assert "Games/PS5/x.md" in house.tree()


def test_without_a_change_nothing_is_built(house: House) -> None:
    house.write(NOTES)
    house.build()
    before = house.current
    again = house.build()
    assert (again.generation, again.changed, again.counts["read"]) == (1, False, 0)
    assert house.current == before


def test_a_removed_tag_empties_its_room_and_two_generations_stay(house: House) -> None:
    for text in ("#a/one", "#a/two", "#a/three"):
        house.write({"n.md": text})
        house.build()
    assert house.tree() == ["a/three/n.md", "inbox/inbox/n.md"]
    assert house.generations() == ["current", "gen-000002", "gen-000003"]
    assert (house.data / "palace/gen-000002/global/a/two/n.md").read_text() == "#a/two"


def test_counts_tell_what_changed(house: House) -> None:
    """One note of each kind: new, new text, the room of a flat tag moves with a folder, gone."""
    house.write({"games/PS5/a.md": "a", "flat.md": "#ps5", "text.md": "one", "gone.md": "x"})
    house.build()
    house.write({"toys/PS5/b.md": "b", "text.md": "two"})
    house.mirror("gone.md").unlink()
    counts = house.build().counts
    assert {k: counts[k] for k in ("new", "changed", "rooms_only", "gone")} == {
        "new": 1,
        "changed": 1,
        "rooms_only": 1,
        "gone": 1,
    }
    assert "tags/ps5/flat.md" in house.tree()


def test_a_touched_note_is_linked_again_and_not_read_as_new(house: House) -> None:
    """rsync gives a touched file a new inode."""
    house.write(NOTES)
    house.build()
    digest = house.current.digest
    house.write({"top.md": NOTES["top.md"]}, mtime=1_800_000_000)
    result = house.build()
    assert (result.changed, result.counts["relinked"], result.counts["read"]) == (True, 1, 1)
    assert house.current.digest == digest
    assert verify(house.settings) == []


def test_a_changed_mode_builds_nothing_and_the_new_stat_is_known(house: House) -> None:
    house.write(NOTES)
    house.build()
    house.mirror("top.md").chmod(0o444)
    result = house.build()
    assert (result.changed, result.generation, result.counts["read"]) == (False, 1, 1)
    assert house.entries["top.md"].stat.ctime_ns == house.mirror("top.md").stat().st_ctime_ns
    assert house.build().counts["read"] == 0


def test_equal_size_and_mtime_do_not_hide_other_bytes(house: House) -> None:
    house.write({"n.md": "#a/one"})
    house.build()
    mtime = house.mirror("n.md").stat().st_mtime
    house.mirror("n.md").write_text("#b/one")
    os.utime(house.mirror("n.md"), (mtime, mtime))
    house.build()
    assert "b/one/n.md" in house.tree()


def test_young_notes_are_hashed_whatever_their_stat_says(house: House) -> None:
    house.write({"n.md": "#a/one", "old.md": "x"})
    house.write({"n.md": "#a/one"}, mtime=None)
    house.build()
    assert list(house.current.racy) == ["main/n.md"]
    assert not house.build().changed
    # As if the bytes had changed within the timestamp: the stat is equal, the hash is not.
    file = house.current.folder / manifest.GENERATION
    file.write_text(file.read_text().replace(house.current.racy["main/n.md"], "0" * 64))
    assert house.build().counts["read"] == 1


def test_attachments_and_other_settings_without_effect_build_nothing(house: House, house_of: HouseOf) -> None:
    house.write(NOTES)
    house.build()
    house.write({"cat.png": "not really"})
    assert not house.build().changed
    assert house.skipped["cat.png"] == "skipped: no Markdown"
    assert not house_of(rooms={"deny_tags": ["nowhere"]}).build().changed
    assert house_of(rooms={"deny_tags": ["#Idea"]}).build().counts["rooms_only"] == 1
    assert "tags/idea/mvp.md" not in house.tree()


def test_a_dry_run_tells_and_does_nothing(house: House) -> None:
    house.write(NOTES)
    result = house.build(dry_run=True)
    assert result.changed
    assert not (house.data / "palace").exists()
    assert result.lines[0] == "new rooms: 5"
    house.build()
    house.mirror("top.md").unlink()
    assert list(house.build(dry_run=True).lines) == [
        "rooms that go: 1",
        "  inbox/inbox",
        "notes that go: 1",
        "  main/top.md",
    ]
    assert house.generations() == ["current", "gen-000001"]
    house.build()
    assert house.build(dry_run=True).lines == ("Nothing to do: the palace is as the mirror is.",)


RESERVED = {
    "n.md": "#diary #System_Config #ｄｉａｒｙ #dіary #fine",
    "diary/x.md": "x",
    "work/System-Config/y.md": "y",
}


def test_reserved_names_make_no_room_and_every_run_says_so(house: House) -> None:
    """The twenty-fifth input of the list, and two folders."""
    house.write(RESERVED)
    problems = house.build().problems
    assert sorted((p.path, p.line, p.code) for p in problems if p.code == "reserved-room") == [
        ("diary", None, "reserved-room"),
        *[("n.md", 1, "reserved-room")] * 4,
        ("work/System-Config", None, "reserved-room"),
    ]
    assert house.tree() == ["inbox/inbox/n.md", "inbox/inbox/x.md", "tags/fine/n.md", "work/work/y.md"]
    assert house.build().problems == problems
    house.write({"other.md": "x"})
    assert house.build().problems == problems


def test_daily_notes_come_from_the_vaults_own_settings_or_ours(house: House, house_of: HouseOf) -> None:
    house.write({"Tagebuch/2024-01-05.md": "x", "2024-01-06.md": "y"})
    house.build()
    assert house.tree() == ["Tagebuch/Tagebuch/2024-01-05.md", "inbox/inbox/2024-01-06.md"]
    house.write({".obsidian/daily-notes.json": '{"folder": "tagebuch/"}'})
    house.build()
    assert house.tree() == ["daily/daily/2024-01-05.md", "inbox/inbox/2024-01-06.md"]
    other = house_of(vaults={"main": {"daily": {"folder": ""}}})
    other.build()
    assert other.tree() == ["Tagebuch/Tagebuch/2024-01-05.md", "daily/daily/2024-01-06.md"]


def test_names_that_differ_in_case_or_normal_form_lose_no_note(house: House) -> None:
    r"""A.md and a.md; café.md in NFC and in NFD (kept apart by a folder), and both in one folder; a name in Latin-1"""
    house.write(
        {
            "x/A.md": "upper",
            "x/a.md": "lower",
            "x/caf\u00e9.md": "nfc",
            "y/cafe\u0301.md": "nfd",
            "x/cafe\u0301.md": "nfd twin",
            os.fsdecode(b"x/caf\xe9.md"): "latin",
        }
    )
    problems = house.build().problems
    entries = house.entries
    assert set(entries) == {"x/A.md", "x/a.md", "x/caf\u00e9.md", "y/caf\u00e9.md", "x/caf\\xe9.md"}
    assert entries["y/caf\u00e9.md"].mirror == "y/cafe\u0301.md"
    assert {(p.code, p.path) for p in problems} == {("same-name", "x/caf\u00e9.md"), ("name-not-utf8", "x/caf\\xe9.md")}
    assert house.skipped["x/caf\u00e9.md"].startswith("quarantined: ")
    assert len(house.tree()) == 5
    assert verify(house.settings) == []
    assert not house.build().changed


def test_tags_and_titles_that_climb_stay_inside(house: House) -> None:
    house.write(
        {
            "..hidden/x.md": "never",
            "a/..b.md": "dots",
            "a/n.md": '---\ntitle: "../../../etc/passwd"\ntags: ["../../etc", "..", "x/../../y", "CON/nul"]\n---\n',
        }
    )
    house.build()
    outside = [p for p in house.data.rglob("*") if p.is_file() and not p.is_relative_to(house.data / "mirror")]
    assert all(p.is_relative_to(house.current.folder) for p in outside)
    assert all(not part.startswith(".") for path in house.tree() for part in path.split("/"))
    assert verify(house.settings) == []


def test_what_is_never_shelved_is_listed_with_its_reason(house_of: HouseOf) -> None:
    house = house_of(vaults={"main": {"exclude": ["drafts/**"]}}, ingest={"max_note_bytes": 1024})
    house.write(
        {
            ".obsidian/app.json": '{"userIgnoreFilters": ["Attic/"]}',
            ".obsidian/templates.json": '{"folder": "Templates"}',
            ".trash/old.md": "x",
            ".dot.md": "x",
            "Templates/t.md": "{{title}}",
            "drafts/d.md": "x",
            "Attic/a.md": "x",
            "big.md": "x" * 1025,
            "n.md": "x",
            "n.sync-conflict-20260101-120000-ABCDEFG.md": "x",
            "n (Conflicted copy laptop 202601011200).md": "x",
            "board.canvas": "{}",
        }
    )
    house.mirror("link.md").symlink_to("n.md")
    house.mirror("folder").symlink_to(house.data)
    os.mkfifo(house.mirror("pipe.md"))
    problems = house.build().problems
    assert set(house.entries) == {"n.md"}
    assert house.skipped == {
        ".obsidian": "skipped: hidden folder",
        ".trash": "skipped: hidden folder",
        ".dot.md": "skipped: dot file",
        "Templates/t.md": "skipped: template",
        "drafts/d.md": "skipped: excluded by the settings",
        "Attic/a.md": "skipped: excluded by the vault (Excluded files)",
        "big.md": "quarantined: The note is too large: 0.0 MB, and 0.0 MB are the limit.",
        "n.sync-conflict-20260101-120000-ABCDEFG.md": "skipped: conflict copy",
        "n (Conflicted copy laptop 202601011200).md": "skipped: conflict copy",
        "board.canvas": "skipped: no Markdown",
        "link.md": "skipped: symlink (never followed)",
        "folder": "skipped: symlink (never followed)",
        "pipe.md": "skipped: no regular file",
    }
    assert [p.code for p in problems] == ["too-large"]


def test_only_public_folders_are_read(house_of: HouseOf) -> None:
    house = house_of(vaults={"main": {"public": ["Notes", "Cafe\u0301s/open"]}})
    house.write(
        {"Notes/work/app/n.md": "x", "Caf\u00e9s/open/list.md": "x", "Caf\u00e9s/closed/x.md": "x", "secret.md": "x"}
    )
    house.build()
    assert house.tree() == ["inbox/inbox/list.md", "work/app/n.md"]
    assert house.skipped == {}


@pytest.mark.parametrize(
    ("public", "exclude", "private"),
    [
        (["."], [], "vault:main/Agents/cat"),
        (["."], ["Agents/*.md"], "vault:main/Agents"),
        (["Agents/cat/open"], [], "vault:main/Agents/cat"),
    ],
)
def test_a_wall_that_leaks_stops_the_librarian(
    house_of: HouseOf, public: list[str], exclude: list[str], private: str
) -> None:
    house = house_of(
        vaults={"main": {"public": public, "exclude": exclude}},
        private=[{"cube": "cat", "path": private, "rooms": {"diary": ["*.md"]}}],
    )
    house.write({"Agents/cat/open/n.md": "x"})
    with pytest.raises(SettingsError) as stopped:
        house.build()
    assert stopped.value.exit_code == Exit.USAGE
    assert not (house.data / "palace").exists()


def test_a_private_root_is_not_entered_and_not_named(house_of: HouseOf) -> None:
    house = house_of(
        vaults={"main": {"exclude": ["Agents/**"]}},
        private=[{"cube": "cat", "path": "vault:main/Agents/cat", "rooms": {"diary": ["*.md"]}}],
    )
    house.write({"Agents/cat/SECRET.md": "#leak", "Agents/readme.md": "x", "n.md": "x"})
    house.build()
    assert house.tree() == ["inbox/inbox/n.md"]
    for file in house.current.folder.rglob("*"):
        assert "SECRET" not in file.name
        assert not file.is_file() or b"SECRET" not in file.read_bytes()


def test_an_absent_mirror_deletes_nothing(house: House) -> None:
    house.write(NOTES)
    house.build()
    settings = house.settings
    shutil.rmtree(house.data / "mirror")
    with pytest.raises(UnreachableError, match="no mirror"):
        build(settings)
    assert len(house.tree()) == 8


def test_a_public_folder_that_is_not_there_stops_the_run(house_of: HouseOf, house: House) -> None:
    house.write(NOTES)
    house.mirror("linked").symlink_to(house.data)
    for folder in ("Projects", "linked"):
        with pytest.raises(SettingsError, match="no such folder"):
            house_of(vaults={"main": {"public": [folder]}}).build()


def test_two_vaults_share_rooms_and_keep_their_names_apart(house_of: HouseOf) -> None:
    house = house_of(vaults={"main": {}, "second": {}})
    house.write({"work/App/README.md": "one"})
    house.write({"Work/app/README.md": "two", "n.md": "#app"}, vault="second")
    house.build()
    assert len(house.tree()) == 4
    folders = {path.rpartition("/")[0] for path in house.tree()}
    assert folders == {"Work/app", "inbox/inbox"}
    assert verify(house.settings) == []


def test_a_damaged_palace_is_found_and_built_anew(house: House) -> None:
    house.write(NOTES)
    house.build()
    folder = house.current.folder
    (folder / "global/inbox/inbox/top.md").unlink()
    (folder / "global/tags/idea/stranger.md").write_text("x")
    (folder / "global/reading/books/notes.md").unlink()
    (folder / "global/reading/books/notes.md").write_text("other bytes")
    assert sorted(verify(house.settings)) == [
        "global/inbox/inbox/top.md: is missing",
        "global/reading/books/notes.md: is not the mirror's file any more (another inode)",
        "global/reading/books/notes.md: other bytes than the manifest has",
        "global/tags/idea/stranger.md: stands in the palace, and the manifest does not know it",
    ]
    house.build(full=True)
    assert verify(house.settings) == []


@pytest.mark.parametrize("name", [manifest.MANIFEST, manifest.GENERATION, manifest.PROBLEMS])
def test_a_damaged_file_of_the_palace_says_how_to_mend_it(house: House, name: str) -> None:
    house.write(NOTES | RESERVED)
    house.build()
    file = house.current.folder / name
    whole = file.read_text()
    file.write_text(whole[:-9])
    house.write({"more.md": "x"})
    with pytest.raises(DualwallError, match="--full"):
        house.build()
    file.unlink()
    with pytest.raises(DualwallError, match="--full"):
        house.build()
    assert house.build(full=True).generation == 2
    assert verify(house.settings) == []


def test_a_palace_without_its_current_generation_comes_back(house: House) -> None:
    house.write(NOTES)
    house.build()
    shutil.rmtree(house.current.folder)
    assert manifest.current(house.settings) is None
    house.build()
    assert verify(house.settings) == []


def test_a_note_that_cannot_be_understood_stands_all_the_same(house: House) -> None:
    """UTF-16 bytes, and properties that are no YAML"""
    house.write({"x/utf16.md": "#a".encode("utf-16"), "x/yaml.md": "---\na: [\n---\n#b/c"})
    problems = house.build().problems
    assert {p.path for p in problems} == {"x/utf16.md", "x/yaml.md"}
    assert house.tree() == ["b/c/yaml.md", "x/x/utf16.md", "x/x/yaml.md"]


def test_start_here_is_short_whatever_the_size_and_equal_for_equal_palaces(house: House) -> None:
    house.write({f"wing{i % 9}/a long name of a room number {i}/n.md": f"#tag{i}/{'很长' * 30}" for i in range(400)})
    house.build()
    page = (house.current.folder / "START-HERE.md").read_text()
    assert tokens(page) <= 3000
    assert "smaller rooms" in page
    assert page == start_here(reversed(list(house.entries.values())))


def test_start_here_holds_no_markup_of_a_folder(house: House) -> None:
    house.write({"a<script>`x`](http://x)\u202e\n# head/b/n.md": "x"})
    house.build()
    page = (house.current.folder / "START-HERE.md").read_text()
    assert not any(mark in page.split("## Rooms")[1] for mark in ("<", "`", "](", "\u202e", "\n# "))


def test_the_manifest_reads_back_what_was_written(house: House, tmp_path: Path) -> None:
    house.write(NOTES | {os.fsdecode(b"caf\xe9.md"): "x"})
    house.build()
    entries = list(house.entries.values())
    manifest.write(tmp_path / "copy.jsonl", entries)
    assert list(manifest.read(tmp_path / "copy.jsonl")) == entries
    assert [e.ref.path for e in entries] == sorted(e.ref.path for e in entries)


def run(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, Any]:
    from dualwall.cli import run as command_line  # noqa: PLC0415

    code = command_line(arguments)
    said = capsys.readouterr().out
    return code, json.loads(said) if "--json" in arguments else said


def test_the_command_line(house: House, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    house.write(RESERVED)
    (tmp_path / "vault").mkdir()
    config = tmp_path / "dualwall.toml"
    config.write_text('data = "data"\n[vaults.main]\nsource = "vault"\n[readers.me]\ncubes = ["global"]\n')
    (house.data / "mirror/main").mkdir(parents=True, exist_ok=True)
    end = ["--config", str(config)]
    code, said = run(["librarian", "build", "--dry-run", *end], capsys)
    assert code == Exit.PROBLEMS
    assert "new notes: 3" in said
    code, found = run(["librarian", "build", "--json", *end], capsys)
    assert (code, found["status"], found["generation"], found["counts"]["new"]) == (Exit.PROBLEMS, "problems", 1, 3)
    assert {"path", "line", "code", "message", "hint"} == set(found["problems"][0])
    code, said = run(["librarian", "build", *end], capsys)
    assert "Nothing changed: generation 1, 3 notes in 3 rooms" in said
    assert run(["librarian", "verify", "--json", *end], capsys) == (0, {"differences": [], "notes": 3, "links": 4})
    (house.current.folder / "global/inbox/inbox/n.md").unlink()
    assert run(["librarian", "verify", *end], capsys)[0] == Exit.FAILED
