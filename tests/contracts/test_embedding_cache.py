"""Vectors come back as they were put, apart by model; a broken file is made anew."""

import hashlib
import multiprocessing
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palace.embedding.cache import VectorCache
from palace.embedding.dense import unit
from palace.errors import StoreError
from palace.stores.ports import Vector
from palace.vocabulary import Sha256


def key(text: str) -> Sha256:
    return Sha256(hashlib.sha256(text.encode()).hexdigest())


def made(seed: int, size: int = 8) -> Vector:
    return unit(np.random.default_rng(seed).normal(size=size).astype(np.float32))


@given(st.lists(st.floats(-1, 1, width=32).filter(lambda value: abs(value) > 1e-3), min_size=2, max_size=16))
@settings(max_examples=50, deadline=None)
def test_a_vector_comes_back_bit_for_bit(values: list[float]) -> None:
    cache = VectorCache(Path(":memory:"))
    vector = unit(np.array(values, np.float32))
    cache.put_many([(key("a"), vector)], "m")
    found = cache.get_many([key("a"), key("b")], "m")
    cache.close()
    assert list(found) == [key("a")]
    np.testing.assert_array_equal(found[key("a")], vector)
    assert found[key("a")].dtype == np.float32


def test_models_are_apart_and_a_second_put_replaces(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "new" / "vectors.sqlite")
    cache.put_many([(key("a"), made(1))], "one")
    cache.put_many([(key("a"), made(2))], "two")
    cache.put_many([(key("a"), made(3))], "two")
    np.testing.assert_array_equal(cache.get_many([key("a")], "one")[key("a")], made(1))
    np.testing.assert_array_equal(cache.get_many([key("a")], "two")[key("a")], made(3))
    assert cache.get_many([], "one") == {}
    cache.close()


def test_many_are_asked_for_at_once(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "vectors.sqlite")
    cache.put_many(((key(str(n)), made(n)) for n in range(1700)), "m")
    found = cache.get_many([key(str(n)) for n in range(2000)], "m")
    assert len(found) == 1700
    np.testing.assert_array_equal(found[key("1699")], made(1699))
    cache.close()


def test_pruning_keeps_what_is_live_of_this_model(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "vectors.sqlite")
    cache.put_many([(key(str(n)), made(n)) for n in range(10)], "now")
    cache.put_many([(key("1"), made(1))], "before")
    assert cache.prune((key(str(n)) for n in range(3)), "now") == 8
    assert set(cache.get_many([key(str(n)) for n in range(10)], "now")) == {key("0"), key("1"), key("2")}
    assert cache.get_many([key("1")], "before") == {}
    assert cache.prune([], "now") == 3
    cache.close()


def test_what_was_put_is_there_after_opening_again(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "vectors.sqlite")
    cache.put_many([(key("a"), made(1))], "m")
    cache.close()
    again = VectorCache(tmp_path / "vectors.sqlite")
    assert key("a") in again.get_many([key("a")], "m")
    again.close()


def test_a_file_that_is_no_database_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "vectors.sqlite").write_bytes(b"garbage " * 1000)
    cache = VectorCache(tmp_path / "vectors.sqlite")
    cache.put_many([(key("a"), made(1))], "m")
    assert key("a") in cache.get_many([key("a")], "m")
    cache.close()


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "vectors.sqlite").mkdir()
    with pytest.raises(StoreError, match="vector cache"):
        VectorCache(tmp_path / "vectors.sqlite")


def test_threads_share_one_object(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "vectors.sqlite")

    def put(number: int) -> int:
        cache.put_many([(key(str(number)), made(number))], "m")
        return len(cache.get_many([key(str(number))], "m"))

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(put, range(40))) == 40
    cache.close()


def _put(path: Path, first: int) -> None:
    cache = VectorCache(path)
    for number in range(first, first + 50):
        cache.put_many([(key(str(number)), made(number))], "m")
    cache.close()


@pytest.mark.slow
def test_processes_share_one_file(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    runs = [spawn.Process(target=_put, args=(tmp_path / "vectors.sqlite", first)) for first in (0, 50)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(60)
    assert [run.exitcode for run in runs] == [0, 0]
    cache = VectorCache(tmp_path / "vectors.sqlite")
    assert len(cache.get_many([key(str(number)) for number in range(100)], "m")) == 100
    cache.close()


def test_a_vector_of_no_direction_is_refused() -> None:
    for vector in (np.zeros(4, np.float32), np.array([1, np.nan], np.float32)):
        with pytest.raises(ValueError, match="direction"):
            unit(vector)
