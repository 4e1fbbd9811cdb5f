"""What tests share: where third-party test data is, and how a test says that it is absent."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def shared() -> Path:
    """The folder of test data that is not part of the project; skips the test where there is none."""
    folder = Path(os.environ.get("DUALWALL_SHARED", ROOT.parent / "shared"))
    if not (folder / "data").is_dir():
        pytest.skip("needs ../shared (third-party test data), which is not part of a clone")
    return folder
