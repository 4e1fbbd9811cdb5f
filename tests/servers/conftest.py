"""Servers for one test: emptied, or to be killed."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from palace.stores.neo4j import Neo4jGraph
from palace.stores.ports import Graph
from tests.servers.neo4j_server import Neo4jServer, lacking


@pytest.fixture
def server(neo4j_server: Neo4jServer) -> Neo4jServer:
    neo4j_server.wipe()
    return neo4j_server


@pytest.fixture
def graph(server: Neo4jServer) -> Iterator[Graph]:
    with closing(Neo4jGraph(server.settings)) as opened:
        yield opened


@pytest.fixture(scope="module")
def frail(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neo4jServer]:
    """A second server, to be killed."""
    if reason := lacking():
        pytest.skip(reason)
    second = Neo4jServer(tmp_path_factory.mktemp("frail"))
    second.start()
    yield second
    second.kill()
