"""An import goes down, never up or sideways; the linter that keeps it is shown a violation of each kind first."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import ROOT

FLOORS = ("palace", "sync", "librarian", "ingest", "injector", "dualwall")


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter with the project's own contract over the floors in a folder."""
    command = [
        sys.executable,
        "-c",
        "from importlinter.cli import lint_imports_command; lint_imports_command()",
        "--no-cache",
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("floors")
    for floor in FLOORS:
        shutil.copytree(ROOT / floor, folder / floor, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def test_the_floors_hold(copy: Path) -> None:
    result = lint(copy)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("palace/planted.py", "import sync"),
        ("palace/planted.py", "from dualwall import cli"),
        ("sync/planted.py", "import librarian"),
        ("librarian/planted.py", "from ingest import chunk"),
        ("injector/planted.py", "import ingest.chunk"),
        ("ingest/planted.py", "def later() -> None:\n    import dualwall.common"),
        ("ingest/planted.py", "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    import sync.run"),
    ],
)
def test_a_planted_violation_is_found(copy: Path, module: str, line: str) -> None:
    planted = copy / module
    planted.write_text(f"{line}\n", encoding="utf-8")
    try:
        result = lint(copy)
    finally:
        planted.unlink()
    assert result.returncode == 1
    assert planted.stem in result.stdout
