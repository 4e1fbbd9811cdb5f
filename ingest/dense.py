"""The second pass: dense vectors for points that wait for one, newest notes first. May be interrupted at any point."""

from collections.abc import Iterator, Sequence
from itertools import islice

from ingest.chunk import passage_of
from palace.library import Library
from palace.progress import Report
from palace.stores.ports import Record, Vector
from palace.vocabulary import ChunkId, Sha256

_NOTES_AT_ONCE = 64
_VECTORS_AT_ONCE = 64
"""Vectors per update: the engine holds the interpreter for at most some milliseconds, so searches go on."""


def embed_waiting(stores: Library, report: Report) -> int:
    """Embed every passage that waits. Returns how many texts the model really saw; the others came from the cache."""
    catalogue = stores.catalogue
    total, done, embedded = catalogue.waiting(), 0, 0
    tried: set[str] = set()
    while ids := [i for i in catalogue.waiting_notes(_NOTES_AT_ONCE) if i not in tried]:
        tried = set(ids)  # a note that stays in the list made no progress: stop rather than turn in circles
        records = list(stores.vectors.scroll(ids))
        catalogue.mark_dense(r.id for r in records if r.has_dense)  # a killed run set them and could not say so
        done += sum(r.has_dense for r in records)
        written: list[ChunkId] = []
        for vectors, fresh in _vectors(stores, [r for r in records if not r.has_dense]):
            stores.vectors.set_dense(vectors)
            written += [i for i, _ in vectors]
            done, embedded = done + len(vectors), embedded + fresh
            report("embedding", done, total)
        stores.vectors.flush()
        catalogue.mark_dense(written)  # after the flush: what the ledger calls done survives a power cut
    return embedded


def _vectors(stores: Library, records: Sequence[Record]) -> Iterator[tuple[list[tuple[ChunkId, Vector]], int]]:
    """Vectors in groups, each with how many of it were embedded now."""
    cached = stores.cache.get_many(sorted({r.payload.passage_sha256 for r in records}), stores.model)
    if known := [(r.id, cached[r.payload.passage_sha256]) for r in records if r.payload.passage_sha256 in cached]:
        yield known, 0
    rest = [r for r in records if r.payload.passage_sha256 not in cached]
    texts: dict[Sha256, str] = {r.payload.passage_sha256: passage(r) for r in rest}
    owners: dict[Sha256, list[ChunkId]] = {}
    for record in rest:
        owners.setdefault(record.payload.passage_sha256, []).append(record.id)
    stream = zip(texts, stores.embedder.passages(list(texts.values())), strict=True)
    while group := list(islice(stream, _VECTORS_AT_ONCE)):
        stores.cache.put_many(group, stores.model)
        yield [(owner, vector) for sha256, vector in group for owner in owners[sha256]], len(group)


def passage(record: Record) -> str:
    """What is embedded for a stored chunk, made again from its payload."""
    payload = record.payload
    return passage_of(payload.title, payload.heading_path, payload.text)
