"""The example vault is what a newcomer sees first: no Problem in it, nothing private in the palace, no lost link."""

from pathlib import Path

import pytest
from pathspec import GitIgnoreSpec

from palace.configuration import load
from palace.names import nfc
from palace.obsidian.links import resolve
from palace.obsidian.note import read_note
from palace.vocabulary import ParsedNote
from tests.support import ROOT

VAULT = ROOT / "examples" / "vault"
SETTINGS = load(ROOT / "examples" / "dualwall.toml")


def _public() -> dict[str, ParsedNote]:
    left_out = GitIgnoreSpec.from_lines([*SETTINGS.vaults["main"].exclude, "templates/**", "*(Conflicted copy *"])
    notes = sorted(path.relative_to(VAULT).as_posix() for path in VAULT.rglob("*.md"))
    return {path: read_note((VAULT / path).read_bytes(), path) for path in notes if not left_out.match_file(path)}


NOTES = _public()


def test_about_forty_notes_are_public_and_the_settings_are_sound() -> None:
    assert 38 <= len(NOTES) <= 50
    assert Path(SETTINGS.vaults["main"].source) == VAULT
    assert SETTINGS.data == ROOT / ".dualwall" / "example"
    assert SETTINGS.default_reader == "me"


@pytest.mark.parametrize("path", NOTES)
def test_no_note_has_a_problem(path: str) -> None:
    assert NOTES[path].problems == ()


def test_nothing_of_the_agent_is_public() -> None:
    (private,) = SETTINGS.private
    assert private.in_vault == ("main", "Agents/scout")
    assert not any(path.startswith("Agents/") for path in NOTES)
    assert (VAULT / "Agents" / "scout" / "SOUL.md").is_file()


def test_the_example_shows_what_the_readme_speaks_of() -> None:
    tags = {tag.name for note in NOTES.values() for tag in note.tags}
    assert any("/" in tag for tag in tags)
    assert any(not tag.isascii() for tag in tags)
    assert any(note.aliases for note in NOTES.values())
    assert any(link.embed for note in NOTES.values() for link in note.links)
    assert sum(path.startswith("daily/") for path in NOTES) >= 5
    kinds = {block.kind for note in NOTES.values() for block in note.blocks}
    assert {"heading", "paragraph", "list", "table", "code", "quote"} <= kinds


def test_every_link_leads_to_a_public_note() -> None:
    paths = [nfc(path) for path in NOTES]
    lost = [
        (path, link.link)
        for path, note in NOTES.items()
        for link in note.links
        if link.target and resolve(link.target, nfc(path), paths) is None
    ]
    assert lost == []


def test_code_makes_no_tag() -> None:
    tags = {tag.name for tag in NOTES["projects/Dandy/Seeing weeds.md"].tags}
    assert tags == {"robot/vision"}
