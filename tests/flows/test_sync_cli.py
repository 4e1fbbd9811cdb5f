"""`dualwall sync` as people and scripts meet it."""

import json
import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from palace import lock
from palace.errors import BusyError
from sync.cli import command
from tests.flows.sync_rig import Rig, everything, files, needs_rsync, script

pytestmark = needs_rsync


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = Rig(tmp_path)
    rig.notes(4)
    lines = [
        'data = "data"',
        "[vaults.main]",
        'source = "vault"',
        "[vaults.away]",
        'source = "disk/away"',
        "[readers.me]",
        'cubes = ["global"]',
    ]
    (tmp_path / "dualwall.toml").write_text("\n".join(lines), encoding="utf-8")
    return rig


def run(rig: Rig, *arguments: str) -> Result:
    arguments = ("--config", str(rig.root / "dualwall.toml"), *arguments)
    return CliRunner().invoke(command, arguments, standalone_mode=False)


def test_one_vault(rig: Rig) -> None:
    result = run(rig, "--vault", "main")
    assert result.return_value == 0
    assert result.stdout.startswith("main: 4 copied (80 B), 0 deleted; 4 files, of them 4 notes")
    assert files(rig.mirror) == files(rig.vault)
    assert "nothing changed" in run(rig, "--vault", "main").stdout


def test_a_vault_that_fails_does_not_stop_the_others(rig: Rig) -> None:
    result = run(rig)
    assert result.return_value == 6
    assert "main: 4 copied" in result.stdout
    assert "away" in result.stderr
    assert "Is its disk mounted" in result.stderr
    assert files(rig.mirror) == files(rig.vault)


def test_json_is_one_object_whatever_happens(rig: Rig) -> None:
    result = run(rig, "--json")
    found = json.loads(result.stdout)
    assert found["status"] == "stopped"
    assert found["problems"] == []
    main, away = found["vaults"]
    assert (main["vault"], main["status"], main["error"]) == ("main", "done", None)
    assert main["counts"] == {"files": 4, "notes": 4, "changed": 4, "deleted": 0, "bytes": 80}
    assert (away["status"], away["counts"], away["error"]["exit"]) == ("stopped", None, 6)


def test_the_guard_has_an_exit_code_of_its_own(rig: Rig) -> None:
    run(rig, "--vault", "main")
    for note in rig.vault.iterdir():
        note.unlink()
    # The other vault's disk is away as well; the guard is the worse of the two.
    result = run(rig)
    assert result.return_value == 4
    assert "--accept-loss 4" in result.stderr
    assert run(rig, "--vault", "main", "--accept-loss", "4").return_value == 0
    assert files(rig.mirror) == {}


def test_a_dry_run_says_what_would_be(rig: Rig) -> None:
    assert "main: would be 4 copied" in run(rig, "--vault", "main", "--dry-run").stdout
    assert not rig.settings.data.exists()


def test_problems_have_an_exit_code_of_their_own(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    complain = f"""echo 'file has vanished: "{rig.vault}/no\\#012te.md"' >&2; exit 24"""
    real = shutil.which("rsync")
    script(
        rig.root / "bin/rsync", f'case "$*" in *--version*) exec {real} "$@" ;; *) {real} "$@" && {complain} ;; esac'
    )
    monkeypatch.setenv("PATH", f"{rig.root}/bin:{os.environ['PATH']}")
    result = run(rig, "--vault", "main")
    assert result.return_value == 3
    assert "no\\nte.md: It went away while the vault was read." in result.stderr
    [problem] = json.loads(run(rig, "--vault", "main", "--json").stdout)["problems"]
    assert list(problem) == ["path", "line", "code", "message", "hint"]
    assert problem["code"] == "sync-vanished"


def test_an_unknown_vault_is_wrong_usage(rig: Rig) -> None:
    before = everything(rig.root)
    result = run(rig, "--vault", "mian", "--dry-run")
    assert result.return_value == 2
    assert "Did you mean main?" in result.stderr
    assert everything(rig.root) == before


def test_one_process_writes(rig: Rig) -> None:
    with lock.hold(rig.settings, "nightly"):
        result = run(rig, "--vault", "main")
    assert isinstance(result.exception, BusyError)
    assert "dualwall nightly" in result.exception.message
