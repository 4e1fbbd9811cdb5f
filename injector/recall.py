"""Hand: what an agent gets before it answers, in a time that a request can wait for. It never fails a request.

The work runs in a thread of its own and tells what it has as it goes. When the deadline passes, what is ready is used.
"""

import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache, partial
from zoneinfo import ZoneInfo

from injector.budget import Count
from injector.compose import Injection, Json, LeftOut, Material, Offer, as_json, compose
from injector.days import moment, newest
from injector.roots import directives, roots
from injector.shelf import Shelf, match
from palace.errors import DualwallError
from palace.library import Library
from palace.search.engine import MOST_HITS
from palace.walls import Reader

MOST_CHARACTERS = 2000
"""Of the last user message: more is no question, and finds less."""
_LOOKED_AT = 2
"""Notes of the newest days, and matches, that are looked at for each entry that may stand in a recall."""
_COUNTED = 1024
"""Texts whose tokens are remembered: the days and the directives are the same from one request to the next."""
_AT_ONCE = 16
"""Threads that may wait for a store that hangs, in one process; with more the request goes on without memory."""
_slots = threading.BoundedSemaphore(_AT_ONCE)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Asked:
    """Who asks, what about, and when: in the time zone of the settings."""

    reader: Reader
    query: str
    when: datetime


def inject(library: Library, reader_name: str, message: str, at: str | None = None, *, patient: bool = False) -> Json:
    """What goes before the response to `message`, the last user message: contract.md's `inject`.

    `at`: ISO 8601, else now. `patient`: wait as long as it takes, for a process that opened the palace for this alone.
    Whatever happens to the stores, there is an answer, and its receipt tells. Raises UsageError for a reader that there
    isn't, or an `at` that is no time.
    """
    began = time.monotonic()
    settings = library.settings
    when = moment(at, ZoneInfo(settings.timezone), partial(datetime.now, UTC))
    asked = Asked(library.reader(reader_name), question(message), when)
    deadline = None if patient else began + settings.inject.deadline_ms / 1000
    work = _Work(library, asked)
    late = not work.done_by(deadline)
    count, material = work.count, work.material
    if late:
        reason = f"the deadline of {settings.inject.deadline_ms} ms passed before all of the memory was there"
        material = replace(material, left_out=(*material.left_out, LeftOut(None, reason)))
    elif not work.whole:
        material = replace(
            material, left_out=(*material.left_out, LeftOut(None, "the memory failed: the log says how"))
        )
    if count is None:
        return as_json(reader_name, Injection(left_out=material.left_out), late=late)
    return as_json(reader_name, compose(material, settings.inject, count), late=late)


def question(message: str) -> str:
    """The last user message as a question: capped at a word's border."""
    head = message[: MOST_CHARACTERS + 1].strip()
    if len(head) <= MOST_CHARACTERS:
        return head
    return head[:MOST_CHARACTERS].rpartition(" ")[0] or head[:MOST_CHARACTERS]


@dataclass(slots=True)
class _Work:
    """The store work of one request. `material` grows stage by stage; `whole`: every stage was gone through."""

    library: Library
    asked: Asked
    material: Material = field(default_factory=Material)
    count: Count | None = None
    whole: bool = False
    _over: threading.Event = field(default_factory=threading.Event)
    _done: threading.Event = field(default_factory=threading.Event)

    def done_by(self, deadline: float | None) -> bool:
        """Do it, in another thread; False when the deadline (of the monotonic clock) passed first."""
        if not _slots.acquire(timeout=_left(deadline)):
            return False
        threading.Thread(target=self._run, name="injection", daemon=True).start()
        done = self._done.wait(_left(deadline))
        self._over.set()
        return done

    def _run(self) -> None:
        try:
            self._through()
            self.whole = True
        finally:  # what nobody foresaw ends this thread and is logged; the request goes on
            self._done.set()
            _slots.release()

    def _through(self) -> None:
        """Every stage, until it is too late. Without a tokenizer nothing could be budgeted, so nothing is looked for."""
        for what, stage in (
            ("tokenizer", self._tokenizer),
            ("directives", self._directives),
            ("days", self._days),
            ("matches", self._matches),
        ):
            if self._over.is_set():
                return
            try:
                stage()
            except DualwallError as error:
                _log.warning("injection: %s: %s", what, error.message)
                self._add(left_out=[LeftOut(None, f"{what}: {error.message}")])
            if self.count is None:
                return

    def _tokenizer(self) -> None:
        counter = self.library.counter
        self.count = self.library.part("injection counts", lambda: lru_cache(_COUNTED)(counter.count))

    def _directives(self) -> None:
        own = roots(self.library.settings, self.asked.reader.cubes)
        found = directives(self._shelf.own(self.asked.reader), own, self.library.settings.inject.directive_tokens)
        self.material = replace(self.material, directives=found.entries)
        self._add(left_out=found.left_out)

    def _days(self) -> None:
        limits = self.library.settings.inject
        days = self._shelf.recalled(self.asked.reader).days
        leaves = [leaf for day in newest(self.asked.when) for leaf in days.get(day, ())]
        most = limits.items * _LOOKED_AT
        offers, left_out = self._shelf.offers(self.asked.reader, leaves[:most], limits.tokens)
        more = [LeftOut(leaf.row.ref.id, "there are too many notes of these days") for leaf in leaves[most:]]
        self._add(offers, [*left_out, *more])

    def _matches(self) -> None:
        recalled = self._shelf.recalled(self.asked.reader)
        most = min(self.library.settings.inject.items * _LOOKED_AT, MOST_HITS)
        if not self.asked.query or not recalled.rooms or not most:
            return
        search = self.library.searcher.search
        answer = search(self.asked.query, self.asked.reader, rooms=recalled.rooms, limit=most, elsewhere=False)
        # The search answers from elsewhere when a room is gone since; the ledger has the last word on what is recalled.
        self._add([match(hit, leaf) for hit in answer.hits if (leaf := recalled.leaves.get(hit.ref)) is not None])

    @property
    def _shelf(self) -> Shelf:
        return self.library.part("injection", lambda: Shelf(self.library))

    def _add(self, offers: Iterable[Offer] = (), left_out: Iterable[LeftOut] = ()) -> None:
        old = self.material
        self.material = replace(old, offers=(*old.offers, *offers), left_out=(*old.left_out, *left_out))


def _left(deadline: float | None) -> float | None:
    """Seconds until a deadline, which may have passed; None without one."""
    return None if deadline is None else max(deadline - time.monotonic(), 0.0)
