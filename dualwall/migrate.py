"""`dualwall migrate`: move vectors and graph to servers, or back, without embedding anything."""

from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from dualwall.client import owning
from dualwall.common import Json, common, print_json
from palace import lock
from palace.configuration import load
from palace.progress import Progress
from palace.settings import Settings, Stores

if TYPE_CHECKING:
    from palace.migrate import Moved, Side


@click.command()
@click.option(
    "--to",
    "side",
    type=click.Choice(["servers", "embedded"]),
    required=True,
    help="servers: Qdrant and Neo4j, by [stores.qdrant] and [stores.neo4j]; embedded: edge and sqlite.",
)
@click.option("--vectors", "vectors_alone", is_flag=True, help="Move the vectors alone.")
@click.option("--graph", "graph_alone", is_flag=True, help="Move the graph alone.")
@common
def command(*, side: str, vectors_alone: bool, graph_alone: bool, config: Path | None, as_json: bool) -> int:
    """Copy vectors and graph from the stores that the settings name into the others, and compare both sides.

    May be interrupted at any time; the next call goes on from there. Questions are answered from the old stores
    meanwhile. The settings are yours: the last lines say what to put into them. The old stores stay.
    """
    from palace.migrate import migrate, wanted  # noqa: PLC0415 - `--help` does not pay for the stores

    settings = load(config)
    both = vectors_alone == graph_alone
    to = cast("Side", side)
    stores = wanted(settings.stores, to, vectors=both or vectors_alone, graph=both or graph_alone)
    with lock.hold(settings, "migrate"), owning(settings, "migrate") as library, Progress() as progress:
        moved = migrate(library, stores, progress)
    told = _told(settings.stores, stores, moved)
    if as_json:
        print_json(told)
    else:
        click.echo(_summary(settings, told))
    return 0


def _told(before: Stores, after: Stores, moved: "Moved") -> Json:
    held = moved.held
    return {
        "status": "done",
        "from": {"vectors": before.vectors, "graph": before.graph},
        "to": {"vectors": after.vectors, "graph": after.graph},
        "notes": held.notes,
        "chunks": held.chunks,
        "edges": held.edges,
        "pending": held.pending,
        "written": {"chunks": moved.points, "notes": moved.notes, "links_of": moved.links},
        "forgotten": moved.forgotten,
        "fingerprint": held.fingerprint,
        "settings": f'[stores]\nvectors = "{after.vectors}"\ngraph = "{after.graph}"\n',
    }


def _summary(settings: Settings, told: Json) -> str:
    written, where = told["written"], told["to"]
    return (
        f"{told['chunks']} chunks, {told['notes']} notes and {told['edges']} links are in {where['vectors']} and "
        f"{where['graph']}; both sides have the fingerprint {told['fingerprint'][:12]}.\n"
        f"Written now: {written['chunks']} chunks, {written['notes']} notes, the links of {written['links_of']} notes.\n\n"
        f"Now put this into the settings, before the next night:\n\n{told['settings']}\n"
        f"Then run `dualwall verify`. The old stores stay as they are; the ledger stays in {settings.catalogue}."
    )
