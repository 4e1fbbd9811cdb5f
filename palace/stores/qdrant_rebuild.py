"""Which collection belongs to a ledger, so that a rebuild beside ends with the one rename that swaps the ledgers.

The ledger of a rebuild names the collection that it fills. Once it is the palace's ledger, whoever opens it next lets the
alias follow; killed at any moment, vectors and ledger still belong together.
"""

from palace.settings import Qdrant
from palace.stores.catalogue import Catalogue
from palace.stores.qdrant import QdrantVectors
from palace.stores.qdrant_collection import Collections
from palace.stores.qdrant_server import Server

_KEY = "collection"


def open_vectors(
    settings: Qdrant, catalogue: Catalogue, dimensions: int, model: str, *, beside: bool = False
) -> QdrantVectors:
    """The vectors of this ledger; `beside`: the ledger is a rebuild's, which goes on with its own collection.

    Raises what opening `QdrantVectors` raises.
    """
    server = Server(settings)
    collections = Collections(server, settings, dimensions, model)
    named = catalogue.get(_KEY)
    if beside:
        if named is None:
            named = collections.next()
            collections.drop(named)  # what a rebuild left whose ledger is gone
            catalogue.set({_KEY: named})
        return QdrantVectors(settings, dimensions, model=model, server=server, collection=named)
    if named is not None and collections.exists(named):
        collections.publish(named)
    return QdrantVectors(settings, dimensions, model=model, server=server)
