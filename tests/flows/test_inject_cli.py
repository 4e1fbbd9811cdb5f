"""`dualwall inject`: the same answer by itself, over the owner's socket, and as text for people."""

import json
from typing import Any

import httpx
import pytest

from dualwall import cli, output
from dualwall.client import owning
from dualwall.questions import READER_HEADER
from injector.recall import inject
from palace import lock
from palace.errors import Exit
from tests.flows.injecting import CANARIES, NOON, housed
from tests.house import House

TOLD = {
    "directive": "<d>\nRules.\n</d>",
    "recall": "<r>\nNotes.\n</r>",
    "receipt": {
        "reader": "scout",
        "rooms": ["system_config", "diary", "daily"],
        "included": [
            {"ref": "a", "channel": "directive", "tokens": 4, "note_sha256": "s"},
            {"ref": "b", "channel": "recall", "tokens": 5, "note_sha256": "t"},
        ],
        "left_out": [{"ref": "c", "reason": "too long"}, {"ref": None, "reason": "days: down"}],
        "tokens": 12,
        "late": True,
    },
}


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory, embeddings_url: str) -> House:
    house = housed(
        tmp_path_factory.mktemp("palace"), embeddings_url, vectors="edge", more="inject = { deadline_ms = 5000 }"
    )
    house.night()
    return house


def asked(house: House, capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = cli.run(["inject", "--config", str(house.settings_file), *arguments])
    return code, capfd.readouterr().out


def test_by_itself_and_over_the_socket_the_answer_is_the_same(house: House, capfd: pytest.CaptureFixture[str]) -> None:
    wanted = ("--as", "scout", "--message", "Why no lidar?", "--at", NOON, "--json")
    code, alone = asked(house, capfd, *wanted)
    assert code == Exit.DONE
    told: dict[str, Any] = json.loads(alone)
    assert CANARIES["scout"] in told["directive"]
    assert "daily/2026-11-02.md" in told["recall"]
    assert told["receipt"]["late"] is False
    with owning(house.settings, "nightly") as library:
        assert inject(library, "scout", "Why no lidar?", NOON, patient=True) == told  # warm from here on
        code, owned = asked(house, capfd, *wanted)
    assert (code, json.loads(owned)) == (Exit.DONE, told)


def test_the_default_reader_sees_no_agents_notes(house: House, capfd: pytest.CaptureFixture[str]) -> None:
    code, shown = asked(house, capfd, "--at", NOON, "--explain")
    assert code == Exit.DONE
    assert "daily/2026-11-30.md" in shown
    assert not any(canary in shown for canary in CANARIES.values())


@pytest.mark.parametrize("wrong", [("--as", "nobody"), ("--at", "soon"), ("--room", "diary")])
def test_wrong_use_is_exit_2(house: House, capfd: pytest.CaptureFixture[str], wrong: tuple[str, ...]) -> None:
    assert asked(house, capfd, *wrong) == (Exit.USAGE, "")


def test_for_people_the_receipt_says_what_and_why() -> None:
    plain = output.injection(TOLD, explain=False)
    assert plain.startswith("<d>\nRules.\n</d>\n\n<r>\nNotes.\n</r>\n\n")
    assert "Receipt: scout gets 2 entries of 12 tokens, 2 left out, late" in plain
    assert "too long" not in plain
    explained = output.injection(TOLD, explain=True)
    assert "directive  4 tokens  ref a" in explained
    assert "left out   too long  ref c" in explained
    assert explained.rstrip().endswith("left out   days: down")
    nothing = TOLD | {"directive": "", "recall": ""}
    assert output.injection(nothing, explain=False).startswith("Nothing goes before this response.")


def test_the_route_takes_the_contracts_body_and_nothing_else(house: House) -> None:
    with owning(house.settings, "nightly") as library:
        wanted = inject(library, "scout", "Why no lidar?", NOON, patient=True)
        owner = lock.owner(house.settings)
        assert owner is not None
        transport = httpx.HTTPTransport(uds=owner.socket)
        with httpx.Client(transport=transport, base_url="http://owner", headers={READER_HEADER: "scout"}) as http:
            answer = http.post("/api/v1/inject", json={"message": "Why no lidar?", "at": NOON})
            assert (answer.status_code, answer.json()) == (200, wanted)
            assert http.post("/api/v1/inject", json={"message": "x", "reader": "owl"}).status_code == 400
            assert http.post("/api/v1/inject", json={"message": None}).status_code == 400
            assert http.post("/api/v1/inject", json={"message": "x", "at": "soon"}).json()["exit_code"] == Exit.USAGE
            assert http.post("/api/v1/inject", json={"message": "x"}).json()["receipt"]["reader"] == "scout"
