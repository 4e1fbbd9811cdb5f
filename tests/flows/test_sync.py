"""The mirror, by a real rsync: what is copied, what is deleted, what is left alone."""

import os
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from palace.errors import DualwallError, SettingsError, UnreachableError, UsageError
from palace.settings import Private
from sync import guard
from sync.run import sync
from tests.flows.sync_rig import Rig, everything, files, in_process, needs_rsync, script, write

pytestmark = needs_rsync


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    rig = Rig(tmp_path)
    rig.notes(5)
    rig.write(**{"projects/AI/plan.md": "A plan.", "pictures/cat.png": "not really"})
    return rig


def test_the_mirror_has_what_the_vault_has_and_follows_it(rig: Rig) -> None:
    first = sync(rig.settings, "main")
    assert files(rig.mirror) == files(rig.vault)
    assert first.changed
    assert first.counts == {"files": 7, "notes": 6, "changed": 7, "deleted": 0, "bytes": 117}

    (rig.vault / "note 1.md").unlink()
    rig.write(**{"note 2.md": "Another text.", "new.md": "New."})
    second = sync(rig.settings, "main")
    assert files(rig.mirror) == files(rig.vault)
    assert (second.counts["changed"], second.counts["deleted"], second.counts["files"]) == (2, 1, 7)

    third = sync(rig.settings, "main")
    assert not third.changed
    assert third.problems == ()


def test_the_vault_is_the_same_before_and_after(rig: Rig) -> None:
    (rig.vault / "link.md").symlink_to("note 0.md")
    (rig.vault / "note 0.md").chmod(0o600)
    before = everything(rig.vault)
    sync(rig.settings, "main")
    sync(rig.settings, "main", checksum=True)
    sync(rig.settings, "main", dry_run=True)
    assert everything(rig.vault) == before


def test_mirrored_files_are_read_only_and_their_times_are_kept(rig: Rig) -> None:
    (rig.vault / "note 0.md").chmod(0o666)
    os.utime(rig.vault / "note 0.md", ns=(1, 1_700_000_000_123_456_789))
    sync(rig.settings, "main")
    status = (rig.mirror / "note 0.md").stat()
    assert status.st_mode & 0o777 == 0o444
    assert status.st_mtime_ns == 1_700_000_000_123_456_789


def test_an_edit_of_equal_size_within_the_same_second_is_seen(rig: Rig) -> None:
    note = rig.vault / "note 0.md"
    note.write_text("aaaa")
    os.utime(note, ns=(0, 1_700_000_000_100_000_000))
    sync(rig.settings, "main")
    note.write_text("bbbb")
    os.utime(note, ns=(0, 1_700_000_000_600_000_000))
    sync(rig.settings, "main")
    assert (rig.mirror / "note 0.md").read_text() == "bbbb"


def test_an_edit_of_equal_size_and_time_is_found_by_checksum(rig: Rig) -> None:
    note = rig.vault / "note 0.md"
    sync(rig.settings, "main")
    old = note.stat().st_mtime_ns
    note.write_text(note.read_text().replace("This", "That"))
    os.utime(note, ns=(old, old))
    assert not sync(rig.settings, "main").changed
    assert sync(rig.settings, "main", dry_run=True, checksum=True).counts["changed"] == 1
    assert sync(rig.settings, "main", checksum=True).changed
    assert (rig.mirror / "note 0.md").read_text().startswith("That")


def test_bytes_are_compared_once_a_week(rig: Rig) -> None:
    assert not sync(rig.settings, "main").checksum, "the first run reads every byte anyway"
    assert not sync(rig.settings, "main").checksum
    file = guard.state_file(rig.mirror.parent, "main")
    state = guard.read_state(file)
    assert state is not None
    old = (datetime.now(UTC) - timedelta(days=8)).isoformat()
    guard.write_state(file, guard.State(state.source, state.root, old, old))
    assert sync(rig.settings, "main").checksum
    assert not sync(rig.settings, "main").checksum


def test_what_is_hidden_or_excluded_is_not_mirrored(rig: Rig) -> None:
    rig.add("main", str(rig.vault), exclude=("drafts/**", "*.png", "!keep.png"))
    rig.write(
        **{
            ".obsidian/app.json": "{}", ".obsidian/daily-notes.json": "{}", ".obsidian/templates.json": "{}",
            ".obsidian/workspace.json": "{}", ".obsidian/plugins/x/data.json": "{}",
            ".trash/old.md": "", ".git/HEAD": "", "projects/.hidden.md": "", "projects/.cache/x.md": "",
            "drafts/a.md": "", "drafts/deep/b.md": "", "pictures/keep.png": "",
            "note 0.sync-conflict-20260101-120000-ABCDEF.md": "kept: the librarian lists it",
        }
    )  # fmt: skip
    sync(rig.settings, "main")
    found = {str(path.relative_to(rig.mirror)) for path in rig.mirror.rglob("*") if path.is_file()}
    assert found - {f"note {n}.md" for n in range(5)} == {
        ".obsidian/app.json",
        ".obsidian/daily-notes.json",
        ".obsidian/templates.json",
        "projects/AI/plan.md",
        "pictures/keep.png",
        "note 0.sync-conflict-20260101-120000-ABCDEF.md",
    }


def test_a_private_root_in_the_vault_is_mirrored_although_it_is_excluded(rig: Rig) -> None:
    rig.add("main", str(rig.vault), exclude=("Agents",))
    rig.private = (Private(cube="cat", path="vault:main/Agents/cat", rooms={"diary": ("*.md",)}),)
    rig.write(**{"Agents/cat/SOUL.md": "s", "Agents/cat/.key": "k", "Agents/dog/SOUL.md": "d", "Agents/plan.md": "p"})
    sync(rig.settings, "main")
    assert [path for path in files(rig.mirror) if path.startswith("Agents")] == ["Agents/cat/SOUL.md"]
    assert not (rig.mirror / "Agents/cat/.key").exists()


def test_excluding_more_takes_it_out_of_the_mirror_and_is_no_loss(rig: Rig) -> None:
    rig.notes(60, "drafts/")
    sync(rig.settings, "main")
    rig.add("main", str(rig.vault), exclude=("drafts/",))
    sync(rig.settings, "main")
    assert not [path for path in files(rig.mirror) if path.startswith("drafts")]


def test_links_out_of_the_vault_are_not_followed_nor_kept(rig: Rig, tmp_path: Path) -> None:
    write(tmp_path / "outside", {"secret.md": "secret"})
    (rig.vault / "file.md").symlink_to(tmp_path / "outside/secret.md")
    (rig.vault / "folder").symlink_to(tmp_path / "outside")
    (rig.vault / "up").symlink_to("..")
    (rig.vault / "inside.md").symlink_to("note 0.md")
    sync(rig.settings, "main")
    assert not (rig.mirror / "file.md").is_symlink()
    assert not (rig.mirror / "folder").exists()
    assert not (rig.mirror / "up").exists()
    assert b"secret" not in files(rig.mirror).values()
    assert (rig.mirror / "inside.md").readlink() == Path("note 0.md")


ODD = [
    "new\nline.md", "tab\t.md", "quo\"te's.md", "back\\slash.md", "oct\\#012al.md", "star*[x]?.md", " space .md", "-dash.md",
    "#tag.md", "caf\u00e9.md", "cafe\u0301.md", "笔记.md", "*deleting.md", "a|1|b.md",
]  # fmt: skip


def test_names_survive_whatever_they_hold(rig: Rig) -> None:
    rig.write(**dict.fromkeys(ODD, "x"))
    (rig.vault / os.fsdecode(b"latin\xff.md")).write_text("x")
    counts = sync(rig.settings, "main").counts
    assert files(rig.mirror) == files(rig.vault)
    assert counts["files"] == len(files(rig.vault))
    for name in [*ODD, os.fsdecode(b"latin\xff.md")]:
        (rig.vault / name).unlink()
    counts = sync(rig.settings, "main", accept_loss=len(ODD) + 1).counts
    assert counts["deleted"] == len(ODD) + 1
    assert files(rig.mirror) == files(rig.vault)


def test_files_and_folders_may_change_places(rig: Rig) -> None:
    rig.write(**{"a.md": "file", "b/c.md": "in a folder"})
    sync(rig.settings, "main")
    (rig.vault / "a.md").unlink()
    shutil.rmtree(rig.vault / "b")
    rig.write(**{"a.md/inner.md": "now a folder", "b": "now a file"})
    sync(rig.settings, "main")
    assert files(rig.mirror) == files(rig.vault)


def test_a_dry_run_changes_nothing(rig: Rig) -> None:
    result = sync(rig.settings, "main", dry_run=True)
    assert result.counts["changed"] == 7
    assert not rig.settings.data.exists()
    sync(rig.settings, "main")
    (rig.vault / "note 0.md").unlink()
    before = everything(rig.settings.data)
    assert sync(rig.settings, "main", dry_run=True).counts["deleted"] == 1
    assert everything(rig.settings.data) == before


def test_progress_is_told(rig: Rig) -> None:
    told: list[tuple[str, int, int | None]] = []
    sync(rig.settings, "main", progress=lambda *report: told.append(report))
    assert told[-1] == ("mirror of main", 7, 7)


def test_a_vault_that_settings_do_not_have(rig: Rig) -> None:
    with pytest.raises(UsageError, match="Did you mean main"):
        sync(rig.settings, "mian")


@pytest.mark.parametrize("source", ["data/vault", "data", ".", "link"])
def test_vault_and_data_folder_inside_each_other_are_refused(rig: Rig, tmp_path: Path, source: str) -> None:
    (tmp_path / "data/vault").mkdir(parents=True)
    (tmp_path / "link").symlink_to("data/vault")
    rig.add("main", str(tmp_path / source))
    before = everything(tmp_path)
    with pytest.raises(SettingsError):
        sync(rig.settings, "main")
    assert everything(tmp_path) == before


def test_a_mirror_that_a_symlink_puts_into_the_vault_is_refused(rig: Rig, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/mirror").symlink_to(rig.vault)
    with pytest.raises(SettingsError):
        sync(rig.settings, "main")


def test_names_of_vaults_do_not_climb(rig: Rig) -> None:
    rig.add("../../x", str(rig.vault))
    with pytest.raises(SettingsError):
        sync(rig.settings, "../../x")


def test_without_rsync_the_message_says_how_to_get_it(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "bin/apt-get", "")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    with pytest.raises(DualwallError) as caught:
        sync(rig.settings, "main")
    assert "sudo apt-get install rsync" in caught.value.hint
    assert 'mirror = "copy"' in caught.value.hint


def test_an_rsync_of_the_last_century_is_refused(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "bin/rsync", "echo 'rsync  version 2.6.9  protocol version 29'")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    with pytest.raises(DualwallError, match=r"version 3 or newer"):
        sync(rig.settings, "main")


OPENRSYNC = """
if [ "$1" = --version ]; then echo 'openrsync: protocol version 29'; echo 'rsync version 2.6.9 compatible'; exit; fi
for option; do case "$option" in
    --recursive|--links|--perms|--times|--omit-dir-times|--delete-delay|--delete-excluded|--safe-links|--chmod=*) ;;
    --partial-dir=*|--8-bit-output|--itemize-changes|--out-format=*|--checksum|--dry-run|--max-delete=[1-9]*) ;;
    --filter=*|--timeout=*|--rsh=*|--) ;;
    -*) echo "unknown option $option" >&2; exit 1 ;;
esac; done
{rsync} "$@" | sed 's/^\\*deleting  |0|/*deleting /'
"""
"""Options of Apple's openrsync, over a real rsync: what it does not know is an error, and it lists deletions in its way."""


def test_openrsync_gets_only_what_it_knows_and_the_cost_is_said(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(tmp_path / "bin/rsync", OPENRSYNC.replace("{rsync}", str(shutil.which("rsync"))))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    result = sync(rig.settings, "main")
    assert "whole seconds" in result.warnings[0]
    (rig.vault / "note 0.md").unlink()
    assert sync(rig.settings, "main", checksum=True).counts["deleted"] == 1
    assert files(rig.mirror) == files(rig.vault)


def test_a_file_that_vanishes_while_it_is_read_is_a_problem(
    rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The big file takes a second; meanwhile the last one of the list goes.
    slow = f'case "$*" in *--dry-run*) ;; *) set -- --bwlimit=4000 "$@" ;; esac; exec {shutil.which("rsync")} "$@"'
    script(tmp_path / "bin/rsync", slow)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    (rig.vault / "a big one.bin").write_bytes(os.urandom(4_000_000))
    rig.write(**{"zz last.md": "It will go."})
    remover = (
        "import pathlib, sys, time\n"
        "mirror, last = map(pathlib.Path, sys.argv[1:])\n"
        "while not list(mirror.glob('.a big one*')): time.sleep(0.01)\n"
        "last.unlink()\n"
    )
    with subprocess.Popen([sys.executable, "-c", remover, str(rig.mirror), str(rig.vault / "zz last.md")]) as process:
        result = sync(rig.settings, "main")
        process.wait(10)
    assert [(problem.path, problem.code) for problem in result.problems] == [("zz last.md", "sync-vanished")]
    assert files(rig.mirror) == files(rig.vault)


def test_a_note_that_is_half_written_is_whole_after_the_next_run(rig: Rig) -> None:
    with (rig.vault / "half.md").open("w") as stream:
        stream.write("The first half, ")
        stream.flush()
        sync(rig.settings, "main")
        stream.write("and the second.")
    sync(rig.settings, "main")
    assert (rig.mirror / "half.md").read_text() == "The first half, and the second."


def test_a_full_disk_is_said_as_such(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = """case "$*" in *--version*|*--dry-run*) exec {rsync} "$@" ;; esac
        echo 'rsync: [receiver] write failed on "/x/.note.md.Ab1234": No space left on device (28)' >&2; exit 11"""
    script(tmp_path / "bin/rsync", full.replace("{rsync}", str(shutil.which("rsync"))))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    with pytest.raises(DualwallError, match="is full") as caught:
        sync(rig.settings, "main")
    assert "Free some space" in caught.value.hint


class TestAnotherMachine:
    """A source behind ssh: a stand-in for ssh runs the command in a shell here; rsync is real on both sides."""

    @pytest.fixture(autouse=True)
    def shell(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        ssh = script(
            tmp_path / "ssh",
            'while :; do case "$1" in -l) shift 2 ;; -*) shift ;; *) break ;; esac; done\n'
            '[ "$1" = nowhere ] && { echo "ssh: Could not resolve hostname nowhere" >&2; exit 255; }\n'
            'shift; exec sh -c "$*"',
        )
        monkeypatch.setenv("RSYNC_RSH", str(ssh))

    @pytest.fixture
    def far(self, rig: Rig, tmp_path: Path) -> Rig:
        rig.vault.rename(tmp_path / "far vault")
        rig.add("main", f"me@host:{tmp_path}/far vault", exclude=("drafts/",))
        return rig

    def test_it_is_mirrored_and_followed(self, far: Rig, tmp_path: Path) -> None:
        vault = tmp_path / "far vault"
        write(vault, {"drafts/x.md": "", ".trash/y.md": "", "new\nline.md": "n"})
        assert sync(far.settings, "main").counts["changed"] == 8
        (vault / "note 0.md").unlink()
        assert sync(far.settings, "main").counts["deleted"] == 1
        shutil.rmtree(vault / "drafts")
        assert files(far.mirror) == files(vault)

    def test_a_folder_that_is_not_there_deletes_nothing(self, far: Rig, tmp_path: Path) -> None:
        sync(far.settings, "main")
        before = everything(far.mirror)
        (tmp_path / "far vault").rename(tmp_path / "away")
        with pytest.raises(UnreachableError, match="No such file"):
            sync(far.settings, "main")
        assert everything(far.mirror) == before

    def test_a_host_that_is_not_there(self, far: Rig, tmp_path: Path) -> None:
        far.add("main", f"me@nowhere:{tmp_path}/far vault")
        with pytest.raises(UnreachableError, match="Could not resolve") as caught:
            sync(far.settings, "main")
        assert "ssh -o BatchMode=yes me@nowhere" in caught.value.hint

    @pytest.mark.parametrize("source", ["-oProxyCommand=x:/v", "host:", ":/v", "host::module"])
    def test_sources_that_are_no_address(self, rig: Rig, source: str) -> None:
        rig.add("main", source)
        with pytest.raises(SettingsError):
            sync(rig.settings, "main")

    def test_only_rsync_reaches_it(self, rig: Rig) -> None:
        rig.add("main", "host:/v", mirror="copy")
        with pytest.raises(SettingsError, match="on another machine"):
            sync(rig.settings, "main")


@pytest.mark.slow
def test_syncs_of_a_vault_wait_for_each_other(rig: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = f'case "$*" in *--version*) ;; *) sleep 0.3 ;; esac; exec {shutil.which("rsync")} "$@"'
    script(tmp_path / "bin/rsync", slow)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    began = time.monotonic()
    running = [in_process(rig) for _ in range(2)]
    assert [process.wait(30) for process in running] == [0, 0]
    assert time.monotonic() - began > 1.2
    assert files(rig.mirror) == files(rig.vault)
