"""What is a Neo4j server's own: passwords, foreign and old databases, hostile text, many workers."""

import random
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import ValidationError

from dualwall.doctor import Check, examine
from palace.errors import Exit, SettingsError, StoreError, UnreachableError
from palace.settings import Neo4j, Settings, Stores
from palace.stores.memory import MemoryGraph
from palace.stores.neo4j import Neo4jGraph
from palace.stores.ports import Edge, Graph
from tests.contracts.stores import ALL, CAT, ME, PLACES, node, note_id
from tests.servers.neo4j_server import PASSWORD, Neo4jServer

MEGABYTE = 1_000_000


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def link(source: str, target: str | None, text: str = "x", line: int = 1) -> Edge:
    return Edge(note_id(source), note_id(target) if target else None, text, None, embed=False, line=line)


def counted(server: Neo4jServer) -> dict[str, int]:
    """How many nodes there are of each label."""
    with server.session() as session:
        rows = session.run("MATCH (n) RETURN labels(n)[0] AS label, count(*) AS n")
        return {row["label"]: row["n"] for row in rows}


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def doctor(tmp_path: Path, settings: Neo4j) -> Check:
    whole = Settings(data=tmp_path / "data", stores=Stores(graph="neo4j", neo4j=settings))
    [check] = [c for c in examine(whole) if c.name == "neo4j"]
    return check


# -- without a server ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:7474", "bolt://", "bolt://me:secret@127.0.0.1", "bolt://127.0.0.1/neo4j", "neo4j+x://a", "a"],
)
def test_what_is_no_address_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ValidationError) as error:
        Neo4j(url=url)
    assert all("secret" not in fault["msg"] for fault in error.value.errors())


def test_a_server_that_is_down_at_the_start_is_named_with_what_to_do() -> None:
    settings = Neo4j(url=f"bolt://127.0.0.1:{closed_port()}")
    with closing(Neo4jGraph(settings, patience=0.2)) as graph:
        with pytest.raises(UnreachableError, match=settings.url) as error:
            graph.upsert([node("a.md")])
        with pytest.raises(UnreachableError):
            graph.rooms(ME.scope())
    assert error.value.exit_code is Exit.UNREACHABLE
    assert "dualwall doctor" in error.value.hint


def test_the_doctor_says_that_a_server_is_down(tmp_path: Path) -> None:
    check = doctor(tmp_path, Neo4j(url=f"bolt://127.0.0.1:{closed_port()}"))
    assert (check.state, check.exit) == ("fail", Exit.UNREACHABLE)
    assert "Start it" in check.mend


def test_a_password_file_that_is_not_there_is_a_fault_of_the_settings(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="password_file"):
        Neo4jGraph(Neo4j(password_file=tmp_path / "none"))


# -- passwords and databases ---------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_wrong_password_is_told_without_the_password(server: Neo4jServer, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("not-the-password")
    for settings in (
        server.settings.model_copy(update={"password_file": wrong}),
        server.settings.model_copy(update={"password_file": None}),
    ):
        with (
            closing(Neo4jGraph(settings)) as graph,
            pytest.raises(UnreachableError, match="refused") as error,
        ):
            graph.upsert([node("a.md")])
        assert "password_file" in error.value.hint
        assert "not-the-password" not in str(error.value)
        assert PASSWORD not in str(error.value)
        assert doctor(tmp_path, settings).state == "fail"


@pytest.mark.slow
def test_the_doctor_names_the_server(server: Neo4jServer, tmp_path: Path) -> None:
    check = doctor(tmp_path, server.settings)
    assert (check.state, check.message.split(",")[1]) == ("ok", " version 5.26.30")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("planted", "said"),
    [
        ("CREATE (:Dualwall {version: 0})", "older Dualwall"),
        ("CREATE (:Dualwall {version: 99})", "newer Dualwall"),
        ("CREATE (:Person {name: 'Ada'})", "something else"),
    ],
)
def test_a_database_of_another_kind_is_neither_read_nor_written(server: Neo4jServer, planted: str, said: str) -> None:
    with server.session() as session:
        session.run(planted).consume()
    with closing(Neo4jGraph(server.settings)) as graph:
        with pytest.raises(StoreError, match=said):
            graph.upsert([node("a.md")])
        with pytest.raises(StoreError, match=said):
            graph.rooms(ME.scope())
    assert sum(counted(server).values()) == 1


@pytest.mark.slow
def test_a_database_that_is_not_there_is_told(server: Neo4jServer) -> None:
    settings = server.settings.model_copy(update={"database": "elsewhere"})
    with closing(Neo4jGraph(settings)) as graph, pytest.raises(UnreachableError, match="elsewhere"):
        graph.rooms(ME.scope())


@pytest.mark.slow
def test_reading_an_empty_database_writes_nothing(server: Neo4jServer, graph: Graph) -> None:
    assert graph.rooms(ME.scope()) == []
    assert list(graph.notes()) == []
    assert list(graph.edges()) == []
    assert counted(server) == {}


# -- hostile text --------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_text_of_any_size_and_kind_comes_back_as_it_was(graph: Graph) -> None:
    odd = "\x00'\"`$\\{}\u2028\ud7ff\U0001f600"
    long = "长" * MEGABYTE
    hostile = replace(
        node(f"{odd}.md", tags=(odd, long)),
        title=long,
        aliases=(odd, long),
        rooms=((f"w{odd}", long, odd, long), ("w", odd, "W", odd)),
    )
    plain = node("plain.md", tags=(odd, long))
    edges = [
        Edge(hostile.id, plain.id, long, odd, embed=False, line=1),
        Edge(hostile.id, None, long, long, embed=True, line=2),
        Edge(hostile.id, None, odd, None, embed=False, line=3),
    ]
    yardstick = MemoryGraph()
    for one in (graph, yardstick):
        one.upsert([hostile, plain])
        one.link({hostile.id: edges})
    assert list(graph.notes()) == list(yardstick.notes())
    assert list(graph.edges()) == list(yardstick.edges())
    assert graph.rooms(ME.scope()) == yardstick.rooms(ME.scope())
    for scope in (ME.scope(), ME.scope(places=[f"w/{odd}"]), ME.scope(wings=[f"w{odd}"])):
        assert graph.neighbors(hostile.id, scope) == yardstick.neighbors(hostile.id, scope)
    graph.forget([hostile.id, plain.id])
    assert list(graph.notes()) == []


@pytest.mark.slow
def test_ten_thousand_tags_on_a_note(server: Neo4jServer, graph: Graph) -> None:
    tags = [f"tag/{n}" for n in range(10_000)]
    yardstick = MemoryGraph()
    for one in (graph, yardstick):
        one.upsert([node("a.md", tags=tags), node("b.md", tags=tags[::2]), node("c.md", tags=tags[:2])])
    found = graph.neighbors(note_id("a.md"), ME.scope(), limit=7_000)
    assert len(found.shared_tags) == 5_002
    assert found == yardstick.neighbors(note_id("a.md"), ME.scope(), limit=7_000)
    graph.upsert([node("a.md"), node("b.md")])
    assert counted(server)["Tag"] == 2


@pytest.mark.slow
def test_nothing_is_left_without_its_note(server: Neo4jServer, graph: Graph) -> None:
    graph.upsert([node("a.md", places=PLACES, tags=("x", "y")), node("b.md", "dev-cat", tags=("x",))])
    graph.link({note_id("a.md"): [link("a.md", "never.md"), link("a.md", None, "ghost")]})
    assert counted(server) == {
        "Dualwall": 1, "Note": 3, "Chunk": 2, "Cube": 2, "Wing": 3, "Room": 5, "Tally": 5, "Tag": 3, "Unresolved": 1,
    }  # fmt: skip
    graph.set_rooms(note_id("a.md"), [("home", "tea", "Home", "Tea")])
    graph.link({note_id("a.md"): []})
    assert {k: n for k, n in counted(server).items() if k in {"Note", "Room", "Wing", "Unresolved"}} == {
        "Note": 2,
        "Room": 2,
        "Wing": 2,
    }
    graph.forget([note_id("a.md"), note_id("b.md", "dev-cat")])
    assert counted(server) == {"Dualwall": 1}


# -- many at once --------------------------------------------------------------------------------------------------------
@pytest.mark.slow
def test_a_cube_forgotten_while_others_read_is_seen_whole_or_not_at_all(graph: Graph) -> None:
    """The reader of another cube never sees a note of it; its own reader sees its notes vanish, and no fault."""
    hers = [node(f"{n}.md", "dev-cat", tags=("x",)) for n in range(60)]
    mine = [node(f"{n}.md", tags=("x",)) for n in range(5)]
    graph.upsert([*hers, *mine])
    graph.link({n.id: [Edge(n.id, mine[0].id, "0", None, embed=False, line=1)] for n in hers})
    done = threading.Event()

    def read() -> set[int]:
        sizes = set()
        while not done.is_set():
            around = graph.neighbors(mine[0].id, ME.scope())
            assert {n.cube for n in (*around.backlinks, *around.shared_tags)} == {"global"}
            sizes.add(sum(r.notes for r in graph.rooms(CAT.scope()) if r.address.cube == "dev-cat"))
            assert len(graph.neighbors(mine[0].id, CAT.scope()).backlinks) <= len(hers)
        return sizes

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        graph.forget([n.id for n in hers])
        done.set()
        assert set().union(*(r.result() for r in readers)) <= {0, 60}
    assert [r.address.cube for r in graph.rooms(CAT.scope())] == ["global"]


@pytest.mark.slow
def test_workers_that_share_rooms_tags_and_targets_end_in_the_state_of_one(
    server: Neo4jServer, graph: Graph, stack: ExitStack
) -> None:
    """Each has notes of its own; rooms and tags come and go under all of them."""
    graphs = [stack.enter_context(closing(Neo4jGraph(server.settings, patience=120))) for _ in range(4)]
    names = [[f"{worker}-{n}.md" for n in range(12)] for worker in range(4)]
    everyone = [name for own in names for name in own]

    def work(worker: int) -> None:
        rng = random.Random(worker)
        own = names[worker]
        for _ in range(25):
            some = rng.sample(own, 4)
            with graphs[worker].transaction():
                graphs[worker].upsert(
                    [node(n, places=rng.sample(PLACES, rng.randrange(3)), tags=rng.sample("xyz", 2)) for n in some]
                )
                graphs[worker].link({note_id(n): [link(n, rng.choice(everyone)), link(n, None, "ghost")] for n in some})
            graphs[worker].forget([note_id(n) for n in rng.sample(own, 3)])
        graphs[worker].upsert([node(n, places=PLACES[:2], tags=("x",)) for n in own])
        graphs[worker].link({note_id(n): [link(n, own[0])] for n in own})

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, worker) for worker in range(4)]:
            done.result()
    calm = MemoryGraph()
    calm.upsert([node(n, places=PLACES[:2], tags=("x",)) for n in everyone])
    calm.link({note_id(n): [link(n, own[0])] for own in names for n in own})
    assert list(graph.notes()) == list(calm.notes())
    assert list(graph.edges()) == list(calm.edges())
    assert graph.rooms(ALL.scope()) == calm.rooms(ALL.scope())
    for name in everyone:
        assert graph.neighbors(note_id(name), ME.scope()) == calm.neighbors(note_id(name), ME.scope())
    assert counted(server) == {
        "Dualwall": 1, "Note": 48, "Chunk": 48, "Cube": 1, "Wing": 1, "Room": 2, "Tally": 2, "Tag": 1,
    }  # fmt: skip
