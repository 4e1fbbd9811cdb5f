"""The gateway as `dualwall serve` mounts it: whose memory goes into a request, and who is turned away."""

from collections.abc import Iterator

import httpx
import pytest

from tests.server.serving import CANARY, TOKENS, Served, furnished, serving, wait_ready
from tests.server.upstream import Upstream
from tests.server.upstream import serving as upstream_serving

pytestmark = pytest.mark.slow
CHAT = {"model": "m", "messages": [{"role": "user", "content": "What did Mei ask about the fleece?"}]}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory, embeddings_url: str) -> Iterator[tuple[Served, Upstream]]:
    house = furnished(tmp_path_factory.mktemp("gateway"), embeddings_url)
    upstream = Upstream()
    with upstream_serving(upstream) as url:
        text = house.settings_file.read_text()
        house.settings_file.write_text(f'{text}\n[gateway]\nupstream = "{url}"\n')
        with serving(house) as served:
            wait_ready(served)
            yield served, upstream


def chat(served: Served, headers: dict[str, str]) -> httpx.Response:
    with served.http(None) as http:
        return http.post("/v1/chat/completions", json=CHAT, headers=headers)


def test_the_tokens_reader_is_remembered_and_no_other(gateway: tuple[Served, Upstream]) -> None:
    served, upstream = gateway
    for reader, theirs, others in (("scout", "I am Scout", CANARY), ("owl", CANARY, "I am Scout")):
        answer = chat(served, {"X-Dualwall-Token": TOKENS[reader], "Authorization": "Bearer upstreams-own"})
        assert answer.status_code == 200
        assert answer.headers["x-dualwall"].startswith("injected; tokens=")
        sent = upstream.seen[-1].body.decode()
        assert theirs in sent
        assert others not in sent
        assert upstream.seen[-1].header("authorization") == "Bearer upstreams-own"
        assert upstream.seen[-1].header("x-dualwall-token") is None


def test_without_a_token_a_request_of_this_machine_passes_without_memory(gateway: tuple[Served, Upstream]) -> None:
    served, upstream = gateway
    answer = chat(served, {"Authorization": f"Bearer {TOKENS['scout']}"})
    assert (answer.status_code, answer.headers["x-dualwall"]) == (200, "empty")
    assert "I am Scout" not in upstream.seen[-1].body.decode()


def test_a_wrong_token_goes_nowhere(gateway: tuple[Served, Upstream]) -> None:
    served, upstream = gateway
    before = len(upstream.seen)
    assert chat(served, {"X-Dualwall-Token": "wrong"}).status_code == 401
    assert len(upstream.seen) == before
