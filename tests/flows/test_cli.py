"""The command line's frame: help, exit codes, and the one border where errors become words."""

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest

from dualwall import cli, output, tour
from dualwall.nightly import Night, Step, _age
from palace.configuration import load
from palace.errors import DualwallError, Exit, UsageError
from palace.library import Library
from palace.progress import silent
from palace.settings import Settings
from palace.vocabulary import Problem


def test_help_imports_no_command() -> None:
    code = (
        "import sys\nfrom dualwall.cli import run\nrun(['--help'])\n"
        "print(sorted({'pydantic', 'fastapi', 'httpx', 'numpy', 'qdrant_edge', 'palace.settings'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("[]")
    assert "nightly" in done.stdout
    assert "tour" not in done.stdout


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_every_commands_help_ends_with_its_exit_codes(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([name, "--help"]) == 0
    shown = capsys.readouterr().out
    codes = [int(line.split()[0]) for line in shown.partition("Exit codes:\n")[2].splitlines()]
    assert codes == list(cli.COMMANDS[name].exits)
    command = cli.cli.get_command(click.Context(cli.cli), name)
    assert command is not None
    leaves = list(getattr(command, "commands", {}).values()) or [command]
    for leaf in leaves:
        flags = {flag for option in leaf.params for flag in option.opts}
        assert name == "tour" or {"--config", "--json"} <= flags


def test_a_wrong_command_is_told_what_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["serch", "x"]) == Exit.USAGE
    assert "Did you mean search?" in capsys.readouterr().err


def test_wrong_options_are_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["search"]) == Exit.USAGE
    assert cli.run(["search", "x", "--limit", "none"]) == Exit.USAGE
    assert "Traceback" not in capsys.readouterr().err


def test_faulty_settings_are_two_and_one_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "dualwall.toml"
    file.write_text('data = "data"\ncolour = 1\n')
    for command in (
        ["search", "x"],
        ["rooms"],
        ["nightly"],
        ["doctor"],
        ["status"],
        ["sync"],
        ["librarian", "build"],
        ["ingest"],
    ):
        assert cli.run([*command, "--config", str(file)]) == Exit.USAGE
        shown = capsys.readouterr()
        assert f"{file}:2: colour: unknown key." in shown.err
        assert shown.out == ""
    assert list(tmp_path.iterdir()) == [file]


def test_every_error_has_its_code_and_its_hint(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for error, code, words in (
        (DualwallError("It broke.", "Mend it."), Exit.FAILED, "dualwall: It broke.\n  Mend it.\n"),
        (KeyboardInterrupt(), cli.INTERRUPTED, "run the same command again"),
        (OSError(28, "No space left on device", "/data/x"), Exit.FAILED, "No space left on device (/data/x)"),
    ):
        monkeypatch.setitem(cli.COMMANDS, "raise", cli.Entry(__name__, "raising", "Raise.", (0,)))
        RAISED[:] = [error]
        assert cli.run(["raise"]) == code
        assert words in capsys.readouterr().err


RAISED: list[BaseException] = []


@click.command()
def raising() -> None:
    """Raise what the test wants."""
    raise RAISED[0]


def test_init_then_doctor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes").mkdir()
    file = tmp_path / "dualwall.toml"
    arguments = ["init", str(tmp_path / "notes"), "--config", str(file), "--data", str(tmp_path / "data")]
    assert cli.run(arguments) == 0
    assert f"dualwall nightly --config {file}" in capsys.readouterr().out
    assert cli.run(arguments) == Exit.USAGE
    capsys.readouterr()
    assert cli.run(["doctor", "--config", str(file), "--json"]) in {0, 1}
    checks = {check["name"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert checks["vault main"]["state"] == "ok"
    assert checks["hardlinks"]["state"] == "ok"
    assert checks["stores"]["state"] == "warn"
    assert all(check["mend"] for check in checks.values() if check["state"] != "ok")
    (tmp_path / "notes").rmdir()
    assert cli.run(["doctor", "--config", str(file)]) == Exit.UNREACHABLE
    assert "Is its disk mounted?" in capsys.readouterr().out


def test_parse_prints_one_object_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    ---
    aliases: [Other]
    weight: .inf
    ---
    # Head #One #two
    Text #one with ![[Page#a#b|shown]].
    """
    note = tmp_path / "n.md"
    lines = (test_parse_prints_one_object_a_file.__doc__ or "").strip().splitlines()
    note.write_text("\n".join(line.strip() for line in lines) + "\n")
    assert cli.run(["parse", str(note), str(note), "--json"]) == 0
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(objects) == 2
    assert objects[0]["tags"] == ["One", "two"]
    assert objects[0]["aliases"] == ["Other"]
    assert objects[0]["properties"]["weight"] == ".inf"
    assert objects[0]["links"] == [
        {
            "link": "Page#a#b",
            "target": "Page",
            "heading": "a#b",
            "block": None,
            "alias": "shown",
            "embed": True,
            "line": 6,
        }
    ]
    assert set(objects[0]) == {"path", "tags", "aliases", "properties", "headings", "links", "problems"}
    assert cli.run(["parse", str(note)]) == 0
    assert "embed      Page#a#b shown as shown  (line 6)" in capsys.readouterr().out
    assert cli.run(["parse", str(tmp_path / "none.md")]) == Exit.FAILED


def test_the_worst_of_a_night_is_its_exit_code(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path)
    night = Night(settings, Library(settings), silent)
    assert (night.exit, night.as_json()["status"]) == (Exit.DONE, "done")
    night.trouble([Problem("a.md", 3, "code", "wrong", "mend"), Problem("a.md", 3, "code", "wrong", "mend")])
    assert len(night.problems) == 1
    assert (night.exit, night.as_json()["status"]) == (Exit.PROBLEMS, "problems")
    night.exits.add(Exit.UNREACHABLE)
    assert night.exit == Exit.UNREACHABLE
    night.exits.add(Exit.GUARD)
    assert (night.exit, night.as_json()["status"]) == (Exit.GUARD, "stopped")


def test_ages() -> None:
    assert _age("20h") == timedelta(hours=20)
    assert _age("2 d") == timedelta(days=2)
    assert _age(None) is None
    with pytest.raises(UsageError, match="20h"):
        _age("soon")
    assert str(Step("ingest", 1.25, {"rooms_only": 2, "new": 0})) == "ingest            1.2 s  rooms only 2"


def test_the_tour_keeps_settings_of_other_vaults(tmp_path: Path) -> None:
    vaults = [tmp_path / "a" / "notes", tmp_path / "b" / "notes"]
    for vault in vaults:
        vault.mkdir(parents=True)
    home = tmp_path / ".dualwall"
    first = load(tour.settle(home, vaults[0], example=False))
    config = tour.settle(home, vaults[1], example=False)
    second = load(config)
    assert first.data != second.data
    assert second.vaults["main"].source == str(vaults[1])
    config.write_text(config.read_text() + "\n# mine\n")
    tour.settle(home, vaults[0], example=False)
    assert load(config).data == first.data
    assert tour.settle(home, vaults[1], example=False) == config
    assert config.read_text().endswith("# mine\n")


ANSWER = {
    "status": "hit", "fallback": True, "reason": 'There is no room "gardn".', "hints": ["Try Garden."],
    "hits": [{
        "ref": "r", "title": "Oven", "vault": "main", "path": "areas/Oven.md", "cube": "global", "wings": ["areas"],
        "rooms": ["areas/bakery"], "heading": "Curve", "lines": [10, 18], "text": "one\n" * 9, "score": 0.91,
        "legs": {"bm25": 0.4, "dense": 0.8}, "note_sha256": "ab" * 32, "chunk_sha256": "cd" * 32, "status": "active",
        "trust": "owner", "stale": False,
    }],
    "elsewhere": [{"ref": "e", "title": "Loaf", "rooms": ["areas/bread"], "score": 0.99}],
    "receipt": {
        "time": datetime(2026, 1, 1, tzinfo=UTC).isoformat(), "reader": "me", "cubes": ["global"],
        "asked": {"rooms": ["gardn"], "wings": []}, "searched": {"rooms": [], "wings": []}, "fallback": True,
        "legs": {"bm25": 3}, "floors": {"strength": -1.5}, "generation": 2, "model": "m", "dense_share": 0.25,
    },
}  # fmt: skip


def test_an_answer_for_people_can_be_cited() -> None:
    shown = click.unstyle(output.answer(ANSWER, explain=False))
    assert "1. Oven  › Curve" in shown
    assert "areas/Oven.md:10-18  in areas/bakery" in shown
    assert "sha256 abababababab" in shown
    assert 'There is no room "gardn".' in shown
    assert "Loaf  in areas/bread" in shown
    assert "25% of the dense vectors are there" in shown
    assert "…" in shown
    explained = click.unstyle(output.answer(ANSWER, explain=True))
    assert "bm25 0.4" in explained
    assert "floors strength -1.5" in explained
