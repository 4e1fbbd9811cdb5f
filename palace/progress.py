"""How long work reports where it is: bars on a terminal, plain lines elsewhere, always on standard error."""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import NoReturn, Self, TextIO

from tqdm import tqdm

Report = Callable[[str, int, int | None], None]
"""(what, done so far, total if known); called as often as the work likes."""

_LINE_EVERY = 5.0
"""Seconds between two plain lines of one stage."""
_TELLING = 0.5
"""Seconds before a rate means anything."""


def silent(what: str, done: int, total: int | None) -> None:
    """Report nothing."""


class Progress:
    """A `Report` with rate and time left. Use as a context manager, so that a bar ends with its line."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._bar: tqdm[NoReturn] | None = None
        self._what = ""
        self._started = self._printed = 0.0

    def __call__(self, what: str, done: int, total: int | None) -> None:
        """Show that `done` of `total` of a stage is done; a new `what` ends the stage before."""
        if what != self._what:
            self._end()
            self._what, self._started, self._printed = what, time.monotonic(), 0.0
        if self._stream.isatty():
            self._draw(done, total)
        else:
            self._print(done, total)

    def __enter__(self) -> Self:
        """Start."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the stage that is open."""
        self._end()

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        self._what = ""

    def _draw(self, done: int, total: int | None) -> None:
        bar = self._bar
        if bar is None:
            bar = tqdm(desc=self._what, total=total, file=self._stream, dynamic_ncols=True, mininterval=0.2)
            self._bar = bar
        bar.total = total
        bar.update(done - bar.n)

    def _print(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        last = total is not None and done >= total
        if now - self._printed < _LINE_EVERY and not last:
            return
        self._printed = now
        spent = now - self._started
        rate = done / spent if spent > _TELLING else 0.0
        left = f", {_clock((total - done) / rate)} left" if total is not None and rate > 0 and not last else ""
        of = f" of {total}" if total is not None else ""
        pace = f" ({rate:.0f}/s{left})" if rate > 0 else ""
        self._stream.write(f"{self._what}: {done}{of}{pace}\n")
        self._stream.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
