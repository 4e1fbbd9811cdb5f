"""A palace moved to other stores is the same palace; a move that ends early is gone on with."""

import json
import os
import random
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from dualwall import cli
from palace.errors import Exit, StoreError, UsageError
from palace.library import Library
from palace.migrate import Pair, Side, move, wanted
from palace.settings import Stores
from palace.stores.memory import MemoryGraph, MemoryVectors
from palace.stores.ports import VectorStore
from palace.verify import verify
from palace.vocabulary import NoteId
from tests.contracts.stores import qdrant_settings
from tests.crash.test_kill9 import mutate
from tests.embeddings import DIMENSIONS
from tests.house import House
from tests.moves import elsewhere, moved_to
from tests.servers.neo4j_server import Neo4jServer


@pytest.fixture
def house(tmp_path: Path, embeddings_url: str) -> House:
    """A small palace with public and private notes, links that lead somewhere and links that do not."""
    house = House(tmp_path, embeddings_url)
    house.furnish(
        {
            "work/bread/Oven.md": "# Oven\nHot stones. [[Salt]] [[Nowhere]] #idea\n\n## Fire\nWood and air.\n",
            "work/bread/Salt.md": "---\naliases: [Sea]\n---\nFrom the sea. ![[Oven#Fire]] [[Oven|hot]] #idea #work/oven\n",
            "home/Lamp.md": "A lamp. #idea\n",
            "Agents/scout/SOUL.md": "I am Scout. [[SOUL]]\n",
            "Agents/scout/memory/day.md": "Met a robot. [[SOUL]]\n",
        }
    )
    house.night()
    return house


@pytest.fixture
def library(house: House) -> Iterator[Library]:
    with house.library() as opened:
        yield opened


def fingerprint(library: Library, stores: Pair) -> str:
    found = verify(library.settings, library.catalogue, stores.vectors, stores.graph)
    assert found.differences == []
    return found.fingerprint


def vectors_of(store: VectorStore) -> list[tuple[Any, ...]]:
    found = (
        (
            p.id,
            sorted(zip(p.sparse.indices, p.sparse.values, strict=True)),
            None if p.dense is None else p.dense.tobytes(),
        )
        for p in store.points()
    )
    return sorted(found)


def test_the_copy_is_the_palace_bit_for_bit(house: House, library: Library) -> None:
    with elsewhere(library, house.folder / "copy") as target:
        moved = moved_to(library, target)
        assert (moved.held.notes, moved.held.pending, moved.forgotten) == (5, 0, 0)
        assert (moved.points, moved.notes) == (moved.held.chunks, 5)
        assert fingerprint(library, target) == moved.held.fingerprint == library.verify()["fingerprint"]
        assert vectors_of(target.vectors) == vectors_of(library.vectors)
        assert list(target.graph.edges()) == list(library.graph.edges())
        again = moved_to(library, target)
        assert (again.points, again.notes, again.links, again.forgotten) == (0, 0, 0, 0)


def test_to_memory_and_back_into_an_empty_store(house: House, library: Library) -> None:
    memory = Pair(MemoryVectors(), MemoryGraph())
    moved_to(library, memory)
    with elsewhere(library, house.folder / "copy") as target:
        moved = move(library.settings, library.catalogue, memory, target)
        assert moved.held.fingerprint == library.verify()["fingerprint"]
        assert vectors_of(target.vectors) == vectors_of(library.vectors)


def test_points_that_wait_for_their_vector_go_on_waiting(house: House, library: Library) -> None:
    """As after `ingest --lexical-only`."""
    chunk_id = next(iter(library.catalogue.chunks()))
    [point] = [p for p in library.vectors.points() if p.id == chunk_id]
    library.vectors.upsert([type(point)(point.id, point.payload, point.sparse)])
    with library.database.transaction() as cx:
        cx.execute("UPDATE chunk SET dense = 0 WHERE id = ?", (chunk_id,))
    with elsewhere(library, house.folder / "copy") as target:
        assert moved_to(library, target).held.pending == 1
        assert target.vectors.waiting() == 1


def test_a_second_move_brings_what_changed_and_forgets_what_went(house: House) -> None:
    rng = random.Random(3)
    for turn in range(4):
        with house.library() as library, elsewhere(library, house.folder / "copy") as target:
            moved = moved_to(library, target)
            assert moved.held.fingerprint == library.verify()["fingerprint"], turn
            assert vectors_of(target.vectors) == vectors_of(library.vectors)
        for _ in range(5):
            mutate(house.vault, rng)
        house.night()


def test_what_a_stranger_left_in_the_target_is_forgotten(house: House, library: Library) -> None:
    with elsewhere(library, house.folder / "copy") as target:
        moved_to(library, target)
        point = next(target.vectors.points())
        other = type(point)
        payload = type(point.payload).from_dict(point.payload.as_dict() | {"note_id": NoteId("stranger")})
        target.vectors.upsert([other(point.id, payload, point.sparse)])
        target.graph.forget([point.payload.note_id])
        moved = moved_to(library, target)
        assert moved.held.fingerprint == library.verify()["fingerprint"]
        assert moved.points == 1


def test_a_palace_that_does_not_fit_its_ledger_is_not_moved(house: House, library: Library) -> None:
    library.vectors.forget([next(library.graph.notes()).id])
    with elsewhere(library, house.folder / "copy") as target:
        with pytest.raises(StoreError, match="do not fit the ledger") as error:
            moved_to(library, target)
        assert "verify --repair" in error.value.hint
        assert target.vectors.count() == 0


def test_a_target_that_is_not_the_same_at_the_end_is_told(library: Library) -> None:
    class Forgetful(MemoryVectors):
        """Loses a point at the end, as a server with a bad disk might."""

        def flush(self) -> None:
            super().flush()
            self.forget_chunks([next(self.points()).id])

    before = library.catalogue.get("ingested")
    with pytest.raises(StoreError, match="do not hold what the old ones hold"):
        moved_to(library, Pair(Forgetful(), MemoryGraph()))
    assert library.catalogue.get("ingested") == before


# -- what is wanted --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("side", "vectors", "graph", "there"),
    [
        ("servers", True, True, ("qdrant", "neo4j")),
        ("servers", True, False, ("qdrant", "sqlite")),
        ("servers", False, True, ("edge", "neo4j")),
    ],
)
def test_both_are_moved_or_one(side: Side, *, vectors: bool, graph: bool, there: tuple[str, str]) -> None:
    found = wanted(Stores(), side, vectors=vectors, graph=graph)
    assert (found.vectors, found.graph) == there
    back = wanted(found, "embedded")
    assert (back.vectors, back.graph) == ("edge", "sqlite")


def test_nothing_to_move_is_wrong_usage() -> None:
    for stores in (Stores(), Stores(vectors="memory"), Stores(graph="memory")):
        with pytest.raises(UsageError):
            wanted(stores, "embedded")


# -- the command -----------------------------------------------------------------------------------------------------------
def test_a_server_that_is_down_stops_it_before_anything_is_copied(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    house.settings_file.write_text(house.settings_file.read_text() + '[stores.neo4j]\nurl = "bolt://127.0.0.1:9"\n')
    before = house.verify()
    assert cli.run(["migrate", "--to", "servers", "--graph", "--config", str(house.settings_file)]) == Exit.UNREACHABLE
    assert "127.0.0.1:9" in capsys.readouterr().err
    assert house.verify() == before


def test_the_settings_stores_are_no_target(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["migrate", "--to", "embedded", "--config", str(house.settings_file)]) == Exit.USAGE
    assert "already" in capsys.readouterr().err


def there_and_back(house: House, settings: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Move by the command, go on with `settings`, change notes there, move back: each time a night finds nothing to do."""
    config = str(house.settings_file)
    home = house.settings_file.read_text()

    def migrate(*arguments: str) -> dict[str, Any]:
        capsys.readouterr()
        assert cli.run(["migrate", *arguments, "--json", "--config", config]) == Exit.DONE
        told: dict[str, Any] = json.loads(capsys.readouterr().out)
        return told

    def same(told: dict[str, Any]) -> None:
        with house.library() as library:
            assert (library.catalogue.get("ingested") or "").startswith(f"{library.state_key}:")
        assert not any(asdict(house.ingest()).values())
        found = house.verify()
        assert found["differences"] == []
        assert found["fingerprint"] == told["fingerprint"]
        assert found["edges"] == told["edges"] > 0
        assert house.search("hot stones")["hits"][0]["title"]

    before = house.verify()
    side = [word for word, key in (("--vectors", "[stores.qdrant]"), ("--graph", "[stores.neo4j]")) if key in settings]
    house.settings_file.write_text(home + settings)
    told = migrate("--to", "servers", *side)
    assert told["fingerprint"] == before["fingerprint"]
    engines = told["settings"].removeprefix("[stores]\n")
    house.settings_file.write_text(home.replace('[stores]\nvectors = "edge"\n', told["settings"]) + settings)
    assert 'vectors = "qdrant"' in engines or 'graph = "neo4j"' in engines
    same(told)
    (house.vault / "work/bread/Oven.md").unlink()
    (house.vault / "work/bread/Stone.md").write_text("# Stone\nHot stones again. [[Salt]]\n")
    house.night()
    back = migrate("--to", "embedded")
    assert back["fingerprint"] != told["fingerprint"]
    assert back["fingerprint"] == house.verify()["fingerprint"]
    house.settings_file.write_text(home + settings)
    same(back)


@pytest.mark.slow
def test_the_graph_to_neo4j_and_back(
    house: House, neo4j_server: Neo4jServer, capsys: pytest.CaptureFixture[str]
) -> None:
    neo4j_server.wipe()
    asked = neo4j_server.settings
    there_and_back(house, f'[stores.neo4j]\nurl = "{asked.url}"\npassword_file = "{asked.password_file}"\n', capsys)


@pytest.mark.slow
def test_vectors_to_qdrant_and_back(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    url = os.environ.get("DUALWALL_TEST_QDRANT_URL")
    if not url:
        pytest.skip("DUALWALL_TEST_QDRANT_URL names no Qdrant server")
    from palace.stores.qdrant_collection import Collections  # noqa: PLC0415 - as late as the program has it
    from palace.stores.qdrant_server import Server  # noqa: PLC0415

    asked = qdrant_settings(url)
    key = f'api_key_file = "{asked.api_key_file}"\n' if asked.api_key_file else ""
    try:
        there_and_back(
            house,
            f'[stores.qdrant]\nurl = "{url}"\ngrpc_port = {asked.grpc_port}\ncollection = "{asked.collection}"\n{key}',
            capsys,
        )
    finally:
        with closing(Server(asked)) as server:
            Collections(server, asked, DIMENSIONS, "").delete()
