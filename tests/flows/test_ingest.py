"""Notes to stores: what changed is written, what did not is left alone, and nothing is embedded twice."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from ingest.rebuild import rebuild
from ingest.worker import Options
from palace.progress import silent
from palace.vocabulary import Counts, Sha256
from tests.embeddings import DIMENSIONS
from tests.house import House

NOTES = {
    "projects/Oven/plan.md": "# Plan\nThe oven needs a new door hinge.\n\n## Cost\nForty euros. #money\n",
    "projects/Oven/log.md": "See [[plan]] and [[nowhere]]. #projects/Oven\n",
    "home/garden.md": "Tomatoes like warm nights. [[plan|the oven]]\n",
    "Agents/scout/SOUL.md": "I am Scout, and my canary is KINGFISHER.\n",
    "Agents/scout/memory/2026-11-30.md": "Today I counted ravens.\n",
    "Agents/scout/notes.txt": "no room's glob names me",
}


@pytest.fixture
def house(tmp_path: Path, embeddings_url: str) -> House:
    made = House(tmp_path, embeddings_url)
    made.furnish(NOTES)
    return made


def worked(counts: Counts) -> dict[str, int]:
    names = ("new", "changed", "rooms_only", "moved", "touched", "gone", "embedded")
    return {name: value for name in names if (value := getattr(counts, name))}


def test_a_first_night_writes_everything_and_a_second_one_nothing(house: House) -> None:
    assert worked(house.night()) == {"new": 5, "embedded": 6}
    assert worked(house.night()) == {}
    found = house.verify()
    assert (found["differences"], found["notes"], found["chunks"], found["pending"]) == ([], 5, 6, 0)


def test_one_changed_paragraph_embeds_one_chunk(house: House) -> None:
    house.night()
    house.furnish(
        {"projects/Oven/plan.md": "# Plan\nThe oven needs a new door hinge.\n\n## Cost\nFifty euros. #money\n"}
    )
    counts = house.night()
    assert worked(counts) == {"changed": 1, "embedded": 1}
    assert house.verify()["differences"] == []


def test_a_moved_folder_and_touched_files_embed_nothing(house: House) -> None:
    house.night()
    (house.vault / "projects").rename(house.vault / "works")
    assert worked(house.night()) == {"moved": 2}
    for note in house.vault.rglob("*.md"):
        note.touch()
    assert worked(house.night()) == {"touched": 5}
    assert house.verify()["differences"] == []


def test_cached_vectors_of_passages_long_gone_are_forgotten(house: House) -> None:
    house.night()
    with house.library() as library:
        stale = ((Sha256(f"{n:064x}"), np.ones(DIMENSIONS, np.float32)) for n in range(20_100))
        library.cache.put_many(stale, library.model)
    house.furnish({"new.md": "One more note.\n"})
    assert worked(house.night()) == {"new": 1, "embedded": 1}
    with house.library() as library:
        assert len(library.cache) == library.catalogue.counts()[1] == 7


def test_other_rooms_alone_embed_nothing(house: House) -> None:
    house.night()
    settings = house.settings_file.read_text()
    house.settings_file.write_text(
        settings + '[[rooms.rules]]\nglob = "home/garden.md"\nwing = "outside"\nroom = "beds"\n'
    )
    assert worked(house.night()) == {"rooms_only": 1}
    assert house.search("tomatoes", rooms=["beds"])["hits"][0]["path"] == "home/garden.md"
    assert house.verify()["differences"] == []


def test_a_removed_note_is_gone_from_every_store_and_links_to_it_lead_nowhere(house: House) -> None:
    house.night()
    (house.vault / "projects/Oven/plan.md").unlink()
    assert worked(house.night()) == {"gone": 1}
    assert all(h["path"] != "projects/Oven/plan.md" for h in house.search("hinge")["hits"])
    with house.library() as library:
        around = library.neighbors("me", "home/garden.md")
    assert [u["link"] for u in around["unresolved"]] == ["plan"]
    assert house.verify()["differences"] == []


def test_a_new_note_answers_links_that_waited_for_it(house: House) -> None:
    house.night()
    house.furnish({"home/nowhere.md": "Now here.\n"})
    house.night()
    with house.library() as library:
        around = library.neighbors("me", "projects/Oven/log.md")
    assert sorted(n["path"] for n in around["links"]) == ["home/nowhere.md", "projects/Oven/plan.md"]
    assert around["unresolved"] == []


def test_an_interrupted_night_answers_by_words_and_goes_on(house: House) -> None:
    counts = house.night(Options(dense=False))
    assert counts.embedded == 0
    answer = house.search("door hinge")
    assert answer["hits"][0]["path"] == "projects/Oven/plan.md"
    assert answer["receipt"]["dense_share"] == 0.0
    assert house.verify()["pending"] == 6
    assert worked(house.night()) == {"embedded": 6}
    assert house.verify()["pending"] == 0


def test_a_bad_version_leaves_the_last_good_one_marked_stale(house: House) -> None:
    house.night()
    house.furnish({"home/garden.md": b"\xff\xfe\x00bad"})
    counts = house.night()
    assert [p.path for p in counts.problems] == ["home/garden.md"]
    hit = house.search("tomatoes like warm nights")["hits"][0]
    assert (hit["path"], hit["stale"]) == ("home/garden.md", True)
    house.furnish({"home/garden.md": "Tomatoes like warm nights.\n"})
    assert house.night().problems == []
    assert house.search("tomatoes")["hits"][0]["stale"] is False


def test_status_lists_what_is_not_read_with_its_reason(house: House) -> None:
    house.furnish({"bad.md": b"\xff\xfe\x00bad"})
    house.night()
    with house.library() as library:
        files = {f["path"]: f for f in library.status(files=True)["files"]}
    assert files["bad.md"]["state"] == "quarantined"
    assert files["Agents/scout/notes.txt"]["state"] == "skipped"
    assert files["home/garden.md"]["state"] == "indexed"
    assert files["home/garden.md"]["rooms"] == ["home/home"]


def test_a_private_root_that_is_not_there_forgets_nothing(house: House) -> None:
    house.night()
    shutil.move(house.vault / "Agents", house.folder / "elsewhere")
    house.place()
    assert not (house.settings.mirror("main") / "Agents").exists()
    counts = house.ingest()
    assert counts.gone == 0
    assert [p.code for p in counts.problems] == ["source-lost"]
    paths = {h["path"] for h in house.search("I counted ravens", reader="scout")["hits"]}
    assert "Agents/scout/memory/2026-11-30.md" in paths


def test_a_cube_taken_out_of_the_settings_is_forgotten(house: House) -> None:
    house.night()
    settings = house.settings_file.read_text()
    start = settings.index("[[private]]")
    house.settings_file.write_text(
        settings[:start] + settings[settings.index("[readers.me]") :].replace(', "scout"]', "]")
    )
    assert house.night().gone == 2
    assert house.verify()["notes"] == 3


def test_a_killed_write_is_finished_by_the_next_run(house: House) -> None:
    house.night()
    with house.library() as library:
        ids = sorted(library.catalogue.rows([library.find("me", "home/garden.md").ref.id]))
        library.catalogue.reopen(ids)
        library.catalogue.set({"ingested": ""})
    before = house.verify()
    assert before["differences"]
    house.ingest()
    assert house.verify()["differences"] == []


def test_a_rebuild_gives_the_same_state(house: House) -> None:
    house.night()
    before = house.verify()
    with house.library() as library:
        counts = rebuild(library, library.settings, silent, Options())
        assert library.search("me", "door hinge")["hits"]
    assert counts.embedded == 0
    assert house.verify() == before


def test_the_vault_is_the_same_to_the_byte(house: House) -> None:
    before = {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in sorted(house.vault.rglob("*")) if p.is_file()}
    house.night()
    assert {p: (p.read_bytes(), p.stat().st_mtime_ns) for p in sorted(house.vault.rglob("*")) if p.is_file()} == before


def test_a_note_replaced_by_a_link_to_another_cubes_file_shows_what_was_ingested(house: House) -> None:
    house.night()
    secret = house.folder / "secret.md"
    secret.write_text("The canary is OSPREY.\n")
    with house.library() as library:
        row = library.find("scout", "Agents/scout/memory/2026-11-30.md")
        file = Path(row.file)
        file.parent.chmod(0o700)
        file.unlink()
        file.symlink_to(secret)
        found = library.read("scout", row.ref.id)
    assert "OSPREY" not in found["text"]
    assert "ravens" in found["text"]
    assert found["stale"] is True
    house.ingest()
    with house.library() as library:
        assert "OSPREY" not in str(library.search("scout", "canary OSPREY", rooms=["diary"]))
