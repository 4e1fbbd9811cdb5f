"""A Neo4j server that goes away, or fails by itself, while it is used."""

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import pytest

from palace.errors import UnreachableError
from palace.stores.neo4j import Neo4jGraph
from palace.stores.ports import NoteNode
from tests.contracts.stores import ME, node, note_id
from tests.servers.neo4j_server import Neo4jServer


@pytest.mark.slow
def test_a_server_killed_in_the_middle_loses_no_answered_write(frail: Neo4jServer) -> None:
    with closing(Neo4jGraph(frail.settings, patience=0.5)) as impatient:
        impatient.upsert([node(f"{n}.md") for n in range(100)])
        frail.kill()
        with pytest.raises(UnreachableError):
            impatient.upsert([node("late.md")])
        with pytest.raises(UnreachableError):
            impatient.neighbors(note_id("0.md"), ME.scope())
        frail.start()
        assert len(list(impatient.notes())) == 100
        impatient.upsert([node("late.md")])
        assert len(list(impatient.notes())) == 101


@pytest.mark.slow
def test_a_write_outlasts_a_restart(frail: Neo4jServer) -> None:
    frail.wipe()
    with closing(Neo4jGraph(frail.settings, patience=90)) as patient:
        patient.upsert([node("before.md")])
        frail.kill()
        with ThreadPoolExecutor(1) as pool:
            writing = pool.submit(patient.upsert, [node("meanwhile.md")])
            frail.start()
            writing.result()
        assert sorted(n.path for n in patient.notes()) == ["before.md", "meanwhile.md"]


def _fill(graph: Neo4jGraph, notes: list[NoteNode]) -> None:
    for n in range(100):
        graph.upsert([replace(note, title=f"{n} {'x' * 10_000}") for note in notes])


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits another process's files, which Linux alone can")
def test_a_server_whose_disk_takes_no_more_is_told_as_such(frail: Neo4jServer) -> None:
    """A limit on its files stands in for a full disk; with room again it has what it had, and goes on."""
    frail.wipe()
    notes = [node(f"{n}.md") for n in range(200)]
    with closing(Neo4jGraph(frail.settings, patience=0.5)) as graph:
        graph.upsert(notes[:1])
        frail.limit_files(100_000)
        with pytest.raises(UnreachableError) as error:
            _fill(graph, notes[1:])
        frail.kill()
        frail.start()
        graph.upsert(notes)
        assert list(graph.notes()) == sorted(notes, key=lambda n: n.id)
    assert "disk" in error.value.hint
