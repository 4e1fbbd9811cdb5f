"""For any writes and any reader: a graph answers as the memory graph does, and nothing from outside the reader's cubes."""

from collections.abc import Callable, Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palace.stores.memory import MemoryGraph
from palace.stores.ports import Edge, Graph, Neighborhood
from palace.vocabulary import NoteId, Status
from palace.walls import Scope
from tests.contracts.stores import CUBES, PLACES, emptied_graph, node, note_id
from tests.contracts.test_vectors_walls import Narrowing, narrowings

PATHS = ("a.md", "b.md", "sub/c.md", "笔记.md")
names = st.tuples(st.sampled_from(PATHS), st.sampled_from(CUBES))
ids = names.map(lambda n: note_id(*n))
places = st.lists(st.sampled_from(PLACES), unique=True, max_size=3)
tags = st.lists(st.sampled_from(["x", "X", "y/z", "标签"]), unique=True, max_size=3)
nodes = st.builds(
    lambda name, *rest: node(*name, *rest), names, places, tags, st.sampled_from([str(s) for s in Status])
)
Operation = Callable[[Graph], object]


def _link(source: NoteId, targets: Sequence[tuple[NoteId | None, str, int]]) -> Operation:
    edges = [Edge(source, target, link, None, embed=False, line=line) for target, link, line in targets]

    def write(graph: Graph) -> None:
        if any(n.id == source for n in graph.notes()):
            graph.link({source: edges})

    return write


def _rooms(note: NoteId, new: Sequence[str]) -> Operation:
    rooms = [(*p.split("/"), *p.title().split("/")) for p in new]
    return lambda graph: graph.set_rooms(note, [(w, r, wl, rl) for w, r, wl, rl in rooms])


operations: st.SearchStrategy[Operation] = st.one_of(
    st.lists(nodes, max_size=6).map(lambda ns: lambda graph: graph.upsert(ns)),
    st.builds(
        _link, ids, st.lists(st.tuples(st.none() | ids, st.sampled_from(["p", "q#r"]), st.integers(1, 3)), max_size=4)
    ),
    st.builds(_rooms, ids, places),
    st.lists(ids, max_size=2).map(lambda gone: lambda graph: graph.forget(gone)),
)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(operations, max_size=14), narrowings, st.integers(0, 5))
def test_after_any_writes_a_graph_equals_the_memory_graph(
    opened_graph: Graph, writes: list[Operation], narrowing: Narrowing, limit: int
) -> None:
    graph, yardstick = opened_graph, MemoryGraph()
    with graph.transaction():
        emptied_graph(graph)
        for write in writes:
            write(graph)
            write(yardstick)
    assert list(graph.notes()) == list(yardstick.notes())
    assert list(graph.edges()) == list(yardstick.edges())
    scope = narrowing.scope()
    assert graph.rooms(scope) == yardstick.rooms(scope)
    for path in PATHS:
        for cube in CUBES:
            around = graph.neighbors(note_id(path, cube), scope, limit)
            assert around == yardstick.neighbors(note_id(path, cube), scope, limit)
            inside_the_walls(graph, around, scope)


def inside_the_walls(graph: Graph, around: Neighborhood, scope: Scope) -> None:
    seen = (*around.links, *around.backlinks, *around.shared_tags)
    assert {n.cube for n in seen} <= scope.cubes
    assert {n.id for n in seen} <= {
        n.id for n in graph.notes() if n.cube in scope.cubes and n.status not in scope.hidden
    }
    assert {r.address.cube for r in graph.rooms(scope)} <= scope.cubes
