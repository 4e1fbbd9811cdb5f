"""A move that is killed anywhere is answered by moving again: the same palace, and nothing written twice."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import House
from tests.moves import elsewhere, moved_to
from tests.support import ROOT

ROUNDS = int(os.environ.get("DUALWALL_CRASH_ROUNDS_MIGRATE", "4"))
_REPORTS = 14
"""About as many as a move of the notes below makes."""


@pytest.mark.slow
def test_a_move_killed_anywhere_ends_in_the_same_palace(tmp_path: Path, embeddings_url: str) -> None:
    rng = random.Random(int(os.environ.get("DUALWALL_CRASH_SEED", "20261201")))
    house = House(tmp_path, embeddings_url)
    house.furnish(
        {f"w{n % 7}/n{n}.md": f"# N{n}\nText {n}. [[n{n // 2}]] #t{n % 5}\n\n## B\nMore.\n" for n in range(400)}
    )
    house.furnish({"Agents/scout/SOUL.md": "I am Scout. [[SOUL]]\n"})
    house.night()
    before = house.verify()
    codes = []
    for turn in range(ROUNDS):
        copy = tmp_path / f"copy{turn}"
        for _ in range(2):  # killed, and killed again while it goes on
            after = str(rng.randrange(1, _REPORTS)), str(rng.choice([0.0, 0.01, 0.05]))
            command = [sys.executable, "-m", "tests.moves", str(house.settings_file), str(copy), *after]
            codes.append(subprocess.run(command, cwd=ROOT, check=False, timeout=120).returncode)
        with house.library() as library, elsewhere(library, copy) as target:
            moved = moved_to(library, target)
            assert moved.held.fingerprint == before["fingerprint"], turn
            assert target.vectors.count() == before["chunks"], turn
            again = moved_to(library, target)
            assert (again.points, again.notes, again.links, again.forgotten) == (0, 0, 0, 0), turn
    assert -9 in codes
    assert set(codes) <= {-9, 0}
    assert house.verify() == before
