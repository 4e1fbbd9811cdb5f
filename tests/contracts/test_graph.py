"""What every graph does alike."""

from dataclasses import replace

import pytest

from palace.errors import StoreError
from palace.stores.ports import Edge, Graph, Neighbor
from palace.vocabulary import NoteId, RoomAddress
from tests.contracts.stores import CAT, ME, node, note_id


def edge(source: NoteId, target: NoteId | None, link: str, line: int = 1) -> Edge:
    return Edge(source, target, link, None, embed=False, line=line)


def shown(found: tuple[Neighbor, ...]) -> list[tuple[str, str, int | None]]:
    return [(n.path, n.via, n.line) for n in found]


def test_notes_and_links_come_back_whole_and_sorted(graph: Graph) -> None:
    notes = [node(p, places=("work/garden", "home/ideas"), tags=("B", "a/b")) for p in ("a.md", "b.md", "c.md")]
    edges = [
        Edge(note_id("a.md"), note_id("b.md"), "b", "Bee", embed=True, line=9),
        Edge(note_id("a.md"), None, "nobody", None, embed=False, line=2),
    ]
    graph.upsert(notes)
    graph.link({note_id("a.md"): edges})
    assert list(graph.notes()) == sorted(notes, key=lambda n: n.id)
    assert list(graph.edges()) == [edges[1], edges[0]]


def test_writing_twice_is_writing_once(graph: Graph) -> None:
    for _ in range(2):
        graph.upsert([node("a.md", tags=("x",)), node("b.md", tags=("x",))])
        graph.link({note_id("a.md"): [edge(note_id("a.md"), note_id("b.md"), "b")]})
    assert len(list(graph.notes())) == 2
    assert len(list(graph.edges())) == 1
    assert [r.notes for r in graph.rooms(ME.scope())] == [2]
    assert shown(graph.neighbors(note_id("a.md"), ME.scope()).shared_tags) == [("b.md", "x", None)]


def test_what_a_note_no_longer_has_is_gone(graph: Graph) -> None:
    graph.upsert([node("a.md", places=("work/garden",), tags=("x",)), node("b.md", tags=("x",))])
    graph.upsert([node("a.md", places=("home/ideas",), tags=("y",))])
    assert [r.address.place for r in graph.rooms(ME.scope())] == ["home/ideas", "work/garden"]
    assert graph.neighbors(note_id("b.md"), ME.scope()).shared_tags == ()


def test_links_and_backlinks_carry_words_and_lines(graph: Graph) -> None:
    graph.upsert([node("a.md"), node("b.md", places=("work/garden", "home/garden", "home/ideas")), node("c.md")])
    graph.link(
        {
            note_id("a.md"): [
                edge(note_id("a.md"), note_id("c.md"), "c#x", 7),
                edge(note_id("a.md"), note_id("b.md"), "b", 3),
            ]
        }
    )
    graph.link(
        {note_id("b.md"): [edge(note_id("b.md"), note_id("c.md"), "../c", 1), edge(note_id("b.md"), None, "ghost", 2)]}
    )
    around = graph.neighbors(note_id("a.md"), ME.scope())
    assert shown(around.links) == [("b.md", "b", 3), ("c.md", "c#x", 7)]
    assert around.links[0].rooms == ("garden", "ideas")
    assert (around.links[0].title, around.links[0].cube) == ("b", "global")
    assert shown(graph.neighbors(note_id("c.md"), ME.scope()).backlinks) == [("a.md", "c#x", 7), ("b.md", "../c", 1)]
    assert graph.neighbors(note_id("b.md"), ME.scope()).unresolved == (("ghost", 2),)


def test_a_neighbour_of_another_cube_is_not_shown_at_all(graph: Graph) -> None:
    """Neither as a link, nor as a backlink, nor under a tag, nor as an unresolved link that tells of it."""
    mine, hers = note_id("a.md"), note_id("secret.md", "dev-cat")
    graph.upsert([node("a.md", tags=("x",)), node("secret.md", "dev-cat", tags=("x",))])
    graph.link({mine: [edge(mine, hers, "secret")]})
    graph.link({hers: [edge(hers, mine, "a")]})
    around = graph.neighbors(mine, ME.scope())
    assert (around.links, around.backlinks, around.shared_tags, around.unresolved) == ((), (), (), ())
    assert graph.neighbors(hers, ME.scope()) == around
    seen = graph.neighbors(mine, CAT.scope())
    assert [len(x) for x in (seen.links, seen.backlinks, seen.shared_tags, seen.unresolved)] == [1, 1, 1, 0]


def test_a_hidden_note_is_no_neighbour_and_fills_no_room(graph: Graph) -> None:
    graph.upsert([node("a.md", tags=("x",)), node("old.md", tags=("x",), places=("home/ideas",), status="superseded")])
    graph.link({note_id("a.md"): [edge(note_id("a.md"), note_id("old.md"), "old")]})
    assert graph.neighbors(note_id("a.md"), ME.scope()).links == ()
    assert [r.address.place for r in graph.rooms(ME.scope())] == ["work/garden"]
    assert len(graph.neighbors(note_id("a.md"), ME.scope(hidden=())).links) == 1
    assert len(graph.rooms(ME.scope(hidden=()))) == 2


def test_a_narrower_scope_shows_fewer_neighbours(graph: Graph) -> None:
    graph.upsert(
        [
            node("a.md", tags=("x",)),
            node("b.md", tags=("x",)),
            node("trap.md", tags=("x",), places=("work/ideas", "home/garden")),
        ]
    )
    scope = ME.scope(places=["work/garden"])
    assert shown(graph.neighbors(note_id("a.md"), scope).shared_tags) == [("b.md", "x", None)]
    assert graph.neighbors(note_id("trap.md"), scope).shared_tags == ()
    assert [r.address.place for r in graph.rooms(scope)] == ["work/garden"]
    assert [r.address.place for r in graph.rooms(ME.scope(wings=["home"]))] == ["home/garden"]


def test_forgetting_leaves_links_to_the_note_unresolved(graph: Graph) -> None:
    graph.upsert([node("a.md"), node("b.md", tags=("x",), places=("home/ideas",)), node("c.md", tags=("x",))])
    graph.link({note_id("a.md"): [edge(note_id("a.md"), note_id("b.md"), "b", 4)]})
    graph.link({note_id("b.md"): [edge(note_id("b.md"), note_id("a.md"), "a")]})
    graph.forget([])
    graph.forget([note_id("b.md"), note_id("never.md")])
    assert graph.neighbors(note_id("a.md"), ME.scope()).unresolved == (("b", 4),)
    assert graph.neighbors(note_id("a.md"), ME.scope()).backlinks == ()
    assert graph.neighbors(note_id("c.md"), ME.scope()).shared_tags == ()
    assert [r.address.place for r in graph.rooms(ME.scope())] == ["work/garden"]
    assert [e.target for e in graph.edges()] == [None]


def test_a_link_waits_for_its_target(graph: Graph) -> None:
    graph.upsert([node("a.md")])
    graph.link({note_id("a.md"): [edge(note_id("a.md"), note_id("b.md"), "b")]})
    assert graph.neighbors(note_id("a.md"), ME.scope()).links == ()
    graph.upsert([node("b.md")])
    assert shown(graph.neighbors(note_id("a.md"), ME.scope()).links) == [("b.md", "b", 1)]


def test_a_note_is_not_its_own_neighbour(graph: Graph) -> None:
    graph.upsert([node("a.md", tags=("x", "X"))])
    graph.link({note_id("a.md"): [edge(note_id("a.md"), note_id("a.md"), "#top")]})
    around = graph.neighbors(note_id("a.md"), ME.scope())
    assert (around.links, around.backlinks, around.shared_tags) == ((), (), ())


def test_links_of_nobody_are_refused(graph: Graph) -> None:
    graph.upsert([node("a.md")])
    with pytest.raises(StoreError):
        graph.link({note_id("never.md"): []})
    with pytest.raises(StoreError):
        graph.link({note_id("a.md"): [edge(note_id("b.md"), None, "x")]})


def test_tags_are_one_whatever_their_case_and_the_rarest_comes_first(graph: Graph) -> None:
    common = [node(f"{n}.md", tags=("Diary",)) for n in range(5)]
    graph.upsert([*common, node("a.md", tags=("diary", "PS5")), node("rare.md", tags=("ps5",))])
    around = graph.neighbors(note_id("a.md"), ME.scope(), limit=3)
    assert shown(around.shared_tags) == [("rare.md", "PS5", None), ("0.md", "diary", None), ("1.md", "diary", None)]


def test_rooms_are_counted_exactly_and_labelled_by_the_majority(graph: Graph) -> None:
    old = replace(node("a.md"), rooms=(("work", "ps5", "Work", "ps5"),), changed="2026-01-01T00:00:00Z")
    new = replace(
        node("b.md"),
        rooms=(("work", "ps5", "Work", "PS5"), ("work", "ps5", "work", "Ps5")),
        changed="2026-03-01T00:00:00Z",
    )
    other = replace(node("c.md"), rooms=(("work", "ps5", "work", "PS5"), ("work", "tea", "work", "Tea")), changed="")
    graph.upsert([old, new, other])
    graph.upsert([node("d.md", "dev-cat")])
    [ps5, tea] = graph.rooms(ME.scope())
    assert (ps5.address, ps5.label, ps5.wing_label) == (RoomAddress("global", "work", "ps5"), "PS5", "Work")
    assert (ps5.notes, ps5.changed) == (3, "2026-03-01T00:00:00Z")
    assert (tea.label, tea.notes, tea.changed) == ("Tea", 1, None)
    assert [r.address.cube for r in graph.rooms(CAT.scope())] == ["dev-cat", "global", "global"]


def test_set_rooms_changes_rooms_alone(graph: Graph) -> None:
    graph.upsert([node("a.md", tags=("x",)), node("b.md")])
    graph.link({note_id("a.md"): [edge(note_id("a.md"), note_id("b.md"), "b")]})
    graph.set_rooms(note_id("a.md"), [("home", "tea", "Home", "Tea")])
    graph.set_rooms(note_id("never.md"), [("home", "tea", "Home", "Tea")])
    assert [(r.address.place, r.label, r.notes) for r in graph.rooms(ME.scope())] == [
        ("home/tea", "Tea", 1),
        ("work/garden", "GARDEN", 1),
    ]
    assert [n.rooms for n in graph.notes() if n.path == "a.md"] == [(("home", "tea", "Home", "Tea"),)]
    assert len(list(graph.edges())) == 1


def test_a_transaction_that_fails_leaves_nothing(graph: Graph) -> None:
    graph.upsert([node("a.md")])

    def fail() -> None:
        with graph.transaction():
            graph.upsert([node("b.md")])
            graph.link({note_id("a.md"): [edge(note_id("a.md"), note_id("b.md"), "b")]})
            graph.forget([note_id("a.md")])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert [n.path for n in graph.notes()] == ["a.md"]
    assert list(graph.edges()) == []


def test_more_notes_than_a_page(graph: Graph) -> None:
    notes = [node(f"{n}.md", tags=("t",)) for n in range(1300)]
    with graph.transaction():
        graph.upsert(notes)
        for n in notes:
            graph.link({n.id: [edge(n.id, note_id("0.md"), "0")]})
    assert len(list(graph.notes())) == len(list(graph.edges())) == 1300
    assert len(graph.neighbors(note_id("0.md"), ME.scope()).backlinks) == 1299
    graph.forget([n.id for n in notes])
    assert list(graph.edges()) == []
