"""The official SDKs through the gateway, plain and streaming: the memory arrives, and they read every answer."""

from collections.abc import Iterator

import anthropic
import openai
import pytest

from tests.server.gateways import INJECTED, MEMORY, TOKEN, Memory, Rig, rigged
from tests.server.upstream import TEXT

KEY = "sk-of-the-person"


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    with rigged(Memory()) as rig:
        yield rig


@pytest.fixture
def gpt(rig: Rig) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(api_key=KEY, base_url=f"{rig.url}/v1", default_headers=TOKEN, max_retries=0) as client:
        yield client


@pytest.fixture
def claude(rig: Rig) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key=KEY, base_url=rig.url, default_headers=TOKEN, max_retries=0) as client:
        yield client


def test_chat_completions(rig: Rig, gpt: openai.OpenAI) -> None:
    raw = gpt.chat.completions.with_raw_response.create(
        model="m", messages=[{"role": "developer", "content": "Be short."}, {"role": "user", "content": "lidar?"}]
    )
    assert raw.headers["X-Dualwall"] == INJECTED
    assert raw.parse().choices[0].message.content == TEXT
    seen = rig.upstream.seen[-1]
    assert seen.json["messages"][1] == {"role": "developer", "content": MEMORY}
    assert [message["role"] for message in seen.json["messages"]] == ["developer", "developer", "user"]
    assert seen.header("authorization") == f"Bearer {KEY}"
    assert not [name for name, _ in seen.headers if name.startswith(b"x-dualwall")]


def test_chat_completions_streaming(rig: Rig, gpt: openai.OpenAI) -> None:
    stream = gpt.chat.completions.create(model="m", messages=[{"role": "user", "content": "lidar?"}], stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == TEXT
    assert rig.upstream.seen[-1].json["messages"][0] == {"role": "system", "content": MEMORY}


def test_responses(rig: Rig, gpt: openai.OpenAI) -> None:
    raw = gpt.responses.with_raw_response.create(model="m", instructions="Be short.", input="lidar?")
    assert raw.headers["X-Dualwall"] == INJECTED
    assert raw.parse().output_text == TEXT
    assert rig.upstream.seen[-1].json["instructions"] == f"Be short.\n\n{MEMORY}"


def test_responses_streaming(rig: Rig, gpt: openai.OpenAI) -> None:
    events = list(gpt.responses.create(model="m", input="lidar?", stream=True))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == TEXT
    assert events[-1].type == "response.completed"
    assert rig.upstream.seen[-1].json["instructions"] == MEMORY


def test_a_chain_of_responses_is_left_alone(rig: Rig, gpt: openai.OpenAI) -> None:
    raw = gpt.responses.with_raw_response.create(model="m", previous_response_id="resp_0", input="and then?")
    assert raw.headers["X-Dualwall"] == "empty"
    assert raw.headers["X-Dualwall-Reason"] == "the request goes on from a stored response"
    assert rig.upstream.seen[-1].json == {"model": "m", "previous_response_id": "resp_0", "input": "and then?"}


def test_messages(rig: Rig, claude: anthropic.Anthropic) -> None:
    raw = claude.messages.with_raw_response.create(
        model="m",
        max_tokens=9,
        system=[{"type": "text", "text": "Rules.", "cache_control": {"type": "ephemeral"}}],
        messages=[{"role": "user", "content": "lidar?"}],
        extra_headers={"anthropic-beta": "some-beta", "x-api-key": "of-an-older-sdk"},
    )
    assert raw.headers["X-Dualwall"] == INJECTED
    assert [block.text for block in raw.parse().content if block.type == "text"] == [TEXT]
    seen = rig.upstream.seen[-1]
    assert seen.json["system"] == [
        {"type": "text", "text": "Rules.", "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": MEMORY},
    ]
    assert (seen.header("x-api-key"), seen.header("anthropic-beta")) == ("of-an-older-sdk", "some-beta")
    assert seen.header("authorization") == f"Bearer {KEY}"
    assert seen.header("anthropic-version")


def test_messages_streaming(rig: Rig, claude: anthropic.Anthropic) -> None:
    with claude.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "lidar?"}]) as stream:
        assert "".join(stream.text_stream) == TEXT
        assert stream.get_final_message().stop_reason == "end_turn"
    assert rig.upstream.seen[-1].json["system"] == [{"type": "text", "text": MEMORY}]


def test_counting_tokens_and_listing_models_go_by_untouched(rig: Rig, gpt: openai.OpenAI) -> None:
    assert list(gpt.models.list()) == []
    assert rig.upstream.seen[-1].path == "/v1/models"


def test_a_refusal_of_the_model_arrives_as_the_sdks_know_it(gpt: openai.OpenAI, claude: anthropic.Anthropic) -> None:
    with pytest.raises(openai.RateLimitError, match=r"Slow down\.") as told:
        gpt.chat.completions.create(model="error", messages=[{"role": "user", "content": "q"}])
    assert told.value.response.headers["Retry-After"] == "7"
    with pytest.raises(anthropic.RateLimitError):
        claude.messages.create(model="error", max_tokens=9, messages=[{"role": "user", "content": "q"}])


def test_a_wrong_token_is_refused_before_anything_goes_on(rig: Rig) -> None:
    before = len(rig.upstream.seen)
    client = openai.OpenAI(
        api_key=KEY, base_url=f"{rig.url}/v1", default_headers={"X-Dualwall-Token": "revoked"}, max_retries=0
    )
    with client, pytest.raises(openai.AuthenticationError):
        client.chat.completions.create(model="m", messages=[{"role": "user", "content": "q"}])
    assert len(rig.upstream.seen) == before
