"""Where memory goes, path by path, and that every other byte of a request stays."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from injector.gateway_paths import NoPlaceError, place, takes_memory

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
MEMORY = 'He said "so"\n\\ 灯 </x>'


def dumped(body: object) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()


def filled(path: str, body: object, memory: str = MEMORY) -> dict[str, Any]:
    """The request with memory; what the client sent stands around it, byte for byte."""
    found = place(path, dumped(body))
    whole = found.with_memory(memory)
    assert whole.startswith(found.body[: found.at].encode())
    assert whole.endswith(found.body[found.until :].encode())
    told: dict[str, Any] = json.loads(whole)
    return told


def user(text: object) -> dict[str, object]:
    return {"role": "user", "content": text}


def test_only_three_paths_take_memory_and_only_posted() -> None:
    assert all(takes_memory("POST", path) for path in (CHAT, RESPONSES, MESSAGES))
    assert not takes_memory("GET", RESPONSES)
    for path in ("/v1/models", "/v1/embeddings", "/v1/messages/count_tokens", "/v1/responses/x", "/v1/messages/"):
        assert not takes_memory("POST", path)


# -- chat --------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("before", "role"),
    [
        ([], "system"),
        ([{"role": "system", "content": "Be short."}], "system"),
        ([{"role": "system", "content": "a"}, {"role": "developer", "content": [{"type": "text", "text": "b"}]}], "developer"),
        ([{"role": "system", "content": "a"}, user("old"), {"role": "assistant", "content": "x"}], "system"),
        ([user("old"), {"role": "developer", "content": "late"}], "system"),
    ],
)  # fmt: skip
def test_chat_gets_one_message_before_the_last_user_message(before: list[dict[str, object]], role: str) -> None:
    told = filled(CHAT, {"model": "m", "messages": [*before, user("lidar?")], "stream": True})
    assert told == {
        "model": "m",
        "messages": [*before, {"role": role, "content": MEMORY}, user("lidar?")],
        "stream": True,
    }


def test_what_tools_say_stays_after_the_message_that_called_them() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    after = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "42"},
    ]
    told = filled(CHAT, {"messages": [{"role": "system", "content": "s"}, user("q"), *after]})
    assert [m["role"] for m in told["messages"]] == ["system", "system", "user", "assistant", "tool"]
    assert told["messages"][3:] == after
    assert place(CHAT, dumped({"messages": [user("q"), *after]})).question == "q"


@pytest.mark.parametrize(
    ("content", "question"),
    [
        ("What?", "What?"),
        ([{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:"}}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "image_url", "image_url": {"url": "data:"}}], "before"),
        (None, "before"),
        ([{"type": "text", "text": 7}, "odd"], "before"),
    ],
)  # fmt: skip
def test_the_question_is_the_last_user_messages_text(content: object, question: str) -> None:
    found = place(CHAT, dumped({"messages": [user("before"), user(content)]}))
    assert found.question == question


# -- responses -----------------------------------------------------------------------------------------------------------
def test_responses_get_it_at_the_end_of_their_instructions() -> None:
    told = filled(RESPONSES, {"instructions": 'Be "short".', "input": "lidar?"})
    assert told == {"instructions": f'Be "short".\n\n{MEMORY}', "input": "lidar?"}
    assert filled(RESPONSES, {"instructions": "", "input": "q"})["instructions"] == MEMORY


@pytest.mark.parametrize("more", [{}, {"instructions": None}, {"previous_response_id": None, "prompt": None}])
@pytest.mark.parametrize("given", ["lidar?", [user([{"type": "input_text", "text": "lidar?"}])]])
def test_responses_without_instructions_get_some(more: dict[str, object], given: object) -> None:
    told = filled(RESPONSES, {"input": given} | more)
    assert told == {"input": given} | more | {"instructions": MEMORY}
    assert place(RESPONSES, dumped({"input": given} | more)).question == "lidar?"


def test_the_instructions_of_a_stored_prompt_stay() -> None:
    item = {"type": "message", "role": "developer", "content": MEMORY}
    said = {"type": "message", "role": "user", "content": 'the "lidar"'}
    prompt = {"id": "pmpt_1"}
    assert filled(RESPONSES, {"prompt": prompt, "input": 'the "lidar"'})["input"] == [item, said]
    told = filled(RESPONSES, {"prompt": prompt, "input": [user("q"), {"type": "function_call_output", "output": "1"}]})
    assert told["input"] == [item, user("q"), {"type": "function_call_output", "output": "1"}]
    assert "instructions" not in told


def test_a_chain_of_responses_is_left_alone() -> None:
    with pytest.raises(NoPlaceError, match="stored response"):
        place(RESPONSES, dumped({"previous_response_id": "resp_1", "input": "q", "instructions": "i"}))


# -- messages ------------------------------------------------------------------------------------------------------------
BLOCK = {"type": "text", "text": MEMORY}
CACHED = {"type": "text", "text": "Long rules.", "cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("system", "after"),
    [
        ("Be short.", [{"type": "text", "text": "Be short."}, BLOCK]),
        ([CACHED], [CACHED, BLOCK]),
        ([CACHED, {"type": "text", "text": "more"}], [CACHED, {"type": "text", "text": "more"}, BLOCK]),
        (None, [BLOCK]),
        ("", [BLOCK]),
        ([], [BLOCK]),
    ],
)
def test_messages_get_one_block_at_the_end_of_system(system: object, after: object) -> None:
    body = {"system": system, "max_tokens": 5, "messages": [user("lidar?")]}
    assert filled(MESSAGES, body) == body | {"system": after}


def test_messages_without_system_get_one() -> None:
    body = {"messages": [user([{"type": "text", "text": "lidar?"}])], "tools": []}
    assert filled(MESSAGES, body) == body | {"system": [BLOCK]}


def test_what_is_cached_stays_the_same_bytes() -> None:
    """Odd blanks, escapes, numbers and names of the client, none of which a parser would write again in the same way."""
    cached = rb'{ "model" : "m","tools":[{"name":"\u0061","x":1.50e2,"y":1E400, "z": -0}],"system":[ {"type":"text","text":"\u706f","cache_control":{"type":"ephemeral"}}'
    rest = rb' ] ,"messages":[{"role":"user","content":"q"}]}'
    assert (
        place(MESSAGES, cached + rest).with_memory("M") == cached + rb',{"type":"text","text":"M"}' + rest
    )  # fmt: skip


def test_results_of_tools_are_no_question() -> None:
    result = user([{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "secret"}]}])
    use = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "n", "input": {}}]}
    body = {"messages": [user("lidar?"), use, result]}
    assert place(MESSAGES, dumped(body)).question == "lidar?"
    assert filled(MESSAGES, body)["messages"] == body["messages"]


# -- what is not understood ------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "body",
    [
        b"", b"null", b"[]", b"{", b"{}x", b"\xff", b"\xef\xbb\xbf{}", b'{"messages"}', b'{"messages":[]', b'{"messages":[],}',
        b'{,"messages":[]}', b'{"messages":NaN}', b"{1:2}", b'{"messages":[{"role":"user","content":"q"}],"messages":[]}',
        b'{"messages":' + b"[" * 200_000, b'{"n":' + b"9" * 5000 + b"}", b'{"messages":[{"role":"user"}],"x":Infinity}',
        '{"messages":[{"role":"user","content":"q"}]}'.encode("utf-16"),
    ],
)  # fmt: skip
def test_what_can_be_read_in_two_ways_has_no_place(body: bytes) -> None:
    for path in (CHAT, RESPONSES, MESSAGES):
        with pytest.raises(NoPlaceError):
            place(path, body)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {}),
        (CHAT, {"messages": None}),
        (CHAT, {"messages": "q"}),
        (CHAT, {"messages": []}),
        (CHAT, {"messages": ["q"]}),
        (CHAT, {"messages": [{"role": "system", "content": "alone"}]}),
        (RESPONSES, {"prompt": {"id": "p"}}),
        (RESPONSES, {"input": 3}),
        (RESPONSES, {"input": "q", "instructions": [user("x")]}),
        (RESPONSES, {"input": [{"type": "function_call_output", "call_id": "c", "output": "x"}]}),
        (MESSAGES, {"system": "s"}),
        (MESSAGES, {"system": 0, "messages": [user("q")]}),
        (MESSAGES, {"system": ["s"], "messages": [user("q")]}),
    ],
)
def test_what_is_no_request_as_known_has_no_place(path: str, body: object) -> None:
    with pytest.raises(NoPlaceError) as told:
        place(path, dumped(body))
    assert str(told.value).isascii()


_LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
_ANY = st.recursive(_LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8)  # fmt: skip
_ROLE = st.sampled_from(["system", "developer", "user", "assistant", "tool", ""])
_MESSAGE = st.fixed_dictionaries({"role": _ROLE, "content": _ANY})
_BODY = st.dictionaries(
    st.sampled_from(["model", "x", "tools", "prompt"]), _ANY
) | st.fixed_dictionaries(
    {"messages": st.lists(_MESSAGE, max_size=4), "input": st.lists(_MESSAGE, max_size=4) | st.text()},
    optional={"system": _ANY, "instructions": _ANY, "prompt": _ANY},
)  # fmt: skip


@given(st.sampled_from([CHAT, RESPONSES, MESSAGES]), _BODY, st.text(), st.sampled_from([None, 1]))
def test_a_request_stays_json_and_loses_nothing(
    path: str, body: dict[str, object], memory: str, indent: int | None
) -> None:
    try:
        found = place(path, json.dumps(body, ensure_ascii=indent is None, indent=indent).encode())
    except NoPlaceError:
        return
    told = json.loads(found.with_memory(memory))
    others = [name for name in body if name not in {"system", "instructions", "messages", "input"}]
    assert {name: told[name] for name in others} == {name: body[name] for name in others}
    assert any(memory in text for text in _strings(told))


def _strings(node: object) -> list[str]:
    if isinstance(node, str):
        return [node]
    inner = list(node.values()) if isinstance(node, dict) else node if isinstance(node, list) else []
    return [text for one in inner for text in _strings(one)]
