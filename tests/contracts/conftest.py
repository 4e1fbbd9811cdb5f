from collections.abc import Iterator
from pathlib import Path

import pytest

from palace.stores.ports import Graph, VectorStore
from tests.contracts.stores import GRAPHS, VECTORS


@pytest.fixture(params=sorted(VECTORS))
def vectors(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorStore]:
    with VECTORS[request.param](tmp_path) as store:
        yield store


@pytest.fixture(params=sorted(GRAPHS))
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Graph]:
    with GRAPHS[request.param](tmp_path) as store:
        yield store
