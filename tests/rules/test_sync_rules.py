"""The mirror's rules: rsync's argument list, its output, its filters, the guard's judgement, folders inside folders."""

import os
import random
import re
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace.paths import contains
from palace.settings import Guard
from sync import guard, mirror
from sync.filters import Filters
from sync.guard import Loss, State
from sync.mirror import Change, Job, Plan, Tool
from sync.tree import scan

NEW = Tool("rsync", openrsync=False, version=(3, 2, 7))
OLD = Tool("rsync", openrsync=False, version=(3, 1, 2))
APPLE = Tool("/usr/bin/rsync", openrsync=True, version=(0, 0, 0))
LOCAL = Job(source="/home/me/Notes", target="/data/mirror/main", remote=False, rules=("- .*",))
FAR = Job(source="me@host:my notes/", target="/data/mirror/main", remote=True, rules=("- .*",))


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ("rsync  version 3.2.7  protocol version 31\nCopyright", (3, 2, 7)),
        ("rsync  version v3.4.0pre1  protocol version 32", (3, 4, 0)),
        ("rsync  version 3.1  protocol version 31", (3, 1, 0)),
        ("openrsync: protocol version 29\nrsync version 2.6.9 compatible", (0, 0, 0)),
        ("rsync  version 2.6.9  protocol version 29", None),
        ("command not found", None),
        ("", None),
    ],
)
def test_which_rsync_it_is(said: str, version: tuple[int, int, int] | None) -> None:
    found = mirror.tool("rsync", said)
    assert (found.version if found else None) == version


def test_the_argument_list() -> None:
    arguments = mirror.argv(NEW, LOCAL)
    assert arguments[: len(mirror.OPTIONS) + 1] == ["rsync", *mirror.OPTIONS]
    assert arguments[-3:] == ["--", "/home/me/Notes/", "/data/mirror/main"]
    assert "--filter=- .*" in arguments
    assert "--modify-window=-1" in arguments
    assert not {"--ignore-errors", "--inplace", "--owner", "--group", "--devices", "--archive"} & set(arguments)
    assert mirror.argv(NEW, Job("/", "/m", remote=False, rules=()))[-2:] == ["/", "/m"]


def test_the_argument_list_over_ssh() -> None:
    arguments = mirror.argv(NEW, FAR)
    assert "--rsh=ssh -o BatchMode=yes -o ConnectTimeout=20" in arguments
    assert "--protect-args" not in arguments
    assert "--protect-args" in mirror.argv(OLD, FAR)
    assert arguments[-2] == "me@host:my notes/"


def test_programs_that_know_less_get_less_and_it_is_said() -> None:
    for less in (OLD, APPLE):
        assert "--modify-window=-1" not in mirror.argv(less, LOCAL)
        assert "whole seconds" in less.costs[0]
    assert NEW.costs == ()


@pytest.mark.parametrize("tool", [NEW, APPLE])
def test_a_limit_of_nothing_is_never_no_limit(tool: Tool) -> None:
    job = Job("/v", "/m", remote=False, rules=(), max_delete=0)
    assert f"--max-delete={int(tool.openrsync)}" in mirror.argv(tool, job)


@pytest.mark.parametrize(
    ("line", "change"),
    [
        (b">f+++++++++|12|a/b.md\n", Change("new", "a/b.md", 12)),
        (b">f.st......|3|a.md\n", Change("changed", "a.md", 3)),
        (b"<f.st......|3|a.md\n", Change("changed", "a.md", 3)),
        (b".f...p.....|3|a.md\n", Change("attributes", "a.md", 3)),
        (b"cL+++++++++|4|in.md\n", Change("attributes", "in.md", 4)),
        (b"cd+++++++++|4096|folder/\n", Change("attributes", "folder", 4096, folder=True)),
        (b"*deleting  |0|a|1|b.md\n", Change("deleted", "a|1|b.md", 0)),
        (b"*deleting   old/\n", Change("deleted", "old", 0, folder=True)),
        (b"*deleting a.md\n", Change("deleted", "a.md", 0)),
        (b">f+++++++++|1|new\\#012line\\#134#123.md\n", Change("new", "new\nline\\#123.md", 1)),
        (b">f+++++++++|1|\xff.md\n", Change("new", "\udcff.md", 1)),
        (b"created directory /m\n", None),
        (b"\n", None),
    ],
)
def test_lines_of_the_list(line: bytes, change: Change | None) -> None:
    assert mirror.change(line) == change


@pytest.mark.parametrize(
    ("line", "path", "code"),
    [
        ('rsync: [sender] opendir "/home/me/Notes/locked" failed: Permission denied (13)', "locked", "sync-unreadable"),
        ('rsync: [sender] send_files failed to open "/home/me/Notes/a "b".md": Permission denied (13)', 'a "b".md', "sync-unreadable"),
        ('file has vanished: "/home/me/Notes/x/y.md"', "x/y.md", "sync-vanished"),
        ("IO error encountered -- skipping file deletion", "", "sync-deletions-skipped"),
        ('rsync: [receiver] mkstemp "/data/mirror/main/.a.md.Xy" failed: Permission denied (13)', "/data/mirror/main/.a.md.Xy", "sync-warning"),
    ],
)  # fmt: skip
def test_complaints_become_problems(line: str, path: str, code: str) -> None:
    [problem] = mirror.problems([line, line, "rsync error: some files (code 23) at main.c(1)", ""], "/home/me/Notes")
    assert (problem.path, problem.code) == (path, code)


def test_complaints_about_another_machine_name_the_note() -> None:
    line = 'file has vanished: "/home/me/my notes/x.md"'
    assert [problem.path for problem in mirror.problems([line], "me@host:my notes")] == ["x.md"]
    assert [problem.path for problem in mirror.problems([line], "me@host:~/my notes")] == ["x.md"]


def test_a_missing_root_is_told_from_a_bad_file() -> None:
    assert (
        mirror.root_missing(['rsync: [sender] change_dir "/x" failed: No such file or directory (2)'])
        == "No such file or directory"
    )
    assert mirror.root_missing(['rsync: [sender] opendir "/x" failed: Permission denied (13)']) is None
    assert mirror.root_missing([]) is None


@given(st.text(st.characters(codec="utf-8")), st.binary(max_size=20))
def test_whatever_is_printed_can_be_printed(text: str, raw: bytes) -> None:
    for shown in (mirror.printable(text), mirror.printable(os.fsdecode(raw))):
        assert shown.isprintable()
        shown.encode("utf-8")


PATHS = (
    "a.md", "b.md", "a/a.md", "a/b/a.md", "a/b/c/d.md", "b/a/b.md", "b/c/a/b/d.md", "drafts/x.md", "drafts/a/x.md",
    "x/drafts/x.md", "sp ace/x.md", "q?/x.md", "br[a]/x.md", "back\\s/x.md", "st*r/x.md", "a/x/y/b/d.md", "a/.h/x.md",
    ".git/x.md", ".obsidian/app.json", ".obsidian/x.json", ".agents/k/a.md", ".agents/o.md", "Agents/k/a.md",
    "Agents/o.md", "Agents/k/.x/a.md", "Agents/k/d/.y", "Agents/k/d/y.md", "ab/c.md", "caf\u00e9/x.md", "cafe\u0301/y.md",
)  # fmt: skip
PIECES = (
    "a", "b", "c", "d", "*", "**", "x.md", "*.md", "drafts", "[ab]", "a*", "**b", "\\*", "sp ace", "q\\?", "back\\\\s",
    "br\\[a\\]", "Agents", "k", "café", ".h", "st\\*r",
)  # fmt: skip


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for path in PATHS:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path, encoding="utf-8")
    return root


@pytest.mark.skipif(shutil.which("rsync") is None, reason="needs rsync")
def test_rsync_takes_what_the_predicate_takes(tree: Path, tmp_path: Path) -> None:
    rng = random.Random(3)
    for _ in range(40):
        globs = tuple("/".join(rng.choices(PIECES, k=rng.randint(1, 4))) for _ in range(rng.randint(1, 2)))
        filters = Filters(globs, rng.choice([(), ("Agents/k",), (".agents/k",)]))
        assert _by_rsync(tree, tmp_path, filters) == set(scan(tree, filters).files), filters


def _by_rsync(tree: Path, target: Path, filters: Filters) -> set[str]:
    rules = [f"--filter={rule}" for rule in filters.rules()]
    listing = subprocess.run(
        ["rsync", "-rn", "-8", "--out-format=%n", *rules, "--", f"{tree}/", target], capture_output=True, check=True
    )
    names = [mirror.unescaped(line) for line in listing.stdout.split(b"\n")]
    return {name for name in names if name and not name.endswith("/")}


@pytest.mark.parametrize(
    ("glob", "taken", "left"),
    [
        ("drafts/**", ["x/drafts/x.md", "a.md"], ["drafts/x.md", "drafts/a/x.md"]),
        ("drafts/", ["a.md"], ["drafts/x.md", "x/drafts/x.md"]),
        ("/drafts", ["x/drafts/x.md"], ["drafts/x.md"]),
        ("**/drafts/*.md", ["drafts/a/x.md"], ["drafts/x.md", "x/drafts/x.md"]),
        ("a/**/d.md", ["b/c/a/b/d.md"], ["a/b/c/d.md", "a/x/y/b/d.md"]),
        ("caf\u00e9", ["a.md"], ["caf\u00e9/x.md", "cafe\u0301/y.md"]),
        ("# a comment", ["a.md"], []),
    ],
)
def test_globs_are_those_of_gitignore(tree: Path, glob: str, taken: list[str], left: list[str]) -> None:
    found = scan(tree, Filters((glob,))).files
    assert all(path in found for path in taken)
    assert not any(path in found for path in left)


def test_globs_that_look_like_rules() -> None:
    assert Filters(("- x", "!keep me.md")).rules()[-2:] == ("+ keep me.md", "- - x")


def _plan(
    new: dict[str, int] | None = None, changed: dict[str, int] | None = None, deleted: list[str] | None = None
) -> Plan:
    return Plan(new or {}, changed or {}, deleted or [])


def test_losses_are_counted_in_notes() -> None:
    before = {"a.md": 5, "b.md": 5, "cat.png": 9, "folder/c.MD": 7}
    assert guard.loss(before, _plan(deleted=["a.md", "cat.png", "folder/c.MD"])) == Loss(3, 2, 1)
    assert guard.loss(before, _plan(deleted=["not in the mirror.md"])) == Loss(3, 0, 3)
    assert guard.loss(before, _plan({"x/a.md": 5}, deleted=["a.md"])) == Loss(3, 0, 3)
    assert guard.loss(before, _plan({"x/a.md": 6}, deleted=["a.md"])) == Loss(3, 1, 3)
    assert guard.loss(before, _plan(changed={"a.md": 0, "b.md": 3})) == Loss(3, 1, 2)
    assert guard.loss({}, _plan({"a.md": 1})) == Loss(0, 0, 1)


@pytest.mark.parametrize(
    ("loss", "same_root", "accept", "stops"),
    [
        (Loss(100, 0, 100), True, None, False),
        (Loss(100, 20, 80), True, None, False),
        (Loss(100, 21, 79), True, None, True),
        (Loss(200, 40, 160), True, None, False),
        (Loss(200, 41, 159), True, None, True),
        (Loss(200, 41, 159), True, 41, False),
        (Loss(200, 41, 159), True, 40, True),
        (Loss(3, 3, 0), True, None, True),
        (Loss(3, 3, 0), False, 3, False),
        (Loss(10, 5, 5), False, None, False),
        (Loss(10, 6, 4), False, None, True),
        (Loss(10, 6, 4), True, None, False),
        (Loss(0, 0, 0), False, None, False),
    ],
)
def test_the_guard_s_judgement(loss: Loss, *, same_root: bool, accept: int | None, stops: bool) -> None:
    assert (guard.stop(loss, Guard(), same_root=same_root, accept=accept) is not None) == stops


@given(st.integers(1, 500), st.integers(0, 500), st.booleans())
def test_nothing_is_ever_left_of_a_vault_without_a_word(before: int, lost: int, same_root: bool) -> None:  # noqa: FBT001 - drawn
    lost = min(before, lost)
    if guard.stop(Loss(before, lost, before - lost), Guard(), same_root=same_root, accept=None) is None:
        assert lost < before
        assert lost <= max(20, before * 0.2)


NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("days", "due"),
    [(0, False), (6.9, False), (7, True), (400, True), (-1, True)],
    ids=["now", "6.9", "7", "400", "ahead"],
)
def test_bytes_are_compared_every_seven_days(days: float, *, due: bool) -> None:
    stamp = (NOW - timedelta(days=days)).isoformat()
    assert guard.checksum_due(State("/v", "1:2", stamp, stamp), NOW) is due


@pytest.mark.parametrize("stamp", ["", "yesterday", "2026-03-01"])
def test_a_stamp_that_says_nothing_is_due(stamp: str) -> None:
    assert guard.checksum_due(State("/v", None, stamp, stamp), NOW)
    assert guard.checksum_due(None, NOW)


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"source": "/v"}', '{"sou'])
def test_a_state_that_cannot_be_read_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "main.json").write_text(text, encoding="utf-8")
    assert guard.read_state(tmp_path / "main.json") is None


def test_the_state_is_kept(tmp_path: Path) -> None:
    state = State("me@host:Notes", None, "2026-03-01T00:00:00+00:00", "2026-03-01T00:00:00+00:00")
    guard.write_state(tmp_path / "main.json", state)
    assert guard.read_state(tmp_path / "main.json") == state
    assert [path.name for path in tmp_path.iterdir()] == ["main.json"]


def test_folders_inside_folders(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    (tmp_path / "loop").symlink_to("loop")
    yes = [
        ("a", "a"),
        ("a", "a/b"),
        ("a", "a/none/yet"),
        ("a", "link"),
        ("a", "link/c"),
        ("link", "a/b/c"),
        ("a", "x/../a/b"),
    ]
    no = [("a/b", "a"), ("a", "ab"), ("a", "."), ("link", "a"), ("a", "loop"), ("none", "a")]
    assert [pair for pair in yes if not contains(tmp_path / pair[0], tmp_path / pair[1])] == []
    assert [pair for pair in no if contains(tmp_path / pair[0], tmp_path / pair[1])] == []


def test_patterns_that_rsync_reads_are_plain_text() -> None:
    for rule in Filters(("a[b]\\*", "x\\ y"), ("Agents/br[a]",)).rules():
        assert re.fullmatch(r"[+-] \S.*", rule)
