"""Runs `dualwall` commands in forked children of one warm process, and kills them with -9 when told to.

One JSON object a line on standard input: {"argv": […], "kill_after": seconds or null}; one a line on standard output:
{"code": exit code or -9, "seconds": …}. The modules are imported once, the stores are opened in the children alone.
"""

import importlib
import json
import os
import signal
import sys
import threading
import time

from dualwall import cli
from palace.embedding import tokens
from palace.settings import Embedding

WARM = (
    "dualwall.asking",
    "dualwall.nightly",
    "ingest.prepare",
    "ingest.worker",
    "librarian.build",
    "palace.library",
    "palace.search.engine",
    "palace.stores.edge",
    "palace.verify",
    "sync.run",
)
"""Imported before the first fork, so that a child pays for none of them."""


def main() -> None:
    tokens.load(Embedding())
    for module in WARM:
        importlib.import_module(module)
    for line in sys.stdin:
        asked = json.loads(line)
        print(json.dumps(run(asked["argv"], asked["kill_after"])), flush=True)  # noqa: T201 - the answer


def run(argv: list[str], kill_after: float | None) -> dict[str, float]:
    start = time.monotonic()
    pid = os.fork()
    if pid == 0:
        quiet = os.open(os.devnull, os.O_RDWR)
        out = os.open(os.environ["ZYGOTE_OUT"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(quiet, 0)
        os.dup2(out, 1)
        os.dup2(os.open(os.environ["ZYGOTE_OUT"] + ".err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 2)
        os.setsid()
        os._exit(cli.run(argv))
    killer = None
    if kill_after is not None:
        killer = threading.Timer(kill_after, os.kill, (pid, signal.SIGKILL))
        killer.start()
    _, status = os.waitpid(pid, 0)
    if killer is not None:
        killer.cancel()
        killer.join()
    return {"code": os.waitstatus_to_exitcode(status), "seconds": time.monotonic() - start}


if __name__ == "__main__":
    main()
