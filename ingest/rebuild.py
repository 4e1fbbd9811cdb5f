"""A store built anew beside the old one and swapped in: the way to another model, chunk size or a lost store."""

import shutil
from contextlib import closing
from itertools import islice

from ingest import worker
from palace.library import NEXT_STORE, OLD_STORE, Library
from palace.progress import Report
from palace.settings import Settings
from palace.vocabulary import Counts

_NOTES_AT_ONCE = 500


def rebuild(library: Library, settings: Settings, report: Report, options: worker.Options) -> Counts:
    """Ingest everything into a new store while `library` goes on answering from the old one, then swap.

    A killed rebuild is gone on with by the next one.
    """
    fresh, old = settings.data / NEXT_STORE, settings.data / OLD_STORE
    with closing(Library.open(settings, store=fresh)) as beside:
        counts = worker.run(beside, settings, report=report, options=options)
        if settings.stores.graph == "neo4j":
            _forget_strangers(beside)
    library.close()
    shutil.rmtree(old, ignore_errors=True)
    if settings.store.exists():
        settings.store.rename(old)
    fresh.rename(settings.store)
    shutil.rmtree(old, ignore_errors=True)
    return counts


def _forget_strangers(stores: Library) -> None:
    """A graph on a server has no place beside it: what the old ledger alone knew of goes when the new one is whole."""
    notes = (note.id for note in stores.graph.notes())
    while part := list(islice(notes, _NOTES_AT_ONCE)):
        known = stores.catalogue.rows(part)
        stores.graph.forget([i for i in part if i not in known])
