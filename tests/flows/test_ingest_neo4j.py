"""A whole vault with its graph on a real Neo4j server is the same palace as with the embedded one."""

import os
import shutil
from pathlib import Path

import pytest

from ingest.rebuild import rebuild
from ingest.worker import Options
from palace.library import Library
from palace.progress import silent
from palace.stores.ports import Neighborhood
from palace.vocabulary import NoteId, Room
from palace.walls import Reader
from tests.embeddings import DIMENSIONS
from tests.house import TOML, House
from tests.servers.neo4j_server import Neo4jServer
from tests.support import ROOT

READERS = (Reader("me", frozenset({"global"})), Reader("scout", frozenset({"global", "scout"})))


def furnished(folder: Path, url: str, server: Neo4jServer | None = None) -> House:
    """A house with the example's vault and an agent's own notes; its graph is on the server if there is one."""
    house = House(folder, url)
    shutil.copytree(ROOT / "examples/vault", house.vault)
    configure(house, url, server)
    house.furnish(
        {"Agents/scout/SOUL.md": "I am Scout. [[Home]] #soul\n", "Agents/scout/memory/a.md": "[[SOUL]] #soul\n"}
    )
    return house


def configure(house: House, url: str, server: Neo4jServer | None) -> None:
    """Write the settings."""
    text = TOML.format(vectors="edge", url=url, dimensions=DIMENSIONS)
    if server is not None:
        asked = server.settings
        text = text.replace("[stores]\n", '[stores]\ngraph = "neo4j"\n')
        text += f'[stores.neo4j]\nurl = "{asked.url}"\npassword_file = "{asked.password_file}"\n'
    house.settings_file.write_text(text)


Told = dict[str, tuple[list[Room], dict[NoteId, Neighborhood]]]


def told(library: Library) -> Told:
    """Every room and what stands around every note, for each reader."""
    notes = [note.id for note in library.graph.notes()]
    return {
        reader.name: (
            library.graph.rooms(reader.scope()),
            {note: library.graph.neighbors(note, reader.scope()) for note in notes},
        )
        for reader in READERS
    }


def change(vault: Path) -> None:
    """Move a folder, delete a note of the vault and one of the agent's, change one."""
    (vault / "areas").rename(vault / "fields")
    notes = sorted(p for p in (vault / "reading").rglob("*.md"))
    notes[0].unlink()
    (vault / "Ideas.md").write_text((vault / "Ideas.md").read_text() + "\n#late [[Waited for]]\n")
    (vault / "Agents/scout/memory/a.md").unlink()


def stay(_vault: Path) -> None:
    """Nothing."""


def fulfil(vault: Path) -> None:
    """Add the note that a link has waited for."""
    (vault / "Waited for.md").write_text("Here I am. [[Ideas]]\n")


def bereave(vault: Path) -> None:
    """Delete a note that others link to."""
    (vault / "Ideas.md").unlink()


def touch(vault: Path, seconds: int) -> None:
    """Every file, with the same time in both vaults."""
    for note in vault.rglob("*.md"):
        os.utime(note, (seconds, seconds))


@pytest.mark.slow
def test_a_vault_on_neo4j_is_the_same_palace(neo4j_server: Neo4jServer, tmp_path: Path, embeddings_url: str) -> None:
    neo4j_server.wipe()
    houses = [
        furnished(tmp_path / "embedded", embeddings_url),
        furnished(tmp_path / "server", embeddings_url, neo4j_server),
    ]
    for step, alter in enumerate((stay, change, fulfil, bereave)):
        found, verified, answers = [], [], []
        for house in houses:
            alter(house.vault)
            touch(house.vault, 1_780_000_000 + step)
            found.append(house.night())
            verified.append(house.verify())
            with house.library() as library:
                answers.append(told(library))
        assert verified[0]["differences"] == [], step
        assert verified[0] == verified[1], step
        assert answers[0] == answers[1], step
        assert found[0] == found[1], step
        assert verified[0]["notes"] > 40


@pytest.mark.slow
def test_a_rebuild_brings_the_graph_over(neo4j_server: Neo4jServer, tmp_path: Path, embeddings_url: str) -> None:
    neo4j_server.wipe()
    house = furnished(tmp_path, embeddings_url)
    house.night()
    before = house.verify()
    configure(house, embeddings_url, neo4j_server)
    assert house.verify()["differences"]
    with house.library() as library:
        counts = rebuild(library, library.settings, silent, Options())
    assert counts.embedded == 0
    assert house.verify() == before
    (house.vault / "Ideas.md").unlink()
    house.place()
    with house.library() as library:
        rebuild(library, library.settings, silent, Options())
    assert house.verify()["differences"] == []
