"""The palace of vaults that other people wrote, and of one written to break it."""

import stat
import tarfile
from pathlib import Path

import pytest

from librarian.sift import identity
from librarian.verify import verify
from tests.palaces import House
from tests.support import shared


def unpacked(folder: Path, name: str) -> House:
    """A house whose mirror is a vault from outside; links in it stay links."""
    house = House(folder / "data", {})
    house.mirror("").mkdir(parents=True)
    with tarfile.open(shared() / f"data/vaults/{name}.tar.gz") as archive:
        archive.extractall(house.mirror(""), filter="fully_trusted")  # noqa: S202 - its links are what is tested
    return house


@pytest.mark.slow
@pytest.mark.parametrize("name", ["synthetic-adversarial", "fixture-tasks-demo", "kepano", "fixture-obsidiantools"])
def test_every_file_stands_in_the_palace_or_is_listed_with_its_reason(tmp_path: Path, name: str) -> None:
    house = unpacked(tmp_path, name)
    house.build()
    entries, skipped = house.entries, house.skipped
    shelved = {entry.mirror for entry in entries.values()}
    for file in house.mirror("").rglob("*"):
        path = file.relative_to(house.mirror(""))
        if not stat.S_ISDIR(file.lstat().st_mode) and str(path) not in shelved:
            assert any(identity(str(part)) in skipped for part in (path, *path.parents)), path
    assert not any(house.mirror(path).is_symlink() for path in shelved)
    assert verify(house.settings) == []
    assert not house.build().changed
