"""Workers and Neo4j are killed during ingests; a run that is let end leaves the state of one never interrupted.

Three rounds each; DUALWALL_CRASH_ROUNDS_NEO4J=20 makes more.
"""

import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from time import sleep

import pytest

from palace.errors import Exit
from tests.crash.test_kill9 import Zygote, mutate, settings
from tests.servers.neo4j_server import Neo4jServer, lacking

ROUNDS = int(os.environ.get("DUALWALL_CRASH_ROUNDS_NEO4J", "3"))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Neo4jServer]:
    if reason := lacking():
        pytest.skip(reason)
    own = Neo4jServer(tmp_path / "neo4j")
    own.start()
    yield own
    own.kill()


@dataclass
class Pair:
    """One vault with two palaces: `calm` is embedded and never interrupted, `struck` has its graph on the server."""

    zygote: Zygote
    vault: Path
    calm: str
    struck: str
    rng: random.Random

    def mutate(self) -> None:
        for _ in range(4):
            mutate(self.vault, self.rng)

    def compare(self, when: str) -> None:
        """Let both end, and hold one against the other."""
        for config in (self.struck, self.calm):
            self.zygote.json("nightly", "--config", config)
        one, other = (self.zygote.json("verify", "--config", c) for c in (self.struck, self.calm))
        assert one["differences"] == [], when
        assert one == other, when


@pytest.fixture
def pair(tmp_path: Path, server: Neo4jServer, embeddings_url: str) -> Iterator[Pair]:
    vault = tmp_path / "vault"
    (vault / "Agents/scout/memory").mkdir(parents=True)
    (vault / "Agents/scout/SOUL.md").write_text("I am Scout. #soul\n")
    calm, struck = (settings(tmp_path, name, embeddings_url) for name in ("calm", "struck"))
    asked = server.settings
    struck.write_text(
        f'{struck.read_text()}[stores]\ngraph = "neo4j"\n'
        f'[stores.neo4j]\nurl = "{asked.url}"\npassword_file = "{asked.password_file}"\n'
    )
    zygote = Zygote(tmp_path)
    rng = random.Random(int(os.environ.get("DUALWALL_CRASH_SEED", "20261201")))
    made = Pair(zygote, vault, str(calm), str(struck), rng)
    for _ in range(5):
        made.mutate()
    yield made
    zygote.close()


@pytest.mark.slow
def test_a_worker_killed_anywhere_ends_in_the_same_palace(pair: Pair) -> None:
    kills = 0
    seconds = 4.0
    for turn in range(ROUNDS):
        code, lasted = pair.zygote.run(
            "nightly", "--config", pair.struck, kill_after=pair.rng.uniform(0.1, 0.8) * seconds
        )
        kills += code == -9
        seconds = max(lasted, 0.5) if code != -9 else seconds
        pair.compare(f"round {turn}")
        pair.mutate()
    assert kills


@pytest.mark.slow
def test_neo4j_killed_during_an_ingest_ends_in_the_same_palace(pair: Pair, server: Neo4jServer) -> None:
    codes = []
    for turn in range(ROUNDS):
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(pair.zygote.run, "nightly", "--config", pair.struck)
            sleep(pair.rng.uniform(0.2, 3.0))
            server.kill()
            sleep(pair.rng.uniform(0.0, 2.0))
            server.start()
            codes.append(running.result()[0])
        pair.compare(f"round {turn}")
        pair.mutate()
    assert set(codes) <= {Exit.DONE, Exit.PROBLEMS, Exit.UNREACHABLE}, codes
