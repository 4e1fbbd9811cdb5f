"""Memory in time or not at all, and a palace that fails is left alone for a while."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import pytest

from injector.gateway_memory import FAILING, FAILURES, PAUSE, Breaker, Memories, Memory, of_answer
from palace.errors import UnreachableError


def answer(
    *, directive: str = "", recall: str = "", late: bool = False, lost: Sequence[str | None] = ()
) -> dict[str, Any]:
    """What `inject` answers, two parts of one note in its recall."""
    included = [{"ref": ref, "channel": "recall", "tokens": 4, "note_sha256": "0"} for ref in ("a", "a", "b")]
    left_out = [{"ref": ref, "reason": "why"} for ref in lost]
    receipt = {"included": included, "left_out": left_out, "tokens": 12, "late": late}
    return {"directive": directive, "recall": recall, "receipt": receipt}


def test_the_header_counts_notes_and_not_their_parts() -> None:
    memory = of_answer(answer(directive="D", recall="R", lost=[None, "c"]))
    assert (memory.text, memory.header) == ("D\n\nR", "injected; tokens=12; notes=2")
    assert of_answer(answer(recall="R")).text == "R"


@pytest.mark.parametrize(
    ("told", "status"),
    [
        (answer(), "empty"),
        (answer(lost=["c"]), "empty"),
        (answer(lost=["c", None]), "down"),
        (answer(directive="D", late=True), "late"),
    ],
)
def test_without_memory_it_says_why(told: dict[str, Any], status: str) -> None:
    memory = of_answer(told)
    assert (memory.status, memory.header, memory.text) == (status, status, "")
    assert memory.reason.isascii()
    assert memory.reason


def asked(*memories: Memories, reader: str = "scout") -> list[Memory]:
    async def ask() -> list[Memory]:
        return [await one.of(reader, "q") for one in memories]

    return asyncio.run(ask())


def test_a_palace_that_hangs_or_raises_costs_the_memory_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def hangs(_reader: str, _message: str) -> dict[str, Any]:
        await asyncio.sleep(60)
        raise AssertionError

    async def stubborn(_reader: str, _message: str) -> dict[str, Any]:
        for _ in range(2):
            try:
                await asyncio.sleep(0.3)
            except asyncio.CancelledError:
                continue
        return answer()

    async def refuses(_reader: str, _message: str) -> dict[str, Any]:
        raise UnreachableError("The store does not answer.")

    async def breaks(_reader: str, _message: str) -> dict[str, Any]:
        raise ZeroDivisionError

    began = time.monotonic()
    told = asked(*(Memories(remember, 0.05) for remember in (hangs, stubborn, refuses, breaks)))
    assert time.monotonic() - began < 2
    assert [memory.status for memory in told] == ["late", "late", "down", "down"]
    assert "The store does not answer." in caplog.text


def test_after_some_failures_the_palace_is_not_asked(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[str] = []

    async def refuses(reader: str, _message: str) -> dict[str, Any]:
        calls.append(reader)
        if reader == "me":
            return answer(recall="R")
        raise UnreachableError("The store does not answer.")

    memories = Memories(refuses, 1)
    told = asked(*[memories] * (FAILURES - 1))
    time.sleep(FAILING)
    told += asked(*[memories] * 4)
    assert {memory.status for memory in told} == {"down"}
    assert len(calls) == FAILURES
    assert "left alone" in told[-1].reason
    assert [memory.status for memory in asked(memories, reader="me")] == ["injected"]
    assert caplog.text.count("does not answer") == FAILURES


def test_a_breaker_tries_once_a_pause_and_closes_when_it_goes_well() -> None:
    now = 100.0
    breaker = Breaker(lambda: now)
    for _ in range(FAILURES - 1):
        breaker.record(failed=True)
    now += FAILING
    assert breaker.lets_through()
    breaker.record(failed=True)
    assert not breaker.lets_through()
    now += PAUSE
    assert [breaker.lets_through() for _ in range(3)] == [True, False, False]
    breaker.record(failed=True)
    assert not breaker.lets_through()
    now += PAUSE
    assert breaker.lets_through()
    breaker.record(failed=False)
    assert [breaker.lets_through() for _ in range(3)] == [True, True, True]
    breaker.record(failed=True)
    assert breaker.lets_through()


def test_many_that_are_late_together_do_not_open_the_breaker() -> None:
    now = 100.0
    breaker = Breaker(lambda: now)
    for _ in range(200):
        breaker.record(failed=True)
    assert breaker.lets_through()
    breaker.record(failed=False)
    now += FAILING
    breaker.record(failed=True)
    assert breaker.lets_through()
