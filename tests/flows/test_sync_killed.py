"""Killed runs: the mirror never holds a half note under a note's name, and the next run completes it."""

import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from sync.run import sync
from tests.flows.sync_rig import Rig, everything, files, in_process, needs_rsync, script

pytestmark = needs_rsync


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = Rig(tmp_path)
    rig.notes(200)
    for n in range(20):
        (rig.vault / f"big {n}.md").write_bytes(bytes([65 + n]) * 500_000)
    return rig


def slow_rsync(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten megabytes of notes take about a second and a half."""
    slow = f'case "$*" in *--dry-run*) ;; *) set -- --bwlimit=6000 "$@" ;; esac; exec {shutil.which("rsync")} "$@"'
    script(rig.root / "bin/rsync", slow)
    monkeypatch.setenv("PATH", f"{rig.root}/bin:{os.environ['PATH']}")


def wait_for_a_copy_in_the_making(rig: Rig) -> None:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        if any(rig.mirror.glob(".big*")):
            return
        time.sleep(0.005)
    pytest.fail("rsync did not start")


@pytest.mark.slow
def test_a_run_killed_with_its_rsync_is_completed_by_the_next(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        slow_rsync(rig, patch)
        process = in_process(rig)
        wait_for_a_copy_in_the_making(rig)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert any(rig.mirror.glob(".big*")), "rsync's temporary file is left, and hidden"
    assert files(rig.mirror).items() <= files(rig.vault).items()
    sync(rig.settings, "main")
    assert files(rig.mirror) == files(rig.vault)
    assert not any(rig.mirror.glob(".big*"))


@pytest.mark.slow
def test_the_orphaned_rsync_of_a_killed_run_is_waited_for(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    slow_rsync(rig, monkeypatch)
    process = in_process(rig)
    wait_for_a_copy_in_the_making(rig)
    process.kill()
    process.wait()
    sync(rig.settings, "main")
    assert files(rig.mirror) == files(rig.vault)
    assert not any(rig.mirror.glob(".big*"))


@pytest.mark.slow
@pytest.mark.parametrize("way", ["rsync", "copy"])
def test_killed_at_any_moment(rig: Rig, way: str) -> None:
    rig.add("main", str(rig.vault), mirror=way)
    rng = random.Random(7)
    for turn in range(12):
        rig.write(**{f"note {n}.md": f"Turn {turn}." for n in rng.sample(range(200), 60)})
        for n in rng.sample(range(200), 15):
            (rig.vault / f"note {n}.md").unlink(missing_ok=True)
        before = everything(rig.vault)
        process = in_process(rig)
        time.sleep(rng.uniform(0.1, 0.45))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for path, text in files(rig.mirror).items():
            assert path.startswith("note") or len(text) == 500_000
        sync(rig.settings, "main")
        assert files(rig.mirror) == files(rig.vault)
        assert everything(rig.vault) == before
