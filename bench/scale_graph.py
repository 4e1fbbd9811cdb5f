"""The graph on a Neo4j server: how fast a palace of some ten thousand notes is written and asked."""

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import neo4j

from palace.settings import Neo4j
from palace.stores.neo4j import Neo4jGraph
from palace.stores.ports import Edge, NoteNode
from palace.vocabulary import GLOBAL, NoteId, NoteRef
from palace.walls import Reader
from tests.servers.neo4j_server import PASSWORD, Neo4jServer, lacking

CHUNKS_A_NOTE = 5
NOTES_AT_ONCE, SOURCES_AT_ONCE = 256, 500  # as ingest writes them
ROOMS = 400
_BACKLINKS = """
MATCH (:Note {id: $id})<-[l:LINKS_TO]-(o:Note) WHERE o.cube IN $cubes RETURN o.id, o.title, o.path, l.link, l.line"""
_TWO_HOPS = """
MATCH (n:Note {id: $id})-[:LINKS_TO]-(m:Note)-[:LINKS_TO]-(o:Note)
WHERE m.cube IN $cubes AND o.cube IN $cubes AND o <> n RETURN DISTINCT o.id, o.title, o.path"""


@dataclass(frozen=True)
class Made:
    """Notes in the order of their folders, and links: many to a few notes, one in ten to none."""

    notes: Sequence[NoteNode]
    links: Mapping[NoteId, Sequence[Edge]]


def make(chunks: int, links: int) -> Made:
    """A palace of so many chunks and links; always the same."""
    rng = random.Random(5)
    notes = [_note(rng, at, chunks // CHUNKS_A_NOTE) for at in range(chunks // CHUNKS_A_NOTE)]
    edges: dict[NoteId, list[Edge]] = {note.id: [] for note in notes}
    for at in range(links):
        source = rng.choice(notes).id
        target = None if at % 10 == 0 else notes[int(len(notes) * rng.random() ** 3)].id
        edges[source].append(Edge(source, target, f"link {at}", None, embed=False, line=at))
    return Made(notes, edges)


def measure(made: Made, settings: Neo4j | None) -> None:
    """Load it into an empty database, ask, and print."""
    with _server(settings) as (asked, auth), closing(Neo4jGraph(asked)) as graph:
        for turn in ("a server just started", "the same again"):
            seconds = _load(graph, made)
            links = sum(map(len, made.links.values()))
            chunks = sum(len(n.chunk_ids) for n in made.notes)
            print(f"{turn}: {chunks} chunks and {links} links of {len(made.notes)} notes in {seconds:.1f} s: "
                  f"{(chunks + links) / seconds:.0f} rows/s")  # fmt: skip
        _ask(graph, made, asked, auth)
        started = time.perf_counter()
        graph.forget([n.id for n in made.notes[: len(made.notes) // 10]])
        print(f"a tenth of the notes forgotten in {time.perf_counter() - started:.1f} s")


def _load(graph: Neo4jGraph, made: Made) -> float:
    """Seconds that writing takes; what an earlier turn wrote is forgotten before."""
    old = [n.id for n in graph.notes()]
    for at in range(0, len(old), NOTES_AT_ONCE):
        graph.forget(old[at : at + NOTES_AT_ONCE])
    started = time.perf_counter()
    for at in range(0, len(made.notes), NOTES_AT_ONCE):
        graph.upsert(made.notes[at : at + NOTES_AT_ONCE])
    sources = list(made.links)
    for at in range(0, len(sources), SOURCES_AT_ONCE):
        graph.link({source: made.links[source] for source in sources[at : at + SOURCES_AT_ONCE]})
    return time.perf_counter() - started


def _ask(graph: Neo4jGraph, made: Made, settings: Neo4j, auth: neo4j.Auth | tuple[str, str] | None) -> None:
    rng = random.Random(6)
    scope = Reader("me", frozenset({GLOBAL})).scope()
    with neo4j.GraphDatabase.driver(settings.url, auth=auth) as driver, driver.session(
        database=settings.database, notifications_min_severity="OFF"
    ) as session:  # fmt: skip

        def cypher(statement: str) -> Callable[[], object]:
            return lambda: session.run(statement, id=rng.choice(made.notes).id, cubes=[GLOBAL]).data()

        for name, aim, ask in (
            ("backlinks of a note", 5, cypher(_BACKLINKS)),
            ("two hops around a note", 30, cypher(_TWO_HOPS)),
            ("all rooms with counts", 20, lambda: graph.rooms(scope)),
            (
                "neighbors: links, backlinks, shared tags",
                None,
                lambda: graph.neighbors(rng.choice(made.notes).id, scope),
            ),
        ):
            found = sorted(_times(ask))
            limit = f" (aim: under {aim} ms)" if aim else ""
            print(f"{name}: p50 {statistics.median(found):.1f} ms, p95 {found[int(len(found) * 0.95)]:.1f} ms{limit}")


def _times(ask: Callable[[], object], warm: int = 100, measured: int = 300) -> list[float]:
    """Milliseconds of each call."""
    for _ in range(warm):
        ask()
    out = []
    for _ in range(measured):
        started = time.perf_counter()
        ask()
        out.append((time.perf_counter() - started) * 1000)
    return out


def _note(rng: random.Random, at: int, of: int) -> NoteNode:
    room = at * ROOMS // of
    wing = room // 20
    path = f"wing {wing}/room {room}/note {at}.md"
    ref = NoteRef(GLOBAL, "main", path)
    rooms = [(f"wing {wing}", f"room {room}", f"Wing {wing}", f"Room {room}")]
    if rng.random() < 0.3:
        rooms.append(("topics", f"topic {rng.randrange(60)}", "Topics", "Topic"))
    return NoteNode(
        id=ref.id,
        cube=GLOBAL,
        vault="main",
        path=path,
        title=f"Note {at}",
        aliases=(),
        tags=tuple(f"tag {rng.randrange(500)}" for _ in range(rng.randrange(4))),
        rooms=tuple(rooms),
        changed=f"2026-{1 + at % 12:02d}-01T00:00:00Z",
        chunk_ids=tuple(ref.chunk_id((), n) for n in range(CHUNKS_A_NOTE)),
        status="active",
    )


@contextmanager
def _server(settings: Neo4j | None) -> Iterator[tuple[Neo4j, tuple[str, str] | None]]:
    """The server that is named, or one of our own with an empty database."""
    if settings is not None:
        file = settings.password_file
        yield settings, (settings.user, file.read_text(encoding="utf-8").strip()) if file else None
        return
    if reason := lacking():
        raise SystemExit(reason)
    with tempfile.TemporaryDirectory() as home:
        own = Neo4jServer(Path(home), heap="1g")
        own.start()
        try:
            yield own.settings, ("neo4j", PASSWORD)
        finally:
            own.kill()
