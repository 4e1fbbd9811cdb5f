"""`dualwall serve` as a process: one owner, its nights, its ends."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dualwall.client import BACKGROUND
from palace import lock
from tests.house import House
from tests.server.serving import Served, furnished, serving, wait_ready

pytestmark = pytest.mark.slow


@pytest.fixture
def house(tmp_path: Path, embeddings_url: str) -> House:
    return furnished(tmp_path, embeddings_url)


def dualwall(house: House, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dualwall.cli", *arguments, "--config", str(house.settings_file)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def events(served: Served, name: str) -> list[dict[str, object]]:
    return [one for line in list(served.log) if (one := json.loads(line))["event"] == name]


def until_logged(served: Served, name: str, seconds: float = 60) -> dict[str, object]:
    for _ in range(int(seconds * 10)):
        if found := events(served, name):
            return found[-1]
        time.sleep(0.1)
    raise AssertionError(list(served.log))


def test_commands_ask_the_server_and_the_night_is_run_by_it(house: House) -> None:
    with serving(house) as served:
        second = dualwall(house, "serve", "--listen", "127.0.0.1:0")
        assert (second.returncode, second.stdout) == (5, "")
        assert re.search(rf"owned by `dualwall serve` \(process {served.process.pid}\), since 20", second.stderr)
        ingest = dualwall(house, "ingest")
        assert ingest.returncode == 5
        assert "dualwall nightly" in ingest.stderr
        found = json.loads(dualwall(house, "search", "oven hinge", "--json").stdout)
        assert found["hits"][0]["title"] == "plan"
        (house.vault / "new.md").write_text("A brand-new anvil.\n")
        plan = dualwall(house, "nightly", "--dry-run")
        assert (plan.returncode, "sync main" in plan.stderr) == (0, True)
        night = dualwall(house, "nightly", "--json")
        assert night.returncode == 0, night.stderr
        told = json.loads(night.stdout)
        assert (told["status"], told["generation"]) == ("done", 2)
        assert [step["name"] for step in told["steps"]][:3] == ["sync main", "librarian", "ingest"]
        assert served.tool("search", {"query": "anvil"})["hits"][0]["title"] == "new"
        assert "nothing to do" in dualwall(house, "nightly", "--if-older", "1h").stderr
        with served.http(None) as http:
            assert 'dualwall_nights_total{status="done"} 3.0' in http.get("/metrics").text


def test_a_missed_night_is_run_at_once_and_not_again(house: House) -> None:
    text = house.settings_file.read_text()
    house.settings_file.write_text(text.replace('schedule = ""', 'schedule = "50 2 * * *"'))
    with serving(house) as served:
        assert until_logged(served, "night")["status"] == "done"
        assert served.tool("status", {})["last_success"]
    with serving(house) as again:
        wait_ready(again)
        time.sleep(2.5)
        assert not events(again, "night")


def test_a_night_puts_itself_off_while_another_process_writes(house: House) -> None:
    text = house.settings_file.read_text()
    house.settings_file.write_text(text.replace('schedule = ""', 'schedule = "* * * * *"'))
    with lock.hold(house.settings, "sync"), serving(house) as served:
        assert "dualwall sync" in str(until_logged(served, "night put off")["reason"])
        assert served.tool("search", {"query": "oven hinge"})["status"] == "hit"


def test_stopping_ends_a_night_which_goes_on_the_next_time(house: House) -> None:
    house.furnish(
        {f"many/note {n}.md": "".join(f"# {w}\nWords of {n} {w}.\n\n" for w in range(20)) for n in range(120)}
    )
    with serving(house) as served:
        wait_ready(served)
        command = [sys.executable, "-m", "dualwall.cli", "nightly", "--config", str(house.settings_file)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as night:
            time.sleep(2)
            served.process.terminate()
            assert served.process.wait(40) == 0
            _, said = night.communicate(timeout=60)
        assert night.returncode in {0, 5}
        assert "Traceback" not in said
    assert dualwall(house, "nightly").returncode == 0
    assert house.verify()["differences"] == []


def test_a_killed_server_leaves_nothing_behind_that_stands_in_the_way(house: House) -> None:
    command = [
        sys.executable,
        "-m",
        "dualwall.cli",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--config",
        str(house.settings_file),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as killed:
        assert killed.stdout is not None
        killed.stdout.readline()
        killed.kill()
    with serving(house) as served:
        wait_ready(served)
        assert served.tool("search", {"query": "oven hinge"})["status"] == "hit"


def test_ctrl_c_is_a_graceful_stop_too(house: House) -> None:
    with serving(house) as served:
        wait_ready(served)
        served.process.send_signal(signal.SIGINT)
        assert served.process.wait(30) == 0


def test_a_server_in_the_background_makes_way_for_one_that_a_person_starts(house: House) -> None:
    command = [sys.executable, "-m", "dualwall.cli", "serve", "--background", "--config", str(house.settings_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as background:
        for _ in range(300):
            holder = lock.owner(house.settings)
            if holder is not None and holder.socket:
                break
            time.sleep(0.1)
        else:
            raise AssertionError("no owner")
        assert holder.command == BACKGROUND
        with serving(house) as served:
            assert background.wait(30) == 0
            assert background.stdout is not None
            assert background.stdout.read() == ""
            assert served.tool("search", {"query": "oven hinge"})["status"] == "hit"


@pytest.mark.parametrize("where", ["0.0.0.0:0", "[::]:0", "10.0.0.1:8377"])
def test_beyond_localhost_it_listens_only_when_a_reader_has_a_token(house: House, where: str) -> None:
    text = house.settings_file.read_text()
    house.settings_file.write_text(re.sub(r"token_sha256 = .*\n", "", text))
    done = dualwall(house, "serve", "--listen", where)
    assert (done.returncode, done.stdout) == (2, "")
    assert "No reader has a token" in done.stderr
    assert "dualwall token me --write" in done.stderr


def test_with_a_token_it_listens_beyond_localhost_and_still_asks_for_it(house: House) -> None:
    with serving(house, "--listen", "0.0.0.0:0") as served:
        port = served.url.rpartition(":")[2]
        served.url = f"http://127.0.0.1:{port}"
        with served.http(None) as http:
            assert http.get("/api/v1/status").status_code == 401
        with served.http() as http:
            assert http.get("/api/v1/status").status_code == 200
            assert http.get("/api/v1/status", headers={"Host": "nas.local"}).status_code == 421


def test_without_any_token_it_says_how_to_make_one(house: House) -> None:
    text = house.settings_file.read_text()
    house.settings_file.write_text(re.sub(r"token_sha256 = .*\n", "", text))
    with serving(house) as served:
        assert "dualwall token me" in json.dumps(until_logged(served, "no reader has a token: nobody can ask over TCP"))
        with served.http() as http:
            assert http.get("/api/v1/status").status_code == 401


@pytest.mark.parametrize("where", ["nowhere", "127.0.0.1:99999", "127.0.0.1"])
def test_a_place_that_is_none_is_exit_2(house: House, where: str) -> None:
    done = dualwall(house, "serve", "--listen", where)
    assert (done.returncode, done.stdout) == (2, "")


def test_a_port_that_is_taken_is_said(house: House) -> None:
    with serving(house) as served:
        other = furnished(house.folder / "other", house.url)
        done = dualwall(other, "serve", "--listen", served.url.removeprefix("http://"))
        assert (done.returncode, done.stdout) == (1, "")
        assert "cannot be listened on" in done.stderr
        assert "--listen 127.0.0.1:0" in done.stderr


def test_a_palace_that_cannot_be_opened_is_not_ready_and_says_why(house: House) -> None:
    (house.settings.store / "catalogue.sqlite").write_bytes(b"no database" * 1000)
    with serving(house) as served:
        said = until_logged(served, "not warm")
        assert "catalogue.sqlite" in str(said["message"])
        with served.http() as http:
            assert http.get("/readyz").status_code == 503
            assert http.get("/healthz").status_code == 200
            answer = http.post("/api/v1/search", json={"query": "oven"})
            assert answer.status_code in {500, 503}
            assert answer.headers["content-type"] == "application/problem+json"
            assert http.get("/metrics").status_code == 200
