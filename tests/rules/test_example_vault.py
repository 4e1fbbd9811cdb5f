"""The example vault is what a newcomer sees first: no Problem in it, nothing private in the palace, no lost link."""

import tomllib

import pytest
from pathspec import GitIgnoreSpec

from dualwall import init, template
from palace.configuration import parse
from palace.names import nfc
from palace.obsidian.links import resolve
from palace.obsidian.note import read_note
from palace.vocabulary import ParsedNote
from tests.support import ROOT

VAULT = ROOT / "examples" / "vault"
FOUND = init.look(VAULT, "data", adopt=True)
SETTINGS = parse(tomllib.loads(template.render(FOUND)), {}, file=ROOT / "dualwall.toml", lines={})
"""What `make run` uses for the example."""


def _public() -> dict[str, ParsedNote]:
    left_out = GitIgnoreSpec.from_lines([*SETTINGS.vaults["main"].exclude, "templates/**", "*(Conflicted copy *"])
    notes = sorted(path.relative_to(VAULT).as_posix() for path in VAULT.rglob("*.md"))
    return {path: read_note((VAULT / path).read_bytes(), path) for path in notes if not left_out.match_file(path)}


NOTES = _public()


def test_about_forty_notes_are_public() -> None:
    assert 38 <= len(NOTES) <= 50
    assert SETTINGS.vaults["main"].source == str(VAULT)
    assert FOUND.daily is not None
    assert FOUND.daily.folder == "daily"


@pytest.mark.parametrize("path", NOTES)
def test_no_note_has_a_problem(path: str) -> None:
    assert NOTES[path].problems == ()


def test_the_agent_has_a_cube_of_its_own_and_nothing_of_it_is_public() -> None:
    (private,) = SETTINGS.private
    assert (private.cube, private.in_vault) == ("scout", ("main", "Agents/scout"))
    assert private.rooms == {"system_config": ("SOUL.md", "MEMORY.md"), "diary": ("memory/*.md",)}
    assert not any(path.startswith("Agents/") for path in NOTES)
    assert SETTINGS.readers["me"].cubes == ("global",)
    assert SETTINGS.readers["scout"].cubes == ("global", "scout")


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
