"""The files beside the program: the one-liner, run by a real shell with a real rsync, and the two timetables."""

import configparser
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from sync import mirror
from sync.filters import Filters
from tests.flows.sync_rig import Rig, everything, files, needs_rsync, script
from tests.support import ROOT

SCRIPT = ROOT / "sync/sync_vault.sh"
SERVICE = ROOT / "sync/systemd/dualwall-nightly.service"
TIMER = ROOT / "sync/systemd/dualwall-nightly.timer"
CRONTAB = ROOT / "sync/crontab"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = Rig(tmp_path)
    rig.notes(30)
    rig.write(**{"new\nline.md": "x", ".obsidian/app.json": "{}", ".obsidian/x.json": "{}", ".trash/x.md": ""})
    return rig


def run(rig: Rig, *options: str, source: str = "", **environment: str) -> "subprocess.CompletedProcess[str]":
    arguments = [str(SCRIPT), source or str(rig.vault), str(rig.mirror), *options]
    return subprocess.run(
        arguments, capture_output=True, text=True, check=False, errors="replace", env={**os.environ, **environment}
    )


@needs_rsync
def test_the_one_liner_mirrors_and_follows(rig: Rig) -> None:
    before = everything(rig.vault)
    assert run(rig).returncode == 0
    assert everything(rig.vault) == before
    assert files(rig.mirror) == files(rig.vault)
    assert [path.name for path in (rig.mirror / ".obsidian").iterdir()] == ["app.json"]
    (rig.vault / "note 1.md").unlink()
    assert run(rig, "--checksum").returncode == 0
    assert files(rig.mirror) == files(rig.vault)
    assert (rig.mirror / "note 2.md").stat().st_mode & 0o222 == 0


@needs_rsync
def test_the_one_liner_is_guarded(rig: Rig) -> None:
    run(rig)
    before = everything(rig.mirror)
    for n in range(25):
        (rig.vault / f"note {n}.md").unlink()
    found = run(rig)
    assert found.returncode == 4
    assert "25 of 31 notes are gone" in found.stderr
    shutil.rmtree(rig.vault)
    assert run(rig).returncode == 6
    rig.vault.mkdir()
    found = run(rig)
    assert (found.returncode, "holds no notes any more" in found.stderr) == (4, True)
    assert everything(rig.mirror) == before
    assert run(rig, MAX_LOSS="31").returncode == 0
    assert files(rig.mirror) == {}


@needs_rsync
def test_the_one_liner_reaches_other_machines(rig: Rig, tmp_path: Path) -> None:
    ssh = script(tmp_path / "ssh", '[ "$1" = -l ] && shift 2; shift; exec sh -c "$*"')
    assert run(rig, source=f"me@host:{rig.vault}", RSYNC_RSH=str(ssh)).returncode == 0
    assert files(rig.mirror) == files(rig.vault)
    found = run(rig, source=f"me@host:{tmp_path}/nowhere", RSYNC_RSH=str(ssh))
    assert found.returncode == 6
    assert files(rig.mirror) == files(rig.vault)


def test_the_one_liner_keeps_vault_and_mirror_apart(rig: Rig) -> None:
    before = everything(rig.vault)
    for source, target in ((rig.vault, rig.vault), (rig.root, rig.vault), (rig.vault, rig.root)):
        found = subprocess.run([SCRIPT, source, target], capture_output=True, check=False)
        assert found.returncode == 2
    assert subprocess.run([SCRIPT], capture_output=True, check=False).returncode == 2
    assert everything(rig.vault) == before


def test_the_one_liner_has_the_options_of_the_program() -> None:
    text = SCRIPT.read_text(encoding="utf-8")
    block = text[text.index("set -- \\") : text.index('"$@"\ncase')]
    options = [quoted or plain for quoted, plain in re.findall(r"'(--[^']*)'|(--[a-z0-9][^\s']*)", block)]
    assert options == [*mirror.OPTIONS, *(f"--filter={rule}" for rule in Filters().rules())]
    assert mirror.SUB_SECONDS in text


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck")
def test_the_one_liner_is_clean() -> None:
    subprocess.run(["shellcheck", SCRIPT], check=True)


def test_the_timer_is_in_utc_and_makes_up_for_what_was_missed() -> None:
    timer = configparser.ConfigParser(interpolation=None, allow_no_value=True)
    timer.optionxform = str  # type: ignore[assignment,method-assign]
    timer.read_string(TIMER.read_text(encoding="utf-8"))
    assert timer["Timer"]["OnCalendar"].endswith(" UTC")
    assert timer["Timer"]["Persistent"] == "yes" or timer["Timer"].getboolean("Persistent")
    assert "RandomizedDelaySec" in timer["Timer"]


def test_both_timetables_run_the_same_command() -> None:
    crontab = CRONTAB.read_text(encoding="utf-8")
    assert "CRON_TZ=UTC" in crontab
    assert "nightly --if-older 23h" in crontab
    assert "nightly --if-older 23h" in SERVICE.read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_systemd_reads_the_calendar() -> None:
    found = re.search(r"OnCalendar=(.*)", TIMER.read_text(encoding="utf-8"))
    assert found is not None
    subprocess.run(["systemd-analyze", "calendar", found[1]], check=True, capture_output=True)
