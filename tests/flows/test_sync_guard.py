"""What must not empty a mirror: a source that is away, emptied, replaced, or that cannot be read. And what may."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from palace.errors import GuardError, UnreachableError
from sync.run import sync
from tests.flows.sync_rig import Rig, everything, files, needs_rsync, script, write

pytestmark = needs_rsync
WAYS = ("rsync", "copy")
NOBODY = 65534


@pytest.fixture(params=WAYS)
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Rig:
    rig = Rig(tmp_path)
    rig.add("main", str(rig.vault), mirror=request.param)
    return rig


def stopped(rig: Rig, error: type[Exception]) -> str:
    """The message of a sync that must stop and leave the mirror alone."""
    before = everything(rig.mirror)
    with pytest.raises(error) as caught:
        sync(rig.settings, "main")
    assert everything(rig.mirror) == before
    return str(caught.value)


def test_a_source_that_is_away_deletes_nothing(rig: Rig) -> None:
    rig.notes(3)
    sync(rig.settings, "main")
    rig.vault.rename(rig.root / "away")
    assert "Is its disk mounted" in stopped(rig, UnreachableError)


def test_a_source_that_is_a_file_deletes_nothing(rig: Rig) -> None:
    rig.notes(3)
    sync(rig.settings, "main")
    rig.vault.rename(rig.root / "away")
    rig.vault.write_text("not a folder")
    stopped(rig, UnreachableError)


def test_an_emptied_source_stops_however_small_it_was(rig: Rig) -> None:
    rig.notes(3)
    rig.write(**{"cat.png": "still there"})
    sync(rig.settings, "main")
    for note in rig.vault.glob("*.md"):
        note.unlink()
    message = stopped(rig, GuardError)
    assert "holds no notes any more" in message
    assert "dualwall sync --vault main --accept-loss 3" in message
    sync(rig.settings, "main", accept_loss=3)
    assert files(rig.mirror) == files(rig.vault)


def test_the_bare_mount_point_is_not_the_vault(rig: Rig) -> None:
    rig.notes(12)
    sync(rig.settings, "main")
    rig.vault.rename(rig.root / "disk")
    rig.vault.mkdir()
    stopped(rig, GuardError)
    # Some put a note there, so that people see what is missing.
    rig.write(**{"NOT MOUNTED.md": "Plug the disk in."})
    assert "is not known as the folder" in stopped(rig, GuardError)
    shutil.rmtree(rig.vault)
    (rig.root / "disk").rename(rig.vault)
    assert not sync(rig.settings, "main").changed


def test_a_restored_vault_is_another_folder_and_yet_the_vault(rig: Rig) -> None:
    rig.notes(12)
    sync(rig.settings, "main")
    shutil.copytree(rig.vault, rig.root / "restored")
    shutil.rmtree(rig.vault)
    (rig.root / "restored").rename(rig.vault)
    (rig.vault / "note 1.md").unlink()
    assert sync(rig.settings, "main").counts["deleted"] == 1


def test_settings_that_point_to_another_vault_stop(rig: Rig) -> None:
    rig.notes(12)
    sync(rig.settings, "main")
    write(rig.root / "other", {f"page {n}.md": "x" for n in range(12)})
    rig.add("main", str(rig.root / "other"))
    stopped(rig, GuardError)


@pytest.mark.parametrize(
    ("before", "gone", "stops"), [(30, 20, False), (30, 21, True), (150, 30, False), (150, 31, True)]
)
def test_more_than_a_fifth_and_more_than_twenty_notes(rig: Rig, before: int, gone: int, *, stops: bool) -> None:
    rig.notes(before)
    sync(rig.settings, "main")
    for n in range(gone):
        (rig.vault / f"note {n}.md").unlink()
    if stops:
        assert f"{gone} of {before} notes are gone" in stopped(rig, GuardError)
        with pytest.raises(GuardError):
            sync(rig.settings, "main", accept_loss=gone - 1)
    sync(rig.settings, "main", accept_loss=gone if stops else None)
    assert files(rig.mirror) == files(rig.vault)


def test_the_settings_set_the_guard(rig: Rig) -> None:
    way = rig.vaults["main"].mirror
    rig.add("main", str(rig.vault), mirror=way, guard={"share": 0, "notes": 1})
    rig.notes(10)
    sync(rig.settings, "main")
    for n in range(2):
        (rig.vault / f"note {n}.md").unlink()
    stopped(rig, GuardError)


def test_a_moved_folder_is_no_loss(rig: Rig) -> None:
    rig.notes(60, "old/")
    sync(rig.settings, "main")
    (rig.vault / "old").rename(rig.vault / "new")
    assert sync(rig.settings, "main").counts["deleted"] == 60
    assert files(rig.mirror) == files(rig.vault)


def test_emptied_notes_are_a_loss(rig: Rig) -> None:
    rig.notes(60)
    sync(rig.settings, "main")
    for note in list(rig.vault.glob("*.md"))[:40]:
        note.write_bytes(b"")
    stopped(rig, GuardError)


def test_a_lost_state_file_is_the_strict_side(rig: Rig) -> None:
    rig.notes(10)
    sync(rig.settings, "main")
    (rig.mirror.parent / ".state/main.json").write_text('{"source": 1')
    for n in range(6):
        (rig.vault / f"note {n}.md").unlink()
    stopped(rig, GuardError)
    rig.notes(3)
    sync(rig.settings, "main")
    assert files(rig.mirror) == files(rig.vault)


def test_a_guarded_run_in_dry(rig: Rig) -> None:
    rig.notes(3)
    sync(rig.settings, "main")
    shutil.rmtree(rig.vault)
    rig.vault.mkdir()
    with pytest.raises(GuardError):
        sync(rig.settings, "main", dry_run=True)


def test_a_disk_taken_out_between_looking_and_copying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(tmp_path)
    rig.notes(10)
    sync(rig.settings, "main")
    rig.write(**{"new.md": "Something to do."})
    before = files(rig.mirror)
    real = shutil.which("rsync")
    taken_out = f'case "$*" in *--dry-run*|*--version*) ;; *) rm -r {rig.vault}/* ;; esac; exec {real} "$@"'
    script(tmp_path / "bin/rsync", taken_out)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    result = sync(rig.settings, "main")
    assert [problem.code for problem in result.problems] == ["sync-deletions-late"]
    assert files(rig.mirror) == before
    stopped(rig, GuardError)


@contextmanager
def as_nobody() -> Iterator[None]:
    """Without the rights of root, which may read everything."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture(params=WAYS)
def shared_rig(request: pytest.FixtureRequest) -> Iterator[Rig]:
    """Below a folder that another user may enter, and owned by that user."""
    if sys.platform == "win32":
        pytest.skip("needs POSIX users")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o777)
        with as_nobody():
            rig = Rig(root / "rig")
            rig.add("main", str(rig.vault), mirror=request.param)
            rig.notes(4)
            rig.notes(4, "locked/")
        try:
            yield rig
        finally:
            for path in root.rglob("*"):
                if path.is_dir():
                    path.chmod(0o700)


def test_what_cannot_be_read_is_a_problem_and_keeps_its_mirror(shared_rig: Rig) -> None:
    rig = shared_rig
    with as_nobody():
        sync(rig.settings, "main")
        (rig.vault / "locked/note 1.md").unlink()
        rig.write(**{"note 2.md": "A new text.", "note 3.md": "Not to be read."})
        (rig.vault / "note 3.md").chmod(0)
        (rig.vault / "locked").chmod(0)
        result = sync(rig.settings, "main")
    mirrored = files(rig.mirror)
    assert {path for path in mirrored if path.startswith("locked/")} == {f"locked/note {n}.md" for n in range(4)}
    assert mirrored["note 2.md"] == b"A new text."
    assert mirrored["note 3.md"] == b"This is note 3 of .\n"
    assert {(problem.path, problem.code) for problem in result.problems} == {
        ("locked", "sync-unreadable"),
        ("note 3.md", "sync-unreadable"),
        ("", "sync-deletions-skipped"),
    }


def test_a_root_that_may_not_be_listed_deletes_nothing(shared_rig: Rig) -> None:
    rig = shared_rig
    with as_nobody():
        sync(rig.settings, "main")
        rig.vault.chmod(0)
        with pytest.raises(UnreachableError, match="Permission denied"):
            sync(rig.settings, "main")
        rig.vault.chmod(0o700)
    assert files(rig.mirror) == files(rig.vault)
