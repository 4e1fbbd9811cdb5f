"""Rules of the server: when a night is due, who may come by which name, how often, and whose a token is."""

import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dualwall import cli, tokens
from dualwall.schedule import due
from dualwall.web import hosts
from dualwall.web.logs import JsonLines
from dualwall.web.rates import Rates
from palace.configuration import load
from palace.errors import SettingsError, UsageError
from palace.settings import ReaderEntry

NIGHTLY = "50 2 * * *"
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)
SETTINGS = """# Mine.
data = "data"
[vaults.main]
source = "vault"
[readers.me]
cubes = ["global"]  # everybody's
# token_sha256 = "…"

[readers.other]
cubes = ["global"]
"""


@pytest.mark.parametrize(
    "last",
    [
        None,
        NOON - timedelta(hours=10),
        NOON - timedelta(days=40),
        NOON + timedelta(days=1),
        datetime(2026, 11, 30, 2, 49, 59, tzinfo=UTC),
        datetime(2026, 11, 30, 10, 49, tzinfo=ZoneInfo("Asia/Shanghai")),
    ],
)
def test_a_night_is_due_when_its_time_has_passed_since_the_last_success(last: datetime | None) -> None:
    assert due(NIGHTLY, last, NOON)
    assert not due("", last, NOON)


@pytest.mark.parametrize(
    "last",
    [
        NOON,
        NOON - timedelta(hours=9),
        datetime(2026, 11, 30, 2, 50, tzinfo=UTC),
        datetime(2026, 11, 30, 10, 51, tzinfo=ZoneInfo("Asia/Shanghai")),
    ],
)
def test_no_night_is_due_until_the_next_one(last: datetime) -> None:
    assert not due(NIGHTLY, last, NOON)


@given(st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31)), st.integers(0, 3 * 86_400))  # noqa: DTZ001 - made aware below
def test_every_day_has_one_night_whatever_the_clocks_of_the_place(start: datetime, seconds: int) -> None:
    last = start.replace(tzinfo=UTC)
    now = last + timedelta(seconds=seconds)
    begun = [last.replace(hour=2, minute=50, second=0, microsecond=0) + timedelta(days=day) for day in range(-1, 5)]
    assert due(NIGHTLY, last, now) is any(last < at <= now for at in begun)


@pytest.mark.parametrize("schedule", ["50 25 * * *", "nightly", "* * *", "0 0 31 2 *"])
def test_a_schedule_that_is_none_is_a_fault_of_the_settings(tmp_path: Path, schedule: str) -> None:
    file = tmp_path / "dualwall.toml"
    file.write_text(f'{SETTINGS}\n[serve]\nschedule = "{schedule}"\n')
    with pytest.raises(SettingsError, match=r"serve\.schedule: is no time"):
        load(file)


@pytest.mark.parametrize("listen", ["", "8377", "localhost", "localhost:", ":8377", "a b:1", "http://x:1"])
def test_a_place_to_listen_that_is_none_is_a_fault_of_the_settings(tmp_path: Path, listen: str) -> None:
    file = tmp_path / "dualwall.toml"
    file.write_text(f'{SETTINGS}\n[serve]\nlisten = "{listen}"\n')
    with pytest.raises(SettingsError, match=r"serve\.listen"):
        load(file)


def test_addresses() -> None:
    assert hosts.address("127.0.0.1:0") == ("127.0.0.1", 0)
    assert hosts.address("[::1]:8377") == ("::1", 8377)
    assert all(map(hosts.is_local, ("localhost", "127.0.0.5", "::1")))
    assert not any(map(hosts.is_local, ("", "0.0.0.0", "::", "10.0.0.1", "nas.local", "localhost.example")))  # noqa: S104


@pytest.mark.parametrize("wrong", ["", "host", ":1", "host:", "host:x", "host:70000", "host:-1"])
def test_an_address_without_host_or_port_is_none(wrong: str) -> None:
    with pytest.raises(UsageError, match="is no HOST:PORT"):
        hosts.address(wrong)


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:8377", "[::1]:1", "10.1.2.3", "nas.local:1"]
)  # fmt: skip
def test_names_that_the_server_is_known_by(host: str) -> None:
    assert hosts.known_host(host, ["nas.local"])


@pytest.mark.parametrize(
    "host",
    [None, "", "evil.example", "localhost.evil.example", "nas.local.evil", "127.0.0.1.evil.example", "localhost@evil.example",
     "[::1", "a/../localhost"],
)  # fmt: skip
def test_names_that_it_is_not_known_by(host: str | None) -> None:
    assert not hosts.known_host(host, ["nas.local"])


@pytest.mark.parametrize("origin", [None, "http://localhost:6274", "https://nas.local", "http://10.1.2.3:8377"])
def test_pages_that_may_ask(origin: str | None) -> None:
    assert hosts.known_origin(origin, "10.1.2.3:8377", ["nas.local"])


@pytest.mark.parametrize(
    "origin", ["http://10.1.2.4:8377", "https://evil.example", "null", "", "file://localhost", "http://[::1"]
)
def test_pages_that_may_not(origin: str) -> None:
    assert not hosts.known_origin(origin, "10.1.2.3:8377", ["nas.local"])


def test_a_client_may_ask_at_once_what_it_may_in_a_minute_and_then_waits() -> None:
    rates = Rates(60)
    assert [rates.wait("a", 0.0) for _ in range(60)] == [0.0] * 60
    assert rates.wait("a", 0.0) == pytest.approx(1.0)
    assert rates.wait("b", 0.0) == 0.0
    assert rates.wait("a", 1.0) == 0.0
    assert rates.wait("a", 1.5) == pytest.approx(0.5)
    assert [rates.wait("a", 1000.0) for _ in range(61)][-1] > 0


def test_a_flood_of_clients_is_not_remembered_for_ever() -> None:
    rates = Rates(60)
    for number in range(25_000):
        assert rates.wait(str(number), number / 1000) == 0.0
    assert len(rates._left) <= 10_000


def test_a_token_is_its_readers_and_nobody_elses() -> None:
    token = tokens.make()
    readers = {
        "me": ReaderEntry(cubes=("global",)),
        "scout": ReaderEntry(cubes=("global",), token_sha256=tokens.digest(token)),
        "owl": ReaderEntry(cubes=("global",), token_sha256=tokens.digest("other")),
    }
    assert tokens.reader_of_token(readers, token) == "scout"
    for wrong in ("", tokens.digest(token), token[:-1], token + " ", token.upper(), "x" * 10_000, "é\ud800"):
        assert tokens.reader_of_token(readers, wrong) is None


def test_tokens_are_long_and_never_the_same() -> None:
    made = {tokens.make() for _ in range(100)}
    assert len(made) == 100
    assert all(len(token) >= 43 and token.startswith("dw_") for token in made)


def test_the_command_shows_a_token_once_and_keeps_its_hash(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "dualwall.toml"
    file.write_text(SETTINGS)
    file.chmod(0o640)
    assert cli.run(["token", "other", "--config", str(file)]) == 0
    shown = capfd.readouterr()
    token = shown.out.strip()
    assert f'token_sha256 = "{tokens.digest(token)}"' in shown.err
    assert file.read_text() == SETTINGS
    assert cli.run(["token", "me", "--config", str(file), "--write", "--json"]) == 0
    made = json.loads(capfd.readouterr().out)
    written = file.read_text()
    assert load(file).readers["me"].token_sha256 == made["token_sha256"] == tokens.digest(made["token"])
    assert made["token"] not in written
    assert "# Mine." in written
    assert "# everybody's" in written
    assert file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in tmp_path.iterdir()] == ["dualwall.toml"]


def test_the_command_knows_no_token_for_nobody(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "dualwall.toml"
    file.write_text(SETTINGS)
    assert cli.run(["token", "nobody", "--config", str(file)]) == 2
    assert capfd.readouterr().out == ""


def test_an_exceptions_message_stays_out_of_the_log() -> None:
    try:
        raise ValueError("a word of a note")  # noqa: TRY301 - it is what is logged
    except ValueError:
        record = logging.getLogger("x").makeRecord(
            "x", logging.ERROR, __file__, 1, "it failed", (), __import__("sys").exc_info(), extra={"data": {"n": 1}}
        )
    line = json.loads(JsonLines().format(record))
    assert (line["event"], line["error"], line["n"], line["level"]) == ("it failed", "ValueError", 1, "error")
    assert "a word of a note" not in json.dumps(line)
    assert "test_serving.py" in line["at"]
