"""What is the embedded engine's own: its folder, its lock, its child process, and kill -9."""

import json
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from palace.errors import BusyError, ModelMismatchError, StoreError, UnreachableError, WallError
from palace.stores.edge import EdgeVectors, discard
from palace.stores.edge_filters import any_of
from palace.stores.memory import MemoryVectors
from palace.walls import Scope
from tests.contracts.crash_writer import CHUNKS, expected, path_of
from tests.contracts.stores import CAT, DIMENSIONS, ME, MODEL, chunk_id, note_id, point, unit, words
from tests.contracts.test_vectors_walls import same_ranking
from tests.support import ROOT


def opened(folder: Path) -> EdgeVectors:
    return EdgeVectors(folder, DIMENSIONS, model=MODEL)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EdgeVectors]:
    made = opened(tmp_path / "edge")
    yield made
    made.close()


def test_a_filter_without_a_value_cannot_be_made() -> None:
    with pytest.raises(WallError):
        any_of("cube_id", [])


class Outrun(EdgeVectors):
    """A store into which another thread writes a stranger's note after it was counted that there is none."""

    def _strangers(self, scope: Scope) -> int:
        assert scope.cubes
        return 0


def test_a_note_of_another_cube_that_comes_while_a_search_begins_is_not_found(tmp_path: Path) -> None:
    store = Outrun(tmp_path / "edge", DIMENSIONS, model=MODEL)
    store.upsert([point("a.md", dense=unit(1)), point("b.md", cube="dev-cat", dense=unit(1))])
    assert [s.id for s in store.dense(unit(1), ME.scope(), 5)] == [chunk_id("a.md")]
    assert [s.id for s in store.sparse(words(1), ME.scope(), 5)] == [chunk_id("a.md")]
    assert len(store.dense(unit(1), CAT.scope(), 5)) == 2
    store.close()


def test_what_was_closed_is_there_again(tmp_path: Path) -> None:
    store = opened(tmp_path / "edge")
    store.upsert([point("a.md", dense=unit(1))])
    store.close()
    store.close()
    with pytest.raises(StoreError):
        store.dense(unit(1), ME.scope(), 1)
    again = opened(tmp_path / "edge")
    assert [s.id for s in again.dense(unit(1), ME.scope(), 1)] == [chunk_id("a.md")]
    again.close()


def test_a_second_process_is_told_who_is_in_the_way(store: EdgeVectors, tmp_path: Path) -> None:
    store.upsert([point("a.md")])
    with pytest.raises(BusyError, match="edge"):
        opened(tmp_path / "edge")
    with pytest.raises(BusyError):
        discard(tmp_path / "edge")
    assert store.count() == 1


@pytest.mark.parametrize(("dimensions", "model"), [(DIMENSIONS, "other"), (DIMENSIONS + 1, MODEL)])
def test_vectors_of_two_models_are_never_mixed(tmp_path: Path, dimensions: int, model: str) -> None:
    opened(tmp_path / "edge").close()
    with pytest.raises(ModelMismatchError) as error:
        EdgeVectors(tmp_path / "edge", dimensions, model=model)
    assert "dualwall ingest --rebuild" in error.value.hint
    discard(tmp_path / "edge")
    EdgeVectors(tmp_path / "edge", dimensions, model=model).close()


def test_damage_is_told_with_the_command_that_mends_it(tmp_path: Path) -> None:
    folder = tmp_path / "edge"
    opened(folder).close()
    meta = (folder / "store.json").read_text()
    for broken in ("{", "[]", json.dumps({"format": 1}), json.dumps(json.loads(meta) | {"format": 99})):
        (folder / "store.json").write_text(broken)
        with pytest.raises(StoreError) as error:
            opened(folder)
        assert "--rebuild" in error.value.hint
    (folder / "store.json").write_text(meta)
    shutil.rmtree(next(folder.glob("shard-*")) / "segments")
    with pytest.raises(StoreError, match="gone or empty"):
        opened(folder)
    shutil.rmtree(next(folder.glob("shard-*")))
    with pytest.raises(StoreError, match="gone or empty"):
        opened(folder)


def test_a_strangers_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "edge").mkdir()
    (tmp_path / "edge" / "letters.txt").write_text("dear")
    with pytest.raises(StoreError, match=r"letters\.txt"):
        opened(tmp_path / "edge")
    (tmp_path / "file").write_text("")
    with pytest.raises(UnreachableError):
        opened(tmp_path / "file")


def test_a_creation_that_was_killed_is_begun_again(tmp_path: Path) -> None:
    folder = tmp_path / "edge"
    opened(folder).close()
    (folder / "store.json").unlink()
    store = opened(folder)
    store.upsert([point("a.md")])
    assert store.count() == 1
    store.close()


def test_an_id_that_is_no_uuid_is_refused_and_poisons_nothing(store: EdgeVectors) -> None:
    bad = point("a.md")
    object.__setattr__(bad, "id", "no-uuid")
    with pytest.raises(StoreError):
        store.upsert([bad])
    store.upsert([point("b.md")])
    assert store.count() == 1


def test_writes_in_another_thread_leave_room_for_searches(store: EdgeVectors) -> None:
    store.upsert([point("a.md", dense=unit(1))])
    points = [point(f"{n}.md", dense=unit(1, n)) for n in range(3000)]
    writer = threading.Thread(target=store.upsert, args=(points,))
    writer.start()
    answers = 0
    while writer.is_alive():
        assert store.dense(unit(1), ME.scope(), 5)
        answers += 1
    writer.join()
    assert answers > 3
    assert store.count() == 3001


def clustered(count: int) -> list[tuple[int, np.ndarray[tuple[int], np.dtype[np.float32]]]]:
    dice = np.random.default_rng(7)
    raw = dice.standard_normal((count, DIMENSIONS)).astype(np.float32)
    return list(enumerate(raw / np.linalg.norm(raw, axis=1, keepdims=True)))


@pytest.mark.slow
def test_optimizing_changes_no_answer_and_stops_no_search(tmp_path: Path) -> None:
    store, yardstick = opened(tmp_path / "edge"), MemoryVectors(DIMENSIONS)
    points = [point(f"{n}.md", dense=v, sparse=words(n % 50 + 1, n % 7 + 60)) for n, v in clustered(4000)]
    for writer in (store, yardstick):
        writer.upsert(points)
        writer.forget([note_id(f"{n}.md") for n in range(0, 4000, 3)])
    store.optimize(20_000)  # less has changed than that
    assert [p.name for p in (tmp_path / "edge").glob("shard-*")] == ["shard-000001"]
    answers: list[float] = []
    worker = threading.Thread(target=store.optimize, args=(100,))
    worker.start()
    while worker.is_alive():
        began = time.monotonic()
        assert len(store.dense(unit(1, 2), ME.scope(), 10)) == 10
        answers.append(time.monotonic() - began)
    worker.join()
    assert [p.name for p in (tmp_path / "edge").glob("shard-*")] == ["shard-000002"]
    assert len(answers) > 5
    for query in (unit(1, 2), unit(0, 1), unit(3, -1, 2)):
        same_ranking(store.dense(query, ME.scope(), 50), yardstick.dense(query, ME.scope(), 50))
    same_ranking(store.sparse(words(3, 61), ME.scope(), 50), yardstick.sparse(words(3, 61), ME.scope(), 50))
    store.upsert([point("new.md", dense=unit(1))])
    store.close()
    again = opened(tmp_path / "edge")
    assert again.count() == yardstick.count() + 1
    again.close()


@pytest.mark.slow
def test_an_optimisation_that_dies_leaves_the_store_as_it_was(store: EdgeVectors, tmp_path: Path) -> None:
    store.upsert([point(f"{n}.md", dense=unit(1, n)) for n in range(50)])
    config = tmp_path / "edge" / "shard-000001" / "edge_config.json"
    whole = config.read_text()
    config.write_text("damaged")  # the copy's process reads it again, the open store does not
    with pytest.raises(StoreError, match="could not be optimised"):
        store.optimize(0)
    config.write_text(whole)
    assert [p.name for p in (tmp_path / "edge").glob("shard-*")] == ["shard-000001"]
    store.upsert([point("new.md")])
    assert store.count() == 51


@pytest.mark.slow
def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """The last step may be there in part: running it again answers that. Every one before it is there whole."""
    dice = random.Random(11)
    for attempt in range(4):
        folder = tmp_path / f"edge{attempt}"
        command = [sys.executable, "-m", "tests.contracts.crash_writer", str(folder), str(attempt)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        assert writer.stdout is not None
        done = [int(line) for line in islice(writer.stdout, dice.randint(10, 70))]
        time.sleep(dice.random() * 0.02)
        writer.kill()
        done += [int(line) for line in writer.stdout]
        writer.wait()
        writer.stdout.close()
        store = opened(folder)
        found: dict[str, list[bool]] = {}
        for record in store.scroll():
            found.setdefault(record.payload.path, []).append(record.has_dense)
        steps = done[-1] + 1
        for path, embedded in expected(steps).items():
            if path in expected(steps + 1) and expected(steps + 1)[path] == embedded:
                assert found.get(path) == [embedded] * CHUNKS, (attempt, steps, path)
        assert found.keys() <= {*expected(steps), *expected(steps + 1), path_of(steps)}
        store.upsert([point("after.md", dense=unit(1))])
        assert store.retrieve([chunk_id("after.md")], ME.scope())
        store.close()
