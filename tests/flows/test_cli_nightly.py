"""From a vault to an answer through the command line alone: nightly, the askers, exit codes, and two runs at once."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dualwall import cli, client, questions
from palace import lock
from palace.configuration import load
from palace.errors import Exit
from tests.embeddings import DIMENSIONS

pytestmark = pytest.mark.slow

NOTES = {
    "Home.md": "# Home\n\nStart at [[Oven]] or [[Nowhere]].\n",
    "areas/Bakery/Oven.md": "---\ntags: [bakery/heat]\naliases: [Big oven]\n---\n# Oven\n\nThe left back corner burns at 240 degrees.\n",
    "areas/Garden/番茄.md": "# 番茄\n\n五月十日以前不要移栽番茄。 #菜园\n",
    "projects/Robot/Wheels.md": "# Wheels\n\n## Motors\n\nThe motors are from an old printer. See [[Big oven]].\n",
    "daily/2026-03-05.md": "Rain. The robot stayed in the shed.\n",
    "Agents/scout/SOUL.md": "# Scout\n\nNever order walnuts.\n",
    "Agents/scout/memory/2026-03-05.md": "Mei asked about walnuts for the market.\n",
    "Agents/scout/scratch.md": "no glob names this\n",
    ".obsidian/daily-notes.json": '{"folder": "daily", "format": "YYYY-MM-DD"}',
}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    for name, text in NOTES.items():
        file = tmp_path / "vault" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        os.utime(file, (1_770_000_000, 1_770_000_000))
    return tmp_path / "vault"


@pytest.fixture
def config(tmp_path: Path, vault: Path, embeddings_url: str) -> Path:
    file = tmp_path / "dualwall.toml"
    file.write_text(
        f"""
data = "data"
[vaults.main]
source = "{vault.name}"
exclude = ["Agents/**"]
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
url = "{embeddings_url}"
model = "test"
dimensions = {DIMENSIONS}
"""
    )
    return file


Ask = Callable[..., Any]


@pytest.fixture
def ask(config: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> Ask:
    """Run a command with --json; its exit code must be the expected one."""

    def run(*arguments: str, code: int = 0) -> Any:  # noqa: ANN401 - whatever the command says
        capfdbinary.readouterr()
        found = cli.run([*arguments, "--config", str(config), "--json"])
        out, err = capfdbinary.readouterr()
        assert found == code, err.decode()
        return json.loads(out) if out else err.decode()

    return run


def digest(folder: Path) -> dict[str, tuple[str, int]]:
    files = (file for file in sorted(folder.rglob("*")) if file.is_file())
    return {str(f): (hashlib.sha256(f.read_bytes()).hexdigest(), f.stat().st_mtime_ns) for f in files}


def test_a_night_and_the_questions_after_it(ask: Ask, vault: Path) -> None:
    before = digest(vault)
    night = ask("nightly")
    assert (night["status"], night["generation"], night["problems"]) == ("done", 1, [])
    assert [step["name"] for step in night["steps"]] == ["sync main", "librarian", "ingest", "calibrate", "verify"]
    ingest = night["steps"][2]["counts"]
    assert set(ingest) == {"new", "changed", "rooms_only", "moved", "touched", "gone", "chunks", "embedded"}
    assert (ingest["new"], ingest["embedded"]) == (7, ingest["chunks"])

    found = ask("search", "where does the oven burn?")
    assert set(found) == {"status", "fallback", "reason", "hits", "elsewhere", "hints", "receipt"}
    hit = found["hits"][0]
    assert (hit["path"], hit["cube"]) == ("areas/Bakery/Oven.md", "global")
    data = (vault / hit["path"]).read_bytes()
    assert hit["note_sha256"] == hashlib.sha256(data).hexdigest()
    first, last = hit["lines"]
    assert hit["text"].strip() in "\n".join(data.decode().split("\n")[first - 1 : last])
    assert found["receipt"]["dense_share"] == 1.0

    rooms = ask("rooms")["rooms"]
    assert {(room["wing"], room["room"]) for room in rooms} >= {
        ("areas", "bakery"),
        ("bakery", "heat"),
        ("daily", "daily"),
    }
    assert {room["cube"] for room in rooms} == {"global"}
    assert ask("read", hit["ref"])["text"] == data.decode()
    for name in ("areas/Bakery/Oven.md", "Big oven", "oven"):
        assert ask("read", name, "--lines", "5-7")["ref"] == hit["ref"]
    around = ask("neighbors", "Oven")
    assert [other["path"] for other in around["backlinks"]] == ["Home.md"]
    assert around["unresolved"] == []
    assert ask("status")["pending"] == 0
    states = {file["path"]: file["state"] for file in ask("status", "--files")["files"]}
    assert states["Home.md"] == "indexed"
    assert states["Agents/scout/scratch.md"] == "skipped"
    assert ask("verify")["differences"] == []
    assert digest(vault) == before


def test_the_walls_hold_at_the_command_line(ask: Ask) -> None:
    ask("nightly")
    mine = ask("search", "walnuts for the market", "--as", "scout")
    assert mine["hits"][0]["cube"] == "scout"
    others = ask("search", "walnuts for the market")
    assert {hit["cube"] for hit in others["hits"]} <= {"global"}
    ref = mine["hits"][0]["ref"]
    assert ask("read", ref, "--as", "scout")["cube"] == "scout"
    assert "no note" in ask("read", ref, code=Exit.FAILED)
    assert "no note" in ask("neighbors", ref, code=Exit.FAILED)
    assert "Did you mean scout?" in ask("search", "x", "--as", "scot", code=Exit.USAGE)


def test_what_changes_from_night_to_night(ask: Ask, vault: Path) -> None:
    ask("nightly")
    again = ask("nightly")
    assert again["generation"] == 1
    assert not any(again["steps"][2]["counts"].values())
    (vault / "areas/Bakery/Oven.md").write_text("# Oven\n\nIt was repaired. #bakery/heat\n")
    (vault / "Home.md").unlink()
    (vault / "projects/Robot/Wheels.md").rename(vault / "projects/Wheels.md")
    (vault / "bad.md").write_bytes(b"\xff\xfe\x00half")
    night = ask("nightly", code=Exit.PROBLEMS)
    counts = night["steps"][2]["counts"]
    assert (counts["changed"], counts["gone"], counts["moved"]) == (1, 1, 1)
    assert (night["status"], [problem["path"] for problem in night["problems"]]) == ("problems", ["bad.md"])
    assert ask("verify")["differences"] == []


def test_a_dry_run_does_nothing(ask: Ask, config: Path) -> None:
    ask("nightly", "--dry-run")
    data = config.parent / "data"
    assert not (data / "palace" / "current").exists()
    assert not list((data / "mirror").glob("main/*"))


def test_a_young_success_is_enough(ask: Ask) -> None:
    ask("nightly")
    assert ask("nightly", "--if-older", "20h")["steps"] == []
    time.sleep(1.1)
    assert len(ask("nightly", "--if-older", "0m")["steps"]) == 4


def test_an_emptied_vault_deletes_nothing_and_stops_no_other(ask: Ask, config: Path, vault: Path) -> None:
    for number in range(30):
        (vault / f"note {number}.md").write_text(f"Note number {number}.\n")
    (config.parent / "second").mkdir()
    (config.parent / "second" / "Lone.md").write_text("The lighthouse keeper counts gulls.\n")
    config.write_text(config.read_text() + '[vaults.second]\nsource = "second"\n')
    ask("nightly")
    shutil.rmtree(vault)
    assert ask("nightly", code=Exit.UNREACHABLE)["problems"][0]["path"] == "vault:main"
    vault.mkdir()
    (config.parent / "second" / "New.md").write_text("A new gull.\n")
    night = ask("nightly", code=Exit.GUARD)
    assert night["status"] == "stopped"
    assert "--accept-loss" in night["problems"][0]["hint"]
    assert night["steps"][1]["name"] == "sync second"
    assert night["steps"][3]["counts"]["new"] == 1
    assert ask("search", "where does the oven burn?")["hits"][0]["path"] == "areas/Bakery/Oven.md"


def test_two_nights_at_once(ask: Ask, config: Path) -> None:
    with lock.hold(load(config), "nightly"):
        said = ask("nightly", code=Exit.BUSY)
    assert f"process {os.getpid()}" in said
    assert "since" in said


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # httpcore leaves a refused socket open
def test_questions_while_another_process_ingests(ask: Ask, config: Path, vault: Path) -> None:
    ask("nightly")
    for number in range(150):
        (vault / f"note {number}.md").write_text(f"# Number {number}\n\n" + f"Sentence {number} of many. " * 30)
    command = [sys.executable, "-m", "dualwall.cli", "nightly", "--config", str(config), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as night:
        settings, answered = load(config), 0
        while night.poll() is None:
            owner = lock.owner(settings)
            if owner is not None and owner.socket:
                found = client.ask(settings, questions.search("where does the oven burn?"), "me")
                assert found["hits"][0]["path"] == "areas/Bakery/Oven.md"
                answered += 1
            time.sleep(0.1)
        assert night.returncode == 0
    assert answered > 0
    assert ask("read", "note 149")["path"] == "note 149.md"


def test_many_searches_at_once_without_an_owner(ask: Ask, config: Path) -> None:
    ask("nightly")
    settings = load(config)
    found: list[str] = []

    def search() -> None:
        answer = client.ask(settings, questions.search("oven"), "me")
        found.append(answer["hits"][0]["path"])

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["areas/Bakery/Oven.md"] * 4
