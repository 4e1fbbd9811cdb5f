"""Fixtures that several folders of tests share."""

from collections.abc import Iterator

import pytest

from tests import embeddings


@pytest.fixture(scope="session")
def embeddings_url() -> Iterator[str]:
    """The base address of a running OpenAI-compatible embeddings server."""
    with embeddings.serving() as url:
        yield url
