"""What every vector store refuses, said once."""

import numpy as np

from palace.errors import StoreError
from palace.stores.ports import Vector


def checked(vector: Vector, dimensions: int) -> Vector:
    """The vector as float32 of shape (dimensions,). Raises StoreError for another shape or a value that is no number."""
    array = np.ascontiguousarray(vector, dtype=np.float32)
    if array.shape != (dimensions,):
        raise StoreError(
            f"A vector of shape {array.shape} does not fit a store of {dimensions} dimensions.",
            "The model in the settings is not the one that made this store: run `dualwall ingest --rebuild`.",
        )
    if not np.isfinite(array).all():
        raise StoreError("A vector holds a value that is not a number.", "The model's files may be damaged.")
    return array
