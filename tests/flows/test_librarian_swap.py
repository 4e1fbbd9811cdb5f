"""The palace under readers, killed builds, other mounts and full disks."""

import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from librarian import shelve
from librarian.verify import verify
from palace.errors import DualwallError
from palace.progress import silent
from tests.palaces import House

Mount = Callable[..., AbstractContextManager[Path]]


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path / "data", {})


@pytest.fixture
def mount() -> Mount:
    """A small file system in memory, mounted where it is asked for; skips where that is not allowed."""

    @contextmanager
    def mounted(folder: Path, options: str = "size=4m") -> Iterator[Path]:
        folder.mkdir(parents=True, exist_ok=True)
        if not hasattr(os, "geteuid") or os.geteuid() != 0 or not shutil.which("mount"):
            pytest.skip("needs the right to mount a small tmpfs")
        tried = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", folder], capture_output=True, check=False
        )
        if tried.returncode != 0:
            pytest.skip("needs the right to mount a small tmpfs")
        try:
            yield folder
        finally:
            subprocess.run(["umount", "-l", folder], check=True)

    return mounted


def test_a_reader_that_polls_through_rebuilds_never_sees_a_room_short(house: House) -> None:
    house.write({f"work/app/n{i}.md": f"{i}" for i in range(60)})
    house.build()
    room, stop, seen, broken = house.data / "palace/current/global/work/app", threading.Event(), 0, []

    def poll() -> None:
        nonlocal seen
        while not stop.is_set():
            names = os.listdir(room)  # noqa: PTH208 - one call, as a reader would
            if len(names) < 60:
                broken.append(len(names))
            seen += 1

    reader = threading.Thread(target=poll)
    reader.start()
    for turn in range(12):
        house.write({"work/app/n0.md": f"turn {turn}", f"other/x{turn}/n.md": "x"})
        assert house.build().changed
    stop.set()
    reader.join()
    assert seen > 100
    assert broken == []


def test_what_a_killed_build_left_is_removed_by_the_next_run(house: House) -> None:
    house.write({"n.md": "#a/b"})
    house.build()
    palace = house.data / "palace"
    (palace / "gen-000002.partial/global/a").mkdir(parents=True)
    (palace / "gen-000002/global").mkdir(parents=True)
    (palace / "current.next").symlink_to("gen-000002")
    (palace / "a person's own.txt").write_text("stays")
    assert not house.build().changed
    assert house.generations() == ["a person's own.txt", "current", "gen-000001"]


def build_in(data: Path) -> None:
    """What the killed process runs."""
    House(data, {}).build()


@pytest.mark.slow
def test_a_build_killed_anywhere_is_answered_by_running_again(house: House, tmp_path: Path) -> None:
    """kill -9 at random moments; the digest is that of a palace never interrupted, and nothing is left lying about."""
    rng = random.Random(5)
    clean, killed, longest = House(tmp_path / "clean", {}), 0, 1.0
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["tests.palaces"])
    for turn in range(16):
        notes = {
            f"w{rng.randrange(4)}/r{rng.randrange(9)}/n{i}.md": f"{turn} #t/{rng.randrange(50)}" for i in range(200)
        }
        for one in (house, clean):
            shutil.rmtree(one.data / "mirror", ignore_errors=True)
            one.write(notes)
        process = server.Process(target=build_in, args=(house.data,))
        begin = time.monotonic()
        process.start()
        process.join(rng.uniform(0, longest))
        process.kill()
        process.join()
        killed += process.exitcode == -signal.SIGKILL
        longest = longest if process.exitcode else max(0.05, time.monotonic() - begin)
        house.build()
        clean.build()
        assert house.current.digest == clean.current.digest
        assert verify(house.settings) == []
        assert len(house.generations()) <= 3
        assert not house.build().changed
    assert killed > 5


def test_two_mounts_get_copies_and_one_warning_with_the_cost(house: House, mount: Mount) -> None:
    house.write({"x/n.md": "#a/b " + "x" * 100_000, "x/m.md": "m"})
    with mount(house.data / "palace"):
        result = house.build()
        warnings = [p for p in result.problems if p.code == "palace-copied"]
        assert len(warnings) == 1
        assert "2 notes could not be hardlinked" in warnings[0].message
        assert "3 copies take 0.2 MB more disk" in warnings[0].message
        assert verify(house.settings) == []
        copy = house.data / "palace/current/global/a/b/n.md"
        assert copy.stat().st_mtime_ns == house.mirror("x/n.md").stat().st_mtime_ns
        assert copy.stat().st_mode & 0o222 == 0
        again = house.build()
        assert (again.changed, again.problems) == (False, result.problems)
        house.mirror("x/m.md").chmod(0o444)
        assert (house.build().changed, house.build().problems) == (False, result.problems)
        copy.chmod(0o644)
        copy.write_text("damage")
        assert verify(house.settings) == ["global/a/b/n.md: other bytes than the manifest has"]


def test_a_missing_right_to_link_is_answered_by_a_copy(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """protected_hardlinks gives EPERM, a file with too many names EMLINK: for single notes."""
    house.write({"n.md": "n", "m.md": "m"})
    link = os.link

    def refusing(source: str, target: str) -> None:
        if source.endswith("m.md"):
            raise PermissionError(1, "Operation not permitted", source)
        link(source, target)

    monkeypatch.setattr(os, "link", refusing)
    problems = house.build().problems
    assert [p.code for p in problems] == ["palace-copied"]
    assert "1 notes could not be hardlinked into the palace (Operation not permitted)" in problems[0].message
    assert verify(house.settings) == []


def fill(folder: Path, *, files: bool) -> None:
    """Use up the bytes, or the names, that a disk has left."""
    with pytest.raises(OSError, match="No space left"):  # noqa: PT012 - the disk's size is not ours to know
        for i in range(10_000):
            (folder / f"ballast{i}").write_bytes(b"" if files else bytes(4096))


@pytest.mark.parametrize(("options", "files"), [("size=1m", False), ("size=4m,nr_inodes=600", True)])
def test_a_full_disk_is_told_and_the_palace_stays(house: House, mount: Mount, options: str, *, files: bool) -> None:
    """Once the manifest finds no room, once the links don't."""
    with mount(house.data, options):
        house.write({"work/app/n.md": "first"})
        house.build()
        tree = house.tree()
        house.write({f"w/r/n{i}.md": f"#tag/{i}" for i in range(60)})
        fill(house.data, files=files)
        for i in range(8):
            (house.data / f"ballast{i}").unlink()
        with pytest.raises(DualwallError, match=r"disk is full.*as it was") as stopped:
            house.build()
        assert "Free some space" in stopped.value.hint
        assert house.tree() == tree
        assert verify(house.settings) == []
        assert house.generations() == ["current", "gen-000001"]
        for file in house.data.glob("ballast*"):
            file.unlink()
        assert (house.build().generation, verify(house.settings)) == (2, [])


def test_a_mirror_that_changes_while_it_is_linked_stops_the_build(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.write({"a.md": "a", "b.md": "b"})
    house.build()
    house.write({"a.md": "new text"})
    real = shelve.shelve

    def meanwhile(*arguments: object) -> shelve.Tally:
        house.write({"b.md": "other"})
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(shelve, "shelve", meanwhile)
    with pytest.raises(DualwallError, match=r"b\.md changed in the mirror"):
        house.build()
    monkeypatch.undo()
    assert house.current.number == 1
    assert (house.build().generation, verify(house.settings)) == (2, [])


def test_a_note_that_changes_while_it_is_read_is_read_again_by_the_next_run(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.write({"n.md": "x"})
    real, file = os.fstat, house.mirror("n.md")

    def meanwhile(descriptor: int) -> os.stat_result:
        if Path(f"/proc/self/fd/{descriptor}").readlink() == file:
            with file.open("a") as stream:
                stream.write("x")
        return real(descriptor)

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs /proc to tell the note's descriptor")
    monkeypatch.setattr(os, "fstat", meanwhile)
    assert [p.code for p in house.build().problems] == ["changed-while-read"]
    monkeypatch.undo()
    result = house.build()
    assert (result.counts["read"], result.problems, verify(house.settings)) == (1, (), [])


paths = st.lists(
    st.sampled_from(["a", "A", "b", "raw", "diary", "项目", "cafe\u0301", "caf\u00e9", "x.y", "CON"]), max_size=4
)
texts = st.lists(
    st.sampled_from(["#a", "#A/b", "#a/b/c", "#ff0000", "#diary", "#项目/甲", "#b", "word"]), max_size=4
).map(" ".join)
notes = st.dictionaries(paths.map(lambda parts: "/".join([*parts, "n.md"])), texts, max_size=8)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(notes, notes)
def test_any_vault_is_built_once_and_then_unchanged(first: dict[str, str], then: dict[str, str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        house, fresh = House(Path(folder, "one"), {}), House(Path(folder, "two"), {})
        for vault in (first, then):
            shutil.rmtree(house.data / "mirror", ignore_errors=True)
            house.write(vault)
            house.build()
            assert verify(house.settings) == []
            assert not house.build().changed
            assert house.build(dry_run=True).difference.empty
        fresh.write(then)
        fresh.build()
        assert house.current.digest == fresh.current.digest
        assert house.tree() == fresh.tree()


def test_links_of_a_room_cost_no_bytes(house: House, tmp_path: Path) -> None:
    house.write({"n.md": "#a/b #c/d " + "x" * 100_000})
    house.build()
    entries = tuple(house.entries.values())
    apart = tmp_path / "apart"
    tally = shelve.shelve(apart, entries, {"main": house.data / "mirror/main"}, silent)
    assert (tally.links, tally.copied_bytes, tally.problem()) == (3, 0, None)
    assert house.mirror("n.md").stat().st_nlink == 7
