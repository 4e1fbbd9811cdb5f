"""Every bench, one after another: `python -m bench`. Sets of ../shared are taken where they are there."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("DUALWALL_SHARED", ROOT.parent / "shared")) / "data"


def main() -> int:
    """Run them; the exit code is that of the first that failed."""
    failed = 0
    for command in _commands():
        print(f"\n$ python -m {' '.join(command)}", flush=True)
        done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False)
        failed = failed or done.returncode
    return failed


def _commands() -> list[list[str]]:
    commands = [["bench.palace"], ["bench.stores"], ["bench.embedding"], ["bench.ingest"]]
    commands += [
        [f"bench.{name}"] for name in ("search", "server", "gateway") if (ROOT / "bench" / f"{name}.py").is_file()
    ]
    if SHARED.is_dir():
        sets = sorted(str(p) for p in (SHARED / "retrieval").iterdir() if (p / "corpus.jsonl.gz").is_file())
        commands += [["bench.obsidian"], ["bench.retrieval", *sets]]
    return commands


if __name__ == "__main__":
    sys.exit(main())
