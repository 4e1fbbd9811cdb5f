"""Whatever breaks, the request goes on in time, with what is there, and the receipt says what is missing."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from injector.recall import inject
from palace.embedding.tokens import TokenCounter
from palace.errors import DualwallError, StoreError, UnreachableError
from palace.library import Library
from palace.stores.memory import MemoryVectors
from palace.stores.ports import Embedder, Record, Scored, Sparse
from palace.vocabulary import ChunkId
from palace.walls import Scope
from tests.flows.injecting import CANARIES, NOON, housed, opened
from tests.house import House

DEADLINE = 1.0
"""Seconds; many times what the work takes, since machines that run tests are busy."""


class Slow(MemoryVectors):
    """A store that answers when it is told to."""

    def __init__(self, go: threading.Event) -> None:
        super().__init__()
        self._go = go

    def retrieve(self, ids: Sequence[ChunkId], scope: Scope) -> list[Record]:
        self._go.wait(10)
        return super().retrieve(ids, scope)


class Broken(MemoryVectors):
    """A store that raises."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._error = error

    def retrieve(self, ids: Sequence[ChunkId], scope: Scope) -> list[Record]:  # noqa: ARG002 - the port's
        raise self._error

    def sparse(self, query: Sparse, scope: Scope, limit: int) -> list[Scored]:  # noqa: ARG002 - the port's
        raise self._error


@pytest.fixture
def house(tmp_path: Path, embeddings_url: str) -> House:
    return housed(tmp_path, embeddings_url, more="inject = { deadline_ms = 1000 }")


@pytest.fixture
def library(house: House) -> Iterator[Library]:
    with opened(house) as library:
        inject(library, "scout", "warm", NOON, patient=True)
        yield library


def put(library: Library, **parts: object) -> None:
    """Other parts in place of the library's own."""
    library._parts.pop("searcher", None)
    library._parts |= parts


@contextmanager
def in_time(least: float = 0.0) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert least <= time.monotonic() - began < DEADLINE + 1


def reasons(told: dict[str, Any]) -> list[str]:
    return [lost["reason"] for lost in told["receipt"]["left_out"] if lost["ref"] is None]


def test_a_store_that_hangs_makes_it_late_with_what_was_ready(library: Library) -> None:
    go = threading.Event()
    put(library, vectors=Slow(go))
    with in_time(DEADLINE):
        told = inject(library, "scout", "lidar", NOON)
    go.set()
    assert told["receipt"]["late"] is True
    assert CANARIES["scout"] in told["directive"]
    assert told["recall"] == ""
    assert reasons(told) == ["the deadline of 1000 ms passed before all of the memory was there"]


def test_an_impatient_setting_gives_nothing_and_says_so(tmp_path: Path, embeddings_url: str) -> None:
    with opened(housed(tmp_path, embeddings_url, more="inject = { deadline_ms = 1 }")) as library:
        told = inject(library, "scout", "lidar", NOON)  # the tokenizer alone takes longer
        assert (told["directive"], told["recall"], told["receipt"]["late"]) == ("", "", True)
        assert told["receipt"]["tokens"] == 0


def test_hanging_requests_do_not_pile_up(library: Library) -> None:
    go = threading.Event()
    put(library, vectors=Slow(go))
    before = threading.active_count()
    with ThreadPoolExecutor(40) as pool:
        told = list(pool.map(lambda _: inject(library, "scout", "lidar", NOON), range(40)))
    waiting = [thread for thread in threading.enumerate() if thread.name == "injection"]
    go.set()
    assert all(one["receipt"]["late"] for one in told)
    assert len(waiting) <= 16
    for thread in waiting:
        thread.join(5)
    assert threading.active_count() <= before
    assert inject(library, "scout", "", NOON)["receipt"]["late"] is False


@pytest.mark.parametrize(
    "error",
    [UnreachableError("The store does not answer.", "Start it."), StoreError("The store refused that.")],
)
def test_a_store_that_is_down_costs_its_part_alone(library: Library, error: DualwallError) -> None:
    put(library, vectors=Broken(error))
    with in_time():
        told = inject(library, "scout", "lidar", NOON)
    assert told["receipt"]["late"] is False
    assert CANARIES["scout"] in told["directive"]
    assert told["recall"] == ""
    assert reasons(told) == [f"days: {error.message}", f"matches: {error.message}"]


def test_what_nobody_foresaw_is_logged_and_fails_no_request(library: Library) -> None:
    put(library, vectors=Broken(ZeroDivisionError("planted")))
    seen: list[str] = []
    before = threading.excepthook
    threading.excepthook = lambda told: seen.append(repr(told.exc_value))
    try:
        told = inject(library, "scout", "lidar", NOON)
    finally:
        threading.excepthook = before
    assert CANARIES["scout"] in told["directive"]
    assert told["recall"] == ""
    assert reasons(told) == ["the memory failed: the log says how"]
    assert seen == ["ZeroDivisionError('planted')"]


def test_without_a_model_it_recalls_by_words(library: Library) -> None:
    class Modelless(Library):
        @property
        def embedder(self) -> Embedder:
            raise UnreachableError("There is no model.")

    put(library)
    library.__class__ = Modelless
    told = inject(library, "scout", "robot camera", NOON, patient=True)
    assert "steers by camera" in told["recall"]


def test_without_a_tokenizer_there_is_no_memory(library: Library, caplog: pytest.LogCaptureFixture) -> None:
    class Tokenless(Library):
        @property
        def counter(self) -> TokenCounter:
            raise UnreachableError("The model is not there.", "Build it.")

    library.__class__ = Tokenless
    with caplog.at_level(logging.WARNING):
        told = inject(library, "scout", "lidar", NOON)
    assert (told["directive"], told["recall"], told["receipt"]["late"]) == ("", "", False)
    assert reasons(told) == ["tokenizer: The model is not there."]
    assert "The model is not there." in caplog.text
    assert "lidar" not in caplog.text


def test_a_closed_ledger_gives_nothing_and_says_so(library: Library) -> None:
    library.database.close()
    told = inject(library, "scout", "lidar", NOON)
    assert (told["directive"], told["recall"]) == ("", "")
    assert len(reasons(told)) == 3


def test_many_at_once_are_all_answered(library: Library) -> None:
    alone = {reader: inject(library, reader, "fleece", NOON, patient=True) for reader in ("me", "scout", "owl")}
    with ThreadPoolExecutor(24) as pool:
        asked = [reader for _ in range(40) for reader in alone]
        told = list(pool.map(lambda reader: inject(library, reader, "fleece", NOON, patient=True), asked))
    assert [one == alone[reader] for reader, one in zip(asked, told, strict=True)] == [True] * 120


SOUL = "Agents/scout/SOUL.md"


def _link(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.parent.parent / "owl" / "SOUL.md")


def _linked_folder(file: Path) -> None:
    file.parent.rename(file.parent.with_name("was"))
    file.parent.symlink_to(file.parent.parent / "owl")


def _pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def _folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (_link, "cannot be read"),
        (_pipe, "is no regular file"),
        (_folder, "cannot be read"),
        (lambda file: file.write_bytes(b"\xff\xfea\x00"), "is no UTF-8 text"),
        (lambda file: file.write_text("x" * 70_000), "is larger than 65536 bytes"),
        (lambda file: file.write_text("word " * 3000), "directives take"),
    ],
)
def test_a_directive_that_cannot_stand_whole_takes_the_others_with_it(
    tmp_path: Path, embeddings_url: str, change: Callable[[Path], None], reason: str
) -> None:
    root = tmp_path / "vault" / "Agents" / "scout"
    with opened(housed(tmp_path, embeddings_url, scout=str(root))) as library:
        assert CANARIES["scout"] in inject(library, "scout", "", NOON, patient=True)["directive"]
        change(root / "SOUL.md")
        told = inject(library, "scout", "", NOON, patient=True)
        assert told["directive"] == ""
        assert told["recall"]
        lost = told["receipt"]["left_out"]
        assert len(lost) == 2
        assert all(reason in one["reason"] and one["ref"] for one in lost)
        assert all("in full or not at all" in one["reason"] for one in lost)
        assert CANARIES["owl"] not in str(told)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda file: file.unlink(), "the file is gone"),
        (lambda file: file.write_text("---\nStatus: Rejected\n---\nI am a KINGFISHER.\n"), "its status is rejected"),
        (lambda file: file.write_text("---\nstatus: candidate\n---\nI am a KINGFISHER.\n"), "its status is candidate"),
    ],
)
def test_a_directive_that_is_none_any_more_goes_alone(
    tmp_path: Path, embeddings_url: str, change: Callable[[Path], None], reason: str
) -> None:
    root = tmp_path / "vault" / "Agents" / "scout"
    with opened(housed(tmp_path, embeddings_url, scout=str(root))) as library:
        change(root / "SOUL.md")
        told = inject(library, "scout", "", NOON, patient=True)
        assert CANARIES["scout"] not in told["directive"]
        assert "I answer in the language" in told["directive"]
        assert [lost["reason"] for lost in told["receipt"]["left_out"]] == [reason]


def test_a_directive_is_the_file_as_it_is_now(tmp_path: Path, embeddings_url: str) -> None:
    root = tmp_path / "vault" / "Agents" / "scout"
    with opened(housed(tmp_path, embeddings_url, scout=str(root))) as library:
        (root / "SOUL.md").write_bytes(b"\xef\xbb\xbf---\nstatus: active\n---\nI am new.\r\n")
        directive = inject(library, "scout", "", NOON, patient=True)["directive"]
        assert (
            "[system_config] SOUL.md\n---\nstatus: active\n---\nI am new.\n\n[system_config] AGENTS.md\n" in directive
        )


def test_a_root_that_became_a_link_to_anothers_leads_nowhere(tmp_path: Path, embeddings_url: str) -> None:
    root = tmp_path / "vault" / "Agents" / "scout"
    (root / "deep").mkdir(parents=True)
    (root / "deep" / "SOUL.md").write_text("Deep.\n")
    house = housed(tmp_path, embeddings_url, scout=str(root))
    text = house.settings_file.read_text().replace('"[AZ]*.md"', '"deep/*.md"')
    house.settings_file.write_text(text)
    with opened(house) as library:
        assert "Deep." in inject(library, "scout", "", NOON, patient=True)["directive"]
        _linked_folder(root / "deep" / "SOUL.md")
        told = inject(library, "scout", "", NOON, patient=True)
        assert told["directive"] == ""
        assert CANARIES["owl"] not in str(told)


def test_a_glob_that_is_taken_back_counts_at_once(house: House, library: Library) -> None:
    text = house.settings_file.read_text()
    house.settings_file.write_text(text.replace('["SOUL.md", "[AZ]*.md", "!scratch.md"]', '["AGENTS.md"]'))
    library.settings = house.settings
    told = inject(library, "scout", "", NOON, patient=True)
    assert CANARIES["scout"] not in str(told)
    assert "I answer in the language" in told["directive"]
