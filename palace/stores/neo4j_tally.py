"""How many notes each room has, kept up by every write: to count them for a list takes as long as there are notes.

A Tally is what one room has under one spelling and status: notes, and the time of the last change among them.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping

from palace.stores.neo4j_server import Tx

# The first SET takes the lock before it reads, so that two workers on one room add up.
_ADD = """
UNWIND $rows AS row MERGE (t:Tally {key: row.key})
ON CREATE SET t += row.about, t.notes = 0, t.changed = ''
SET t.notes = t.notes + row.more
SET t.changed = CASE WHEN row.gained > t.changed THEN row.gained ELSE t.changed END"""
_LOOK_AGAIN = """
UNWIND $rows AS row MATCH (t:Tally {key: row.key}) WHERE t.notes > 0 AND t.changed <= row.lost
MATCH (:Room {key: t.in})<-[i:IN]-() WHERE i.tally = t.key
WITH t, max(i.changed) AS changed SET t.changed = changed"""
_DROP = "UNWIND $rows AS row MATCH (t:Tally {key: row.key}) WHERE t.notes = 0 DELETE t"


class Tally:
    """The difference that one write makes, by key. Changed: ISO 8601 times in UTC, "" for unknown."""

    def __init__(self) -> None:
        self._more: Counter[str] = Counter()
        self._gained: defaultdict[str, str] = defaultdict(str)
        self._lost: defaultdict[str, str] = defaultdict(str)
        self._about: dict[str, Mapping[str, str]] = {}

    def more(self, key: str, changed: str, about: Mapping[str, str]) -> None:
        """A note came. `about`: what this tally counts."""
        self._more[key] += 1
        self._gained[key] = max(self._gained[key], changed)
        self._about[key] = about

    def less(self, key: str, notes: int, changed: str) -> None:
        """Notes went, the last change among them at `changed`."""
        self._more[key] -= notes
        self._lost[key] = max(self._lost[key], changed)

    def write(self, tx: Tx) -> None:
        """Add it to what is stored. Comes last in a transaction, since it holds locks that others wait for."""
        rows = [
            {"key": k, "more": n, "gained": self._gained[k], "lost": self._lost[k], "about": self._about.get(k, {})}
            for k, n in sorted(self._more.items())
            if n or self._gained[k] != self._lost[k]
        ]
        older = [r for r in rows if self._lost[str(r["key"])] > self._gained[str(r["key"])]]
        fewer = [r for r in rows if self._more[str(r["key"])] < 0]
        for statement, own in ((_ADD, rows), (_LOOK_AGAIN, older), (_DROP, fewer)):
            if own:
                tx.run(statement, rows=own).consume()
