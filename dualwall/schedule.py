"""The server's nights: when one is due, and who runs it. Times are UTC, so that no night falls into a clock change."""

import logging
import threading
from datetime import UTC, datetime, timedelta

from cronsim import CronSim

from dualwall import nightly
from dualwall.common import Json
from dualwall.web.live import Live
from dualwall.web.logs import event
from dualwall.web.metrics import Metrics
from palace import lock
from palace.errors import BusyError, DualwallError, Exit

_LOOK_EVERY = 20.0
_BUSY_AGAIN = timedelta(minutes=10)
_FAILED_AGAIN = timedelta(hours=1)


class Stopping(Exception):  # noqa: N818 - it ends a night as ctrl-c would
    """The server stops, so the night does; the next one goes on from there."""


def due(schedule: str, last: datetime | None, now: datetime) -> bool:
    """Whether a night should have begun since the last success. A success in the future counts as none."""
    if not schedule:
        return False
    return last is None or last > now or next(CronSim(schedule, last.astimezone(UTC))) <= now


class Nights:
    """Runs one night at a time: those of the schedule, and those that `dualwall nightly` asks for."""

    def __init__(self, live: Live, metrics: Metrics, stop: threading.Event) -> None:
        self._live = live
        self._metrics = metrics
        self._stop = stop
        self._not_before = datetime.min.replace(tzinfo=UTC)
        self._one = threading.Lock()

    @property
    def running(self) -> bool:
        """Whether one runs now."""
        return self._one.locked()

    def loop(self) -> None:
        """Run what is due until the server stops."""
        pause = 1.0
        while self._live.settings.serve.schedule and not self._stop.wait(pause):
            if not self._live.ready:
                continue
            pause, now = _LOOK_EVERY, datetime.now(UTC)
            if now >= self._not_before:
                self._not_before = now + self._look(now)

    def run(self, *, dry_run: bool = False, older: timedelta | None = None) -> Json:
        """What `dualwall nightly` tells. Raises BusyError when another one runs, Stopping when the server stops."""
        if not self._one.acquire(blocking=False):
            raise BusyError("A night runs already.", "Wait until it is done.")
        try:
            settings, lines = self._live.settings, list[str]()
            with lock.hold(settings, "nightly"):
                night = nightly.Night(settings, self._live.library(), self._report, dry_run=dry_run, tell=lines.append)
                told = nightly.tell(night, older)
        finally:
            self._one.release()
        status, steps = told["night"]["status"], told["night"]["steps"]
        self._metrics.night(status)
        event("night", status=status, exit_code=told["exit_code"], steps=steps)
        return told | {"lines": [*lines, *told["lines"]]}

    def _look(self, now: datetime) -> timedelta:
        """Run one if it is due; how long to wait before the next look."""
        try:
            if not due(self._live.settings.serve.schedule, self._last(), now):
                return timedelta()
            told = self.run()
        except BusyError as error:
            event("night put off", logging.WARNING, reason=error.message)
            return _BUSY_AGAIN
        except DualwallError as error:
            event("night failed", logging.ERROR, error=type(error).__name__, message=error.message, hint=error.hint)
            return _FAILED_AGAIN
        except Stopping:
            event("night stopped", logging.WARNING)
            return _FAILED_AGAIN
        return timedelta() if told["exit_code"] in (Exit.DONE, Exit.PROBLEMS) else _FAILED_AGAIN

    def _last(self) -> datetime | None:
        text = self._live.library().catalogue.get("last_success")
        return None if text is None else datetime.fromisoformat(text)

    def _report(self, _what: str, _done: int, _total: int | None) -> None:
        if self._stop.is_set():
            raise Stopping
