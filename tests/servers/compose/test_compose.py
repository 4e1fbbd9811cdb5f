"""The stack as people run it, on a real Docker engine; only the vectors are embedded, since Qdrant's image cannot be had here."""

import socket
from collections.abc import Iterator

import pytest

from tests.servers.compose import stack as docker
from tests.servers.compose.stack import Stack, healthy

pytestmark = pytest.mark.slow
QUERY = "How long is the cold proof of the country loaf?"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    reason = docker.lacking()
    if reason:
        pytest.skip(reason)
    docker.build(tmp_path_factory.mktemp("images"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    made = Stack(tmp_path_factory.mktemp("stack"), port)
    made.compose("down", "--volumes")  # what a run that was killed left
    try:
        yield made
    finally:
        made.compose("down", "--volumes", "--timeout", "20")
        docker.engine("stop", str(docker.ENGINE))


def test_the_whole_file_is_sound(stack: Stack) -> None:
    services = stack.compose("config", "--services", whole=True).split()
    assert sorted(services) == ["dualwall", "neo4j", "qdrant"]
    told = stack.compose("config", whole=True)
    for secret in (stack.home / ".stack" / "secrets").iterdir():
        assert secret.read_text().strip() not in told, "a secret is a file, never a value"


def test_a_vault_is_ingested_asked_and_still_there_after_a_restart(stack: Stack) -> None:
    stack.up()
    assert healthy(stack) == {"dualwall": "healthy", "neo4j": "healthy"}
    first = stack.night_after(None)
    found = stack.hits(QUERY)
    assert found[0].endswith("Country loaf.md")
    before = stack.ask("GET", "/api/v1/status")
    rooms = stack.ask("GET", "/api/v1/rooms")
    assert stack.night_after(first) != first, "the schedule runs the nights"
    _guarded(stack)
    stack.compose("down", "--timeout", "30")
    stack.up()
    assert stack.hits(QUERY) == found
    after = stack.ask("GET", "/api/v1/status")
    assert (after["notes"], after["chunks"]) == (before["notes"], before["chunks"])
    assert stack.ask("GET", "/api/v1/rooms") == rooms, "the rooms are Neo4j's"


def _guarded(stack: Stack) -> None:
    """Not root, nothing to write to but the data, and hardlinks in it; the vault is read-only."""
    assert stack.inside("id -u").stdout.strip() == "1000"
    for place in ("/", "/opt", "/etc/dualwall", "/vault"):
        assert stack.inside(f"touch {place}/x").returncode != 0
    links = stack.inside("stat -c %h /data/palace/current/global/*/*/*.md | sort -n | head -n 1")
    assert int(links.stdout) >= 2


@pytest.mark.usefixtures("stack")
def test_the_image_is_small_and_holds_the_model() -> None:
    size = docker._run([docker.DOCKER, "image", "inspect", "--format", "{{.Size}}", "dualwall:test"])
    assert int(size) < 1_200_000_000
    told = docker._run(
        [docker.DOCKER, "run", "--rm", "--network", "none", "--read-only", "--entrypoint", "sh", "dualwall:test", "-c",
         "find /opt/models -name '*.onnx' && ! test -e /opt/dualwall/bin/pip"]
    )  # fmt: skip
    assert told.count(".onnx") == 1
