"""The collection that a palace has on a Qdrant server: made, checked, and swapped by its alias.

NAME            the alias that searches ask (`stores.qdrant.collection`)
NAME-000001     the collection behind it; a rebuild fills NAME-000002 beside it, then the alias moves
"""

import re
from collections.abc import Mapping

from qdrant_client import models

from palace.errors import ModelMismatchError, StoreError
from palace.settings import Qdrant
from palace.stores.filters import BM25, DENSE
from palace.stores.payload import INDEXED
from palace.stores.qdrant_server import Server

LARGE = 1_000_000
"""Points from which a graph is built; below, the int8 scan is exact at every filter width."""
BATCH = 256
"""Points of one write."""
PAGE = 256
"""Points of one page."""
_FORMAT = 1
_MARK = "dualwall"
_REBUILD = "Run `dualwall ingest --rebuild`: a new collection is made from your notes beside this one."
_FLAT = models.HnswConfigDiff(m=0)
# Scopes of up to about 100 000 points (150 MB of vectors) are still scanned: there, a graph loses neighbours.
_GRAPH = models.HnswConfigDiff(m=16, ef_construct=128, full_scan_threshold=150_000)
_STRICT = models.StrictModeConfig(
    enabled=True,
    unindexed_filtering_retrieve=False,
    unindexed_filtering_update=False,
    max_query_limit=10_000,
    upsert_max_batchsize=1_000,
    search_max_oversampling=4.0,
    search_max_hnsw_ef=1_024,
)
"""A mistake in a query is an error there, not a scan of everybody's points."""


class Collections:
    """The collections of one palace. Raises what `Server` raises."""

    def __init__(self, server: Server, settings: Qdrant, dimensions: int, model: str) -> None:
        self._server = server
        self._settings = settings
        self._alias = settings.collection
        self._dimensions = dimensions
        self._model = model

    def live(self) -> str | None:
        """The collection behind the alias. Raises StoreError when a collection of the server has the alias's name."""
        found = self._behind()
        if found is None and self._exists(self._alias):
            found = self._behind()  # somebody made it between the two questions
            if found is None:
                raise StoreError(
                    f"{self._where(self._alias)} is not one of Dualwall's, and is in the place of its alias.",
                    f"Name another one in stores.qdrant.collection. (A JWT has to allow {self._numbered(1)} too.)",
                )
        return found

    def open(self) -> str:
        """The alias, checked; the collection behind it is made if there is none."""
        found = self.live()
        if found is None:
            found = self._numbered(1)
            self.make(found)
            self.publish(found)
        self.check(found)
        return self._alias

    def next(self) -> str:
        """The name of the collection that a rebuild fills."""
        found = self.live()
        number = re.search(r"-(\d+)$", found) if found else None
        return self._numbered(int(number[1]) + 1 if number else 1)

    def exists(self, name: str) -> bool:
        """Whether the server has this collection."""
        return self._exists(name)

    def make(self, name: str) -> None:
        """Make a collection with all its indexes, before any point is in it; one that is there gets those that it lacks."""
        self._server.unless(
            409,
            "making the collection",
            lambda client: client.create_collection(
                name,
                vectors_config={
                    DENSE: models.VectorParams(
                        size=self._dimensions,
                        distance=models.Distance.COSINE,
                        memory=models.Memory.COLD,
                        hnsw_config=_FLAT,
                        quantization_config=models.ScalarQuantization(
                            scalar=models.ScalarQuantizationConfig(
                                type=models.ScalarType.INT8, memory=models.Memory.PINNED
                            )
                        ),
                    )
                },
                sparse_vectors_config={BM25: models.SparseVectorParams(modifier=models.Modifier.IDF)},
                shard_number=self._settings.shards,
                replication_factor=self._settings.replicas,
                write_consistency_factor=self._settings.replicas // 2 + 1,
                payload=models.PayloadStorageParams(memory=models.Memory.COLD),
                strict_mode_config=_STRICT,
                metadata={_MARK: {"format": _FORMAT, "model": self._model, "dimensions": self._dimensions}},
            ),
        )
        self.check(name)
        for key in INDEXED:
            self._index(name, key)

    def check(self, name: str) -> None:
        """Raises ModelMismatchError for vectors of another model, StoreError for a collection that is not one of ours."""
        config = self._info(name).config
        meta = (config.metadata or {}).get(_MARK)
        if not isinstance(meta, Mapping):
            raise StoreError(
                f"{self._where(name)} is not one of Dualwall's.", "Name another one in stores.qdrant.collection."
            )
        if meta.get("format") != _FORMAT:
            raise StoreError(f"{self._where(name)} was written by another version of Dualwall.", _REBUILD)
        if (meta.get("model"), meta.get("dimensions")) != (self._model, self._dimensions):
            stored, wanted = (f"{m} ({d})" for m, d in ((meta["model"], meta["dimensions"]), self._wanted()))
            raise ModelMismatchError(
                f"{self._where(name)} holds vectors of {stored}; the settings name {wanted}. They cannot be compared.",
                "Run `dualwall ingest --rebuild` to embed your notes with the new model, or name the old one again.",
            )
        vectors, sparse = config.params.vectors, config.params.sparse_vectors or {}
        dense = vectors.get(DENSE) if isinstance(vectors, Mapping) else None
        if dense is None or dense.size != self._dimensions or BM25 not in sparse:
            raise StoreError(f"{self._where(name)} does not have the vectors that its own notes tell of.", _REBUILD)

    def publish(self, name: str) -> None:
        """Let the alias name this collection from now on, in one step, and drop the one that it named."""
        old = self.live()
        if old == name:
            return
        steps: list[models.AliasOperations] = []
        if old is not None:
            steps.append(models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name=self._alias)))
        steps.append(
            models.CreateAliasOperation(create_alias=models.CreateAlias(collection_name=name, alias_name=self._alias))
        )
        self._server.write("moving the alias", lambda client: client.update_collection_aliases(steps))
        if old is not None:
            self.drop(old)

    def delete(self) -> None:
        """Delete the collection behind the alias; the server forgets the alias with it."""
        found = self.live()
        if found is not None:
            self.drop(found)

    def drop(self, name: str) -> None:
        """Delete a collection; one that is not there is no fault."""
        self._server.unless(404, "deleting a collection", lambda client: client.delete_collection(name))

    def grow(self, name: str, points: int) -> bool:
        """Build a graph once there are so many points that scanning them takes too long; whether it was begun now."""
        if points <= LARGE or self._graph(name):
            return False
        self._server.write(
            "building the graph",
            lambda client: client.update_collection(
                name, vectors_config={DENSE: models.VectorParamsDiff(hnsw_config=_GRAPH)}
            ),
        )
        return True

    def _behind(self) -> str | None:
        aliases = self._server.read("looking for the collection", lambda client: client.get_aliases()).aliases
        return next((a.collection_name for a in aliases if a.alias_name == self._alias), None)

    def _graph(self, name: str) -> bool:
        vectors = self._info(name).config.params.vectors
        dense = vectors.get(DENSE) if isinstance(vectors, Mapping) else None
        return dense is not None and dense.hnsw_config is not None and bool(dense.hnsw_config.m)

    def _index(self, name: str, key: str) -> None:
        tenant = True if key == "cube_id" else None
        schema = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=tenant)
        self._server.write("making an index", lambda client: client.create_payload_index(name, key, schema, wait=True))

    def _info(self, name: str) -> models.CollectionInfo:
        return self._server.read("reading the collection's settings", lambda client: client.get_collection(name))

    def _exists(self, name: str) -> bool:
        return self._server.read("looking for the collection", lambda client: client.collection_exists(name))

    def _numbered(self, number: int) -> str:
        return f"{self._alias}-{number:06d}"

    def _wanted(self) -> tuple[str, int]:
        return self._model, self._dimensions

    def _where(self, name: str) -> str:
        return f"The collection {name} at {self._settings.url}"
