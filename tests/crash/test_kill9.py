"""A run that is killed anywhere is answered by running again: the state is the one of a vault never interrupted."""

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.embeddings import DIMENSIONS
from tests.support import ROOT

ROUNDS = int(os.environ.get("DUALWALL_CRASH_ROUNDS", "100"))
WORDS = ["bread", "oven", "salt", "robot", "wheel", "garden", "面包", "机器人", "river", "stone", "lamp", "paper"]


class Zygote:
    """The warm process that runs commands, and what they print."""

    def __init__(self, folder: Path) -> None:
        self._out = folder / "out"
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "ZYGOTE_OUT": str(self._out)},
        )

    def run(self, *argv: str, kill_after: float | None = None) -> tuple[int, float]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps({"argv": argv, "kill_after": kill_after}) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return answer["code"], answer["seconds"]

    def json(self, *argv: str) -> dict[str, Any]:
        code, _ = self.run(*argv, "--json")
        said = Path(f"{self._out}.err").read_text()
        assert code in (0, 3), said
        found: dict[str, Any] = json.loads(self._out.read_text())
        return found

    def close(self) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(timeout=60)
        assert self._process.stdout
        self._process.stdout.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a file system: kill -9 loses nothing that was written, and syncing costs nothing."""
    memory = Path("/dev/shm")  # noqa: S108 - the folder below it has a name of its own
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as made:
        yield Path(made)


@pytest.fixture
def zygote(folder: Path) -> Iterator[Zygote]:
    running = Zygote(folder)
    yield running
    running.close()


def settings(folder: Path, name: str, url: str) -> Path:
    file = folder / f"{name}.toml"
    file.write_text(f"""
data = "{name}"
[vaults.main]
source = "vault"
exclude = ["Agents/**"]
guard = {{ share = 1.0 }}
[[private]]
cube = "scout"
path = "vault:main/Agents/scout"
rooms = {{ system_config = ["SOUL.md"], diary = ["memory/*.md"] }}
[readers.me]
cubes = ["global"]
[readers.scout]
cubes = ["global", "scout"]
[embedding]
provider = "openai"
url = "{url}"
model = "test"
dimensions = {DIMENSIONS}
""")
    return file


def a_note(rng: random.Random, titles: list[str]) -> str:
    tags = rng.sample(["#work/bread", "#work/oven", "#idea", "#机器人"], rng.randrange(3))
    links = [f"[[{rng.choice(titles)}]]" for _ in range(rng.randrange(3))]
    parts = [
        f"## {rng.choice(WORDS)}\n{' '.join(rng.choices(WORDS, k=rng.randrange(5, 60)))}"
        for _ in range(rng.randrange(1, 5))
    ]
    return "\n\n".join([" ".join(tags + links), *parts]) + "\n"


def mutate(vault: Path, rng: random.Random) -> None:
    """Write, change, move and remove some notes."""
    notes = sorted(p for p in vault.rglob("*.md") if "Agents" not in p.parts)
    titles = [p.stem for p in notes] or ["n0"]
    for _ in range(rng.randrange(1, 6)):
        action = rng.choice(["write", "write", "change", "move", "remove", "private"])
        if action == "write" or len(notes) < 10:
            target = vault / rng.choice(["work/bread", "work/oven", "home", ""]) / f"n{rng.randrange(80)}.md"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(a_note(rng, titles))
        elif action == "private":
            target = vault / "Agents/scout/memory" / f"d{rng.randrange(10)}.md"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(a_note(rng, titles))
        else:
            note = rng.choice([p for p in notes if p.exists()] or [vault / "n0.md"])
            if action == "change":
                note.write_text(a_note(rng, titles))
            elif action == "remove":
                note.unlink(missing_ok=True)
            elif note.exists():
                target = vault / rng.choice(["moved", "work/oven", "home"]) / note.name
                target.parent.mkdir(parents=True, exist_ok=True)
                note.rename(target)


@pytest.mark.slow
def test_a_run_killed_anywhere_ends_as_one_never_interrupted(folder: Path, zygote: Zygote, embeddings_url: str) -> None:
    rng = random.Random(int(os.environ.get("DUALWALL_CRASH_SEED", "20261130")))
    vault = folder / "vault"
    (vault / "Agents/scout/memory").mkdir(parents=True)
    (vault / "Agents/scout/SOUL.md").write_text("I am Scout. #soul\n")
    for _ in range(15):
        mutate(vault, rng)
    killed, calm = (str(settings(folder, name, embeddings_url)) for name in ("killed", "calm"))
    _, longest = zygote.run("nightly", "--config", calm)
    kills = 0
    for turn in range(ROUNDS):
        code, _ = zygote.run("nightly", "--config", killed, kill_after=rng.uniform(0, longest))
        kills += code == -9
        zygote.json("nightly", "--config", killed)
        _, seconds = zygote.run("nightly", "--config", calm)
        longest = 0.7 * longest + 0.3 * 1.2 * seconds
        one, other = (zygote.json("verify", "--config", c) for c in (killed, calm))
        assert one["differences"] == [], f"round {turn}"
        assert one == other, f"round {turn}"
        mutate(vault, rng)
    assert kills >= ROUNDS // 2, f"only {kills} runs were still there to be killed"
    fresh = str(settings(folder, "fresh", embeddings_url))
    zygote.json("nightly", "--config", killed)
    zygote.json("nightly", "--config", fresh)
    assert zygote.json("verify", "--config", fresh) == zygote.json("verify", "--config", killed)
