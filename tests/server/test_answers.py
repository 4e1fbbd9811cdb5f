"""Answers are small: within max_tokens by the real tokenizer, whole hits, pages of a long note, no list without end."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualwall.tool_answers import _fitting, _Rough, _whole_lines, dumped
from palace.embedding import tokens
from palace.embedding.tokens import TokenCounter
from palace.errors import UnreachableError
from palace.settings import Embedding
from tests.server.serving import Served, furnished

LONG = 'Day 7: the oven said "187 degrees". ' * 30
texts = st.lists(st.text(max_size=400), max_size=6)


@given(texts, st.integers(0, 2000))
def test_hits_that_fit_are_whole_and_in_order_and_never_over(found: list[str], spare: int) -> None:
    hits = [{"ref": str(number), "text": text} for number, text in enumerate(found)]
    kept, truncated = _fitting(hits, spare, _Rough())
    assert sum(_Rough().count(dumped(hit)) for hit in kept) <= spare
    assert [hit["ref"] for hit in kept] == [hit["ref"] for hit in hits[: len(kept)]]
    assert truncated is (kept != hits)
    if len(kept) > 1:
        assert kept == hits[: len(kept)]


@given(st.text(max_size=500), st.integers(1, 300))
def test_a_page_of_a_note_is_its_beginning_by_whole_lines(text: str, most: int) -> None:
    page = _whole_lines(text, most, _Rough())
    assert text.startswith(page)
    assert len(page) <= max(most, 1)
    if page != text and "\n" in text[:most]:
        assert text[len(page)] == "\n"


@pytest.fixture(scope="module")
def counter() -> TokenCounter:
    try:
        return tokens.load(Embedding())
    except UnreachableError:
        pytest.skip("needs the tokenizer, which is built with the model")


@pytest.mark.slow
@pytest.mark.parametrize("most", [500, 700, 1500, 6000])
def test_an_answer_keeps_to_max_tokens(served: Served, counter: TokenCounter, most: int) -> None:
    found = served.tool("search", {"query": "the oven reached degrees", "limit": 50, "max_tokens": most})
    assert counter.count(dumped(found)) <= most
    assert found["hits"]
    assert found["truncated"] is (most < 6000)
    if found["truncated"]:
        assert "did not fit" in found["hints"][-1] or found["hits"][0]["text"].endswith("…")


@pytest.mark.slow
def test_a_long_note_is_read_page_by_page(served: Served, counter: TokenCounter) -> None:
    text, first = "", 1
    for _ in range(20):
        page = served.tool("read", {"ref": "long", "lines": [first, 100_000]})
        assert page["lines"][0] == first
        assert counter.count(page["text"]) <= 6000
        text += page["text"] + "\n"
        first = page["lines"][1] + 1
        if not page["truncated"]:
            break
    assert text.rstrip() == (served.house.vault / "projects/Oven/long.md").read_text().rstrip()
    assert first > 1000


@pytest.mark.slow
def test_a_whole_prompt_as_the_query_is_cut_and_that_is_said(served: Served) -> None:
    prompt = "You are a helpful assistant. " * 3000
    found = served.tool("search", {"query": f"oven hinge {prompt}"})
    assert "Only the first" in found["hints"][0]
    assert served.tool("list_rooms", {"query": f"oven {prompt}"})["rooms"]
    with served.http() as http:
        assert http.post("/api/v1/tools/search", json={"query": prompt * 2}).status_code == 400


@pytest.mark.slow
def test_rooms_come_in_pages_to_the_last_one(served: Served) -> None:
    whole = served.tool("list_rooms", {})
    assert (whole["truncated"], "next" in whole) == (False, False)
    names = [room["room"] for room in whole["rooms"]]
    assert {"projects/oven", "areas/garden", "daily/daily", "scout/diary", "tags/money"} <= set(names)
    described = {room["room"]: room.get("description") for room in whole["rooms"]}
    assert described["areas/garden"] == "Everything that grows behind the bakery."
    for name in names:
        assert not served.tool("search", {"query": "oven", "room": name})["fallback"]


@pytest.mark.slow
def test_many_agents_at_once_each_get_their_own_answer(served: Served) -> None:
    def ask(number: int) -> tuple[str, dict[str, Any]]:
        reader = ("me", "scout", "owl")[number % 3]
        return reader, served.tool("search", {"query": "fleece"}, reader)

    with ThreadPoolExecutor(16) as pool:
        for reader, found in pool.map(ask, range(90)):
            assert found["receipt"]["reader"] == reader
            assert {hit["cube"] for hit in found["hits"]} <= {"global", reader}


@pytest.mark.slow
def test_a_server_in_the_background_leaves_when_nobody_asks(tmp_path: Path, embeddings_url: str) -> None:
    house = furnished(tmp_path, embeddings_url)
    code = (
        "import sys, dualwall.serve\ndualwall.serve.IDLE = 1.0\nfrom dualwall.cli import run\n"
        "sys.exit(run(['serve', '--background', '--config', sys.argv[1]]))"
    )
    command = [sys.executable, "-c", code, str(house.settings_file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=90)
    assert (done.returncode, done.stdout) == (0, "")
    events = [json.loads(line)["event"] for line in done.stderr.splitlines()]
    assert events[-1] == "stopped"
    assert "idle: leaving" in events  # before or after it is ready: a slow machine takes longer than the second
