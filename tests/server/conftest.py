"""One served palace for all tests of this folder that only ask."""

from collections.abc import Iterator

import pytest

from tests.server.serving import Served, furnished, serving, wait_ready


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory, embeddings_url: str) -> Iterator[Served]:
    house = furnished(tmp_path_factory.mktemp("served"), embeddings_url)
    with serving(house) as running:
        wait_ready(running)
        yield running
