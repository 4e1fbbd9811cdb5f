"""Links as written to edges between notes, by Obsidian's rules and inside the walls."""

from collections.abc import Sequence

from palace.obsidian.links import resolve
from palace.progress import Report
from palace.stores.catalogue import Catalogue, LinkRow
from palace.stores.ports import Edge, Graph
from palace.vocabulary import GLOBAL, NoteId, NoteRef

_NOTES_AT_ONCE = 500


def resolve_links(catalogue: Catalogue, graph: Graph, report: Report) -> int:
    """Point every link anew that a note which came or went may have changed. Returns how many edges were written."""
    sources = catalogue.unresolved_sources()
    written = 0
    for at in range(0, len(sources), _NOTES_AT_ONCE):
        part = sources[at : at + _NOTES_AT_ONCE]
        rows = catalogue.rows(part)
        with catalogue.database.transaction(), graph.transaction():
            written += _relink(catalogue, graph, [rows[i].ref for i in part])
        report("links", at + len(part), len(sources))
    catalogue.resolved()
    return written


def _relink(catalogue: Catalogue, graph: Graph, sources: Sequence[NoteRef]) -> int:
    links = catalogue.links([s.id for s in sources])
    named = catalogue.named({link.key for rows in links.values() for link in rows})
    edges = {s.id: [_edge(s, link, named.get((s.vault, link.key), ())) for link in links[s.id]] for s in sources}
    graph.link(edges)
    return sum(map(len, edges.values()))


def _edge(source: NoteRef, link: LinkRow, candidates: Sequence[NoteRef]) -> Edge:
    target = source.id if not link.target else find(source, link.target, candidates)
    return Edge(source.id, target, link.link, link.alias, link.embed, link.line)


def find(source: NoteRef, target: str, candidates: Sequence[NoteRef]) -> NoteId | None:
    """The note that a link means. From a private cube: its own notes first, then global ones; from global: only those.

    So whether a private note exists never shows in a global one.
    """
    for cube in dict.fromkeys((source.cube, GLOBAL)):
        paths = [c.path for c in candidates if c.cube == cube]
        found = resolve(target, source.path, paths)
        if found is not None:
            return NoteRef(cube, source.vault, found).id
    return None
