"""Memory for one request: asked for within a deadline, and not at all for a while when the palace fails. It never raises."""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Literal

from injector import recall
from injector.compose import Json
from palace.errors import DualwallError
from palace.library import Library

Status = Literal["injected", "late", "down", "empty"]
Remember = Callable[[str, str], Awaitable[Json]]
"""(reader, last user message) to what `inject` answers (docs/design.md, Contract); may raise DualwallError."""
FAILURES = 5
"""So many times in a row late or down, and the palace is left alone."""
FAILING = 0.5
"""Seconds that such a row has to last: many requests at once are late together, and the palace is none the worse."""
PAUSE = 5.0
"""Seconds until one request tries it again."""
_AT_ONCE = 4
"""More would share the same processor, and all be late where some could have been in time."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Memory:
    """What was found; `reason`, in ASCII, says why nothing was."""

    status: Status
    text: str = ""
    tokens: int = 0
    notes: int = 0
    reason: str = ""

    @property
    def header(self) -> str:
        """What `X-Dualwall` says."""
        if self.status != "injected":
            return self.status
        return f"injected; tokens={self.tokens}; notes={self.notes}"


@dataclass(slots=True)
class Breaker:
    """Whether the palace is asked: after some failures in a row, one request tries it after each pause."""

    clock: Callable[[], float] = time.monotonic
    _failures: int = 0
    _since: float = 0.0
    _open: bool = False
    _again_at: float = 0.0

    def lets_through(self) -> bool:
        """Whether this request may ask."""
        if not self._open:
            return True
        now = self.clock()
        if now < self._again_at:
            return False
        self._again_at = now + PAUSE
        return True

    def record(self, *, failed: bool) -> None:
        """How an answer went."""
        if not failed:
            self._failures, self._open = 0, False
            return
        now = self.clock()
        self._since = self._since if self._failures else now
        self._failures += 1
        if not self._open and self._failures >= FAILURES and now - self._since >= FAILING:
            self._open, self._again_at = True, now + PAUSE


@dataclass(slots=True)
class Memories:
    """`deadline`: seconds. One breaker a reader: what fails for one need not fail for another."""

    remember: Remember
    deadline: float
    _breakers: dict[str, Breaker] = field(default_factory=lambda: defaultdict(Breaker))

    async def of(self, reader: str, question: str) -> Memory:
        """What goes before the answer to a question; whatever happens to the palace, it is there in time."""
        breaker = self._breakers[reader]
        if not breaker.lets_through():
            return Memory("down", reason="the memory failed several times in a row and is left alone for a while")
        memory = await self._asked(reader, question)
        breaker.record(failed=memory.status in {"late", "down"})
        return memory

    async def _asked(self, reader: str, question: str) -> Memory:
        asking = asyncio.ensure_future(self.remember(reader, question))
        try:
            await asyncio.wait({asking}, timeout=self.deadline)
        finally:
            asking.cancel()  # not awaited: it may not listen
        if not asking.done() or asking.cancelled():
            return _LATE
        error = asking.exception()
        if error is None:
            return of_answer(asking.result())
        if isinstance(error, DualwallError):
            _log.warning("gateway: no memory: %s", error.message)
        else:
            _log.error("gateway: no memory", exc_info=error)
        return _DOWN


_LATE = Memory("late", reason="the memory was not there before the deadline")
_DOWN = Memory("down", reason="the memory failed: the log says how")


def of_answer(told: Json) -> Memory:
    """What `inject` answered, as a request gets it: all of it in time, or nothing, so that a retry gets the same bytes."""
    receipt = told["receipt"]
    if receipt["late"]:
        return _LATE
    text = "\n\n".join(block for block in (told["directive"], told["recall"]) if block)
    if text:
        notes = {included["ref"] for included in receipt["included"]}
        return Memory("injected", text, receipt["tokens"], len(notes))
    if any(lost["ref"] is None for lost in receipt["left_out"]):
        return _DOWN
    return Memory("empty", reason="the memory holds nothing for this reader and message")


def remembering(library: Callable[[], Library]) -> Remember:
    """Memory out of a palace that this process has open, in threads that nothing else waits for."""
    threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="gateway-memory")

    async def remember(reader: str, message: str) -> Json:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(threads, lambda: recall.inject(library(), reader, message))

    return remember
