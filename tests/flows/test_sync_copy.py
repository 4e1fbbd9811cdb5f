"""The mirror without rsync: the same rules, by cloning or copying."""

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sync.copies import CopyMirror
from sync.filters import Filters
from sync.run import sync
from tests.flows.sync_rig import Rig, everything, files, needs_rsync, untold, write
from tests.flows.test_sync import ODD


@pytest.fixture(params=["copy", "reflink"])
def rig(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rig:
    rig = Rig(tmp_path)
    rig.add("main", str(rig.vault), mirror=request.param, exclude=("drafts/**",))
    rig.notes(5)
    rig.write(**{"projects/AI/plan.md": "A plan."})
    monkeypatch.setenv("PATH", "")
    return rig


def test_the_mirror_has_what_the_vault_has_and_follows_it(rig: Rig) -> None:
    rig.write(**{"drafts/x.md": "", ".trash/x.md": "", ".obsidian/app.json": "{}", ".obsidian/x.json": ""})
    before = everything(rig.vault)
    assert sync(rig.settings, "main").counts["changed"] == 7
    assert everything(rig.vault) == before
    shutil.rmtree(rig.vault / "drafts")
    assert files(rig.mirror) == files(rig.vault)
    assert [path.name for path in (rig.mirror / ".obsidian").iterdir()] == ["app.json"]

    (rig.vault / "note 1.md").unlink()
    shutil.rmtree(rig.vault / "projects")
    rig.write(**{"note 2.md": "Another text."})
    assert sync(rig.settings, "main").counts == {"files": 5, "notes": 4, "changed": 1, "deleted": 2, "bytes": 13}
    assert files(rig.mirror) == files(rig.vault)
    assert not (rig.mirror / "projects").exists()
    assert not sync(rig.settings, "main").changed


def test_mirrored_files_are_read_only_and_their_times_are_kept(rig: Rig) -> None:
    (rig.vault / "note 0.md").chmod(0o666)
    os.utime(rig.vault / "note 0.md", ns=(1, 1_700_000_000_123_456_789))
    sync(rig.settings, "main")
    status = (rig.mirror / "note 0.md").stat()
    assert status.st_mode & 0o777 == 0o444
    assert status.st_mtime_ns == 1_700_000_000_123_456_789


def test_an_edit_of_equal_size_and_time_is_found_by_checksum(rig: Rig) -> None:
    note = rig.vault / "note 0.md"
    sync(rig.settings, "main")
    old = note.stat().st_mtime_ns
    note.write_text(note.read_text().replace("This", "That"))
    os.utime(note, ns=(old, old))
    assert not sync(rig.settings, "main").changed
    assert sync(rig.settings, "main", checksum=True).changed
    assert (rig.mirror / "note 0.md").read_text().startswith("That")


def test_links_are_not_followed(rig: Rig, tmp_path: Path) -> None:
    write(tmp_path / "outside", {"secret.md": "secret"})
    (rig.vault / "file.md").symlink_to(tmp_path / "outside/secret.md")
    (rig.vault / "folder").symlink_to(tmp_path / "outside")
    sync(rig.settings, "main")
    assert not (rig.mirror / "file.md").exists()
    assert not (rig.mirror / "folder").exists()


def test_a_link_in_the_mirror_is_not_followed_either(rig: Rig, tmp_path: Path) -> None:
    write(tmp_path / "outside", {"keep.md": "keep"})
    sync(rig.settings, "main")
    shutil.rmtree(rig.mirror / "projects")
    (rig.mirror / "projects").symlink_to(tmp_path / "outside")
    sync(rig.settings, "main")
    assert files(rig.mirror) == files(rig.vault)
    assert files(tmp_path / "outside") == {"keep.md": b"keep"}


def test_names_survive_whatever_they_hold(rig: Rig) -> None:
    rig.write(**dict.fromkeys(ODD, "x"))
    (rig.vault / os.fsdecode(b"latin\xff.md")).write_text("x")
    sync(rig.settings, "main")
    assert files(rig.mirror) == files(rig.vault)


def test_files_and_folders_may_change_places(rig: Rig) -> None:
    rig.write(**{"a.md": "file", "b/c/d.md": "in a folder"})
    sync(rig.settings, "main")
    (rig.vault / "a.md").unlink()
    shutil.rmtree(rig.vault / "b")
    rig.write(**{"a.md/inner.md": "now a folder", "b": "now a file"})
    sync(rig.settings, "main")
    assert files(rig.mirror) == files(rig.vault)


def test_what_a_killed_run_left_is_cleared_away(rig: Rig) -> None:
    sync(rig.settings, "main")
    (rig.mirror / "projects/.dualwall-new").write_text("half a no")
    (rig.mirror / "note 0.md").unlink()
    sync(rig.settings, "main")
    assert files(rig.mirror) == files(rig.vault)
    assert not (rig.mirror / "projects/.dualwall-new").exists()


def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    write(tmp_path / "vault", {"a.md": "one"})
    mirror = Restless(tmp_path / "vault", tmp_path / "mirror", Filters(), edits=2)
    plan = mirror.carry_out(mirror.plan(), untold)
    assert plan.problems == []
    assert (tmp_path / "mirror/a.md").read_bytes() == (tmp_path / "vault/a.md").read_bytes()


def test_a_file_that_never_rests_is_a_problem_and_its_mirror_stays(tmp_path: Path) -> None:
    write(tmp_path / "vault", {"a.md": "one"})
    still = CopyMirror(tmp_path / "vault", tmp_path / "mirror", Filters())
    still.carry_out(still.plan(), untold)
    write(tmp_path / "vault", {"a.md": "three"})
    mirror = Restless(tmp_path / "vault", tmp_path / "mirror", Filters(), edits=99)
    plan = mirror.carry_out(mirror.plan(), untold)
    assert [(problem.path, problem.code) for problem in plan.problems] == [("a.md", "sync-changing")]
    assert files(tmp_path / "mirror") == {"a.md": b"one"}
    assert plan.copies == 0


class Restless(CopyMirror):
    """A mirror of a vault that somebody types in: the file grows while it is copied."""

    def __init__(self, source: Path, target: Path, filters: Filters, edits: int) -> None:
        super().__init__(source, target, filters, reflink=True)
        self.edits = edits

    def _clone(self, source: int, target: int) -> bool:
        if self.edits:
            self.edits -= 1
            with (self.source / "a.md").open("a") as stream:
                stream.write("more")
        return CopyMirror._clone(self, source, target)


def test_falling_back_from_clones_to_copies_is_said(tmp_path: Path) -> None:
    write(tmp_path / "vault", {"a.md": "one"})
    mirror = CopyMirror(tmp_path / "vault", tmp_path / "mirror", Filters(), reflink=True)
    mirror.carry_out(mirror.plan(), untold)
    cloned = not mirror.costs
    assert cloned or "as much room" in mirror.costs[0]


Edits = st.lists(
    st.tuples(
        st.sampled_from(["write", "touch", "delete", "move"]),
        st.sampled_from(["a.md", "b.md", "c/a.md", "c/b.md", "c/d/a.md", "d/x.png", ".h/a.md", "c"]),
        st.sampled_from(["e.md", "c/e.md", "f/g.md", "d"]),
    ),
    max_size=12,
)


@pytest.mark.slow
@needs_rsync
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rounds=st.lists(Edits, min_size=1, max_size=3))
def test_rsync_and_copy_make_the_same_mirror(rounds: list[list[tuple[str, str, str]]], tmp_path: Path) -> None:
    shutil.rmtree(tmp_path, ignore_errors=True)
    rig = Rig(tmp_path)
    rig.notes(2)
    rig.add("copied", str(rig.vault), mirror="copy")
    for edits in rounds:
        for edit in edits:
            _edit(rig.vault, *edit)
        for vault in ("main", "copied"):
            sync(rig.settings, vault, accept_loss=100)
        assert files(rig.settings.mirror("copied")) == files(rig.settings.mirror("main")) == files(rig.vault)
        assert _times(rig.settings.mirror("copied")) == _times(rig.settings.mirror("main"))


def _edit(vault: Path, action: str, path: str, other: str) -> None:
    file = vault / path
    if action == "write" and not file.is_dir() and not any(parent.is_file() for parent in file.parents):
        write(vault, {path: other * (len(path) % 3)})
    elif action == "touch" and file.is_file():
        os.utime(file, ns=(0, 1_000_000_000))
    elif action == "delete" and file.exists():
        shutil.rmtree(file) if file.is_dir() else file.unlink()
    elif action == "move" and file.exists() and _free(vault / other, file):
        file.rename(vault / other)


def _free(target: Path, file: Path) -> bool:
    return not target.exists() and target.parent.is_dir() and not target.is_relative_to(file)


def _times(root: Path) -> dict[str, int]:
    return {path: (root / path).stat().st_mtime_ns for path in files(root)}
