"""Questions over the owner's socket are answered as they are here; locks say who holds them."""

import os
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dualwall import client, questions
from dualwall.owner import create_app, serve_in_thread, socket_path
from dualwall.questions import Question
from palace import lock
from palace.errors import BusyError, DualwallError, UnreachableError, UsageError
from palace.settings import Settings
from tests.flows.echo import Echo

QUESTIONS = [
    questions.search("what?"),
    questions.search("为什么?", ["a/b", "ps5"], ["w"], 3, explain=True),
    questions.rooms(),
    questions.rooms("q&a", "w", "c=1"),
    questions.read("projects/a b.md"),
    questions.read("Zettel – 笔记 #1?", (3, 9)),
    questions.neighbors("projects/a.md"),
    questions.status(),
    questions.status(files=True),
    questions.verify(repair=True),
]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data=tmp_path / "data")


@contextmanager
def owned(settings: Settings) -> Iterator[Path]:
    with lock.own(settings, "nightly") as held, serve_in_thread(Echo(), settings, held) as path:
        yield path


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_socket_answers_as_the_library_does(settings: Settings, question: Question) -> None:
    with owned(settings):
        assert client.ask(settings, question, "me") == question.answer(Echo(), "me")


def test_errors_keep_their_kind_their_words_and_their_hint(settings: Settings) -> None:
    with owned(settings):
        with pytest.raises(UnreachableError) as down:
            client.ask(settings, questions.search("down"), "me")
        with pytest.raises(UsageError, match="That is wrong"):
            client.ask(settings, questions.search("wrong"), "me")
        with pytest.raises(DualwallError, match="no such note"):
            client.ask(settings, questions.read("none"), "me")
    assert (down.value.message, down.value.hint) == ("The model cannot be reached.", "Build it.")


def test_the_socket_is_its_users_alone_and_goes_with_its_owner(settings: Settings) -> None:
    with owned(settings) as path:
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        holder = lock.owner(settings)
        assert holder is not None
        assert (holder.pid, holder.command, holder.socket) == (os.getpid(), "nightly", str(path))
    assert not path.exists()
    assert lock.owner(settings) is None


def test_a_dead_owners_socket_is_replaced(settings: Settings) -> None:
    settings.data.mkdir()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(settings.data / "owner.sock"))
    with owned(settings):
        assert client.ask(settings, questions.status(), "me") == {"asked": ["status", False]}


def test_a_data_folder_too_deep_for_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = tmp_path / "run"
    runtime.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    settings = Settings(data=tmp_path / ("deep" * 30) / "data")
    with owned(settings) as path:
        assert path.is_relative_to(runtime)
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert client.ask(settings, questions.status(), "me") == {"asked": ["status", False]}
    path.parent.chmod(0o755)
    with pytest.raises(UsageError, match="not this user's alone"):
        socket_path(settings)


def test_only_the_socket_is_asked_to_verify(settings: Settings) -> None:
    app = create_app(Echo, lambda: "me")
    assert "/api/v1/search" in app.openapi()["paths"]
    assert "/api/v1/owner/verify" not in app.openapi()["paths"]
    assert settings.data.name == "data"


def test_a_question_waits_for_an_owner_that_is_not_ready(settings: Settings) -> None:
    ready = threading.Event()

    def own_slowly() -> None:
        with lock.own(settings, "nightly") as held:
            ready.set()
            time.sleep(0.5)
            with serve_in_thread(Echo(), settings, held):
                done.wait(10)

    done = threading.Event()
    owner = threading.Thread(target=own_slowly)
    owner.start()
    ready.wait(10)
    try:
        assert client.ask(settings, questions.status(), "me") == {"asked": ["status", False]}
    finally:
        done.set()
        owner.join()


def test_a_question_gives_up_on_an_owner_that_never_answers(settings: Settings) -> None:
    with (
        lock.own(settings, "ingest"),
        pytest.raises(BusyError, match=rf"`dualwall ingest` \(process {os.getpid()}\), since 2"),
    ):
        client.ask(settings, questions.status(), "me", patience=0.3)


def test_without_an_index_there_is_nothing_to_ask(settings: Settings) -> None:
    with pytest.raises(DualwallError, match="nothing to ask yet") as caught:
        client.ask(settings, questions.status(), "me")
    assert "dualwall nightly" in caught.value.hint


def test_many_questions_at_once(settings: Settings) -> None:
    answers: list[object] = []

    def ask(number: int) -> None:
        answers.append(client.ask(settings, questions.search(str(number)), "me")["asked"][1])

    with owned(settings):
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(map(str, answers)) == sorted(map(str, range(20)))


def test_the_lock_of_a_killed_process_is_free(settings: Settings) -> None:
    code = (
        "import sys, time\nfrom pathlib import Path\nfrom palace import lock\nfrom palace.settings import Settings\n"
        "with lock.hold(Settings(data=Path(sys.argv[1])), 'sync'):\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(settings.data)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        holder = lock.holder(settings)
        assert holder is not None
        assert (holder.pid, holder.command) == (process.pid, "sync")
        with pytest.raises(BusyError, match=f"process {process.pid}"), lock.hold(settings, "nightly"):
            pass
        process.kill()
        process.wait()
    assert lock.holder(settings) is None
    with lock.hold(settings, "nightly") as held:
        assert held.holder.command == "nightly"


def test_asking_who_holds_a_lock_keeps_nobody_from_it(settings: Settings) -> None:
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            lock.holder(settings)

    looker = threading.Thread(target=look)
    looker.start()
    try:
        for _ in range(50):
            with lock.hold(settings, "sync"):
                pass
    finally:
        stop.set()
        looker.join()
