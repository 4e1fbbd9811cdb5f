"""Each store is opened once a module, since opening some takes seconds, and emptied before each test."""

from collections.abc import Iterator
from contextlib import AbstractContextManager

import pytest

from palace.stores.ports import Graph, VectorStore
from tests.contracts.stores import GRAPHS, VECTORS, emptied_graph, emptied_vectors, neo4j_graph


@pytest.fixture(scope="module", params=sorted(VECTORS))
def opened_vectors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[VectorStore]:
    with VECTORS[request.param](tmp_path_factory.mktemp(request.param)) as store:
        yield store


@pytest.fixture(scope="module", params=[*sorted(GRAPHS), pytest.param("neo4j", marks=pytest.mark.slow)])
def opened_graph(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    opening: AbstractContextManager[Graph]
    if request.param == "neo4j":
        opening = neo4j_graph(request.getfixturevalue("neo4j_server"))
    else:
        opening = GRAPHS[request.param](tmp_path_factory.mktemp(request.param))
    with opening as store:
        yield store


@pytest.fixture
def vectors(opened_vectors: VectorStore) -> VectorStore:
    return emptied_vectors(opened_vectors)


@pytest.fixture
def graph(opened_graph: Graph) -> Graph:
    return emptied_graph(opened_graph)
