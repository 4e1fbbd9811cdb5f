"""Fixtures that several folders of tests share."""

from collections.abc import Iterator

import pytest

from tests import embeddings
from tests.servers import neo4j_server as neo4j_servers
from tests.servers.neo4j_server import Neo4jServer


@pytest.fixture(scope="session")
def embeddings_url() -> Iterator[str]:
    """The base address of a running OpenAI-compatible embeddings server."""
    with embeddings.serving() as url:
        yield url


@pytest.fixture(scope="session")
def neo4j_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neo4jServer]:
    """A real Neo4j server with an empty database; whoever comes next wipes it."""
    if reason := neo4j_servers.lacking():
        pytest.skip(reason)
    server = Neo4jServer(tmp_path_factory.mktemp("neo4j"))
    server.start()
    yield server
    server.kill()  # its data goes with the run
