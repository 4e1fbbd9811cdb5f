"""The server's log: a JSON object a line on standard error, with no word of a note, a question or a path in it."""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime

LOG = logging.getLogger("dualwall")


class JsonLines(logging.Formatter):
    """`time`, `level`, `event` and what the record carries as `extra={"data": {…}}`.

    Of an exception its kind and the places that it came through, never its message: that may hold anything.
    """

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        when = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = {"time": when.replace("+00:00", "Z"), "level": record.levelname.lower(), "logger": record.name}
        line["event"] = record.getMessage()
        line |= getattr(record, "data", {})
        if record.exc_info and record.exc_info[0] is not None:
            frames = traceback.extract_tb(record.exc_info[2])
            line["error"] = record.exc_info[0].__name__
            line["at"] = " < ".join(f"{frame.filename}:{frame.lineno}" for frame in reversed(frames[-8:]))
        return json.dumps(line, ensure_ascii=False, default=str)


def set_up() -> None:
    """Send every logger there: ours from `info` on, others' from `warning` on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    LOG.setLevel(logging.INFO)


def event(name: str, level: int = logging.INFO, **data: object) -> None:
    """Log that something happened."""
    LOG.log(level, name, extra={"data": data})
