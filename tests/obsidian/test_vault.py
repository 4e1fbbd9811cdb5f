"""What a vault says of itself: daily notes, templates, excluded files; and which files are conflict copies."""

from datetime import date
from pathlib import Path

import pytest

from palace.obsidian.daily import daily_date
from palace.obsidian.vault import VaultConfig, conflict_copy


def test_the_three_files() -> None:
    app = rb'{"userIgnoreFilters": ["Archive/", "/\\.excalidraw\\.md$/", "notes/old.md"], "other": 1}'
    config = VaultConfig.read(app, b'{"folder": "/Daily/", "format": "YYYY/MM-DD"}', b'{"folder": "Templates/"}')
    assert (config.daily_folder, config.daily_format, config.templates) == ("Daily", "YYYY/MM-DD", "Templates")
    assert config.problems == ()
    for path in ("Archive/a.md", "archive/b/c.md", "x/Draw.excalidraw.md", "notes/old.md"):
        assert config.is_excluded(path), path
    for path in ("Archive.md", "x/Archive/a.md", "excalidraw.md", "notes/older.md"):
        assert not config.is_excluded(path), path


def test_absent_and_empty_files() -> None:
    assert VaultConfig.read(None, None, None) == VaultConfig()
    config = VaultConfig.read(b"", b"{}", b"{}")
    assert (config.daily_folder, config.daily_format, config.templates, config.ignored) == ("", "YYYY-MM-DD", None, ())


@pytest.mark.parametrize("app", [b"[]", b"{", b"\xff\xfe", b'"x"', b"[" * 100_000])
def test_a_file_that_cannot_be_read_is_a_problem(app: bytes) -> None:
    config = VaultConfig.read(app, None, None)
    assert [(p.path, p.code) for p in config.problems] == [(".obsidian/app.json", "vault-settings")]
    assert not config.is_excluded("a.md")


def test_odd_values_are_passed_over() -> None:
    config = VaultConfig.read(b'{"userIgnoreFilters": null}', b'{"folder": 3, "format": null}', b'{"folder": ["x"]}')
    assert (config.ignored, config.daily_folder, config.daily_format, config.templates) == ((), "", "YYYY-MM-DD", None)


def test_a_pattern_that_python_cannot_read_is_a_problem() -> None:
    config = VaultConfig.read(b'{"userIgnoreFilters": ["/(/", "/(?<year>2024)/"]}', None, None)
    assert [p.code for p in config.problems] == ["vault-settings"]
    assert config.is_excluded("x 2024.md")


def test_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / ".obsidian").mkdir()
    (tmp_path / ".obsidian" / "templates.json").write_text('{"folder": "T"}', encoding="utf-8")
    assert VaultConfig.load(tmp_path) == VaultConfig(templates="T")


@pytest.mark.parametrize(
    ("path", "folder", "form", "day"),
    [
        ("daily/2024-05-06.md", "daily", "YYYY-MM-DD", (2024, 5, 6)),
        ("Daily/2024-05-06.MD", "daily/", "YYYY-MM-DD", (2024, 5, 6)),
        ("2024-05-06.md", "", "YYYY-MM-DD", (2024, 5, 6)),
        ("d/2024/05/2024-05-06 Monday.md", "d", "YYYY/MM/YYYY-MM-DD dddd", (2024, 5, 6)),
        ("d/2024/05-May/06.md", "d", "YYYY/MM-MMMM/DD", (2024, 5, 6)),
        ("May 6th, 2024.md", "", "MMMM Do, YYYY", (2024, 5, 6)),
        ("日记/2024年5月6日 星期一.md", "日记", "YYYY年M月D日 dddd", (2024, 5, 6)),
        ("2024-五月-05-06.md", "", "YYYY-MMMM-MM-DD", (2024, 5, 6)),
        ("20240506.md", "", "YYYYMMDD", (2024, 5, 6)),
        ("24-5-6.md", "", "YY-M-D", (2024, 5, 6)),
        ("99-05-06.md", "", "YY-MM-DD", (1999, 5, 6)),
        ("2024-127.md", "", "YYYY-DDDD", (2024, 5, 6)),
        ("2024-W19-1.md", "", "GGGG-[W]WW-E", (2024, 5, 6)),
        ("Day 2024-05-06 at 1230.md", "", "[Day] YYYY-MM-DD [at] HHmm", (2024, 5, 6)),
        ("2024-02-30.md", "", "YYYY-MM-DD", None),
        ("2023-366.md", "", "YYYY-DDDD", None),
        ("2024/06/2024-05-06.md", "", "YYYY/MM/YYYY-MM-DD", None),
        ("2024-W19.md", "", "GGGG-[W]WW", None),
        ("05-06.md", "", "MM-DD", None),
        ("daily/x/2024-05-06.md", "daily", "YYYY-MM-DD", None),
        ("other/2024-05-06.md", "daily", "YYYY-MM-DD", None),
        ("dailyish/2024-05-06.md", "daily", "YYYY-MM-DD", None),
        ("daily/2024-05-06 notes.md", "daily", "YYYY-MM-DD", None),
        ("daily/2024-05-06.txt", "daily", "YYYY-MM-DD", None),
        ("2024-05-06.md", "", "", None),
        ("x(.md", "", "[x](", None),
    ],
)
def test_the_day_of_a_daily_note(path: str, folder: str, form: str, day: tuple[int, int, int] | None) -> None:
    assert daily_date(path, folder, form) == (date(*day) if day else None)


@pytest.mark.parametrize(
    ("name", "siblings", "copy"),
    [
        ("a (Conflicted copy iPhone 202401011200).md", (), True),
        ("a (X's conflicted copy 2024-01-01).md", (), True),
        ("a (conflicted copy 2024-01-01).md", (), True),
        ("a (conflicted copy 2024-01-01 123456).md", (), True),
        ("a (Case Conflict).md", (), True),
        ("a.sync-conflict-20240101-120000-ABCDEFG.md", (), True),
        ("a-LAPTOP.md", ("a.md",), True),
        ("a-DESKTOP-AB12CD.md", ("a.md",), True),
        ("a-DESKTOP-AB12CD.md", ("b.md",), False),
        ("meeting-notes.md", ("meeting.md",), False),
        ("react-API.md", ("react.md",), False),
        ("PROJECT-PLAN.md", ("PROJECT.md",), False),
        ("copy of a.md", ("a.md",), False),
        ("my conflicted copy.md", (), False),
        ("-LAPTOP.md", (".md",), False),
        ("no extension", (), False),
    ],
)
def test_conflict_copies(name: str, siblings: tuple[str, ...], copy: bool) -> None:  # noqa: FBT001
    assert conflict_copy(name, siblings) is copy
