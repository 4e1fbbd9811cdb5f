"""The vaults that benches are run on are the same on every machine, and their questions have answers."""

from pathlib import Path

import pytest

from bench import vault


def _files(root: Path) -> dict[str, bytes]:
    return {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def test_the_same_seed_makes_the_same_bytes(tmp_path: Path) -> None:
    vault.generate(tmp_path / "a", 120, seed=3)
    vault.generate(tmp_path / "b", 120, seed=3)
    vault.generate(tmp_path / "c", 120, seed=4)
    assert _files(tmp_path / "a") == _files(tmp_path / "b")
    assert _files(tmp_path / "a") != _files(tmp_path / "c")


def test_a_small_vault_is_the_beginning_of_a_large_one(tmp_path: Path) -> None:
    vault.generate(tmp_path / "small", 60)
    vault.generate(tmp_path / "large", 120)
    large = _files(tmp_path / "large")
    assert {path: large[path] for path in _files(tmp_path / "small")} == _files(tmp_path / "small")
    assert sum(path.endswith(".md") for path in large) == 120


def test_paths_and_names_never_meet() -> None:
    notes = [vault.identity(1, index) for index in range(13_000)]
    assert len({note.path.casefold() for note in notes}) == len(notes)
    assert len({note.question for note in notes}) == len(notes)


def test_each_question_is_answered_by_its_note_alone(tmp_path: Path) -> None:
    vault.generate(tmp_path / "v", 150)
    texts = {path: data.decode() for path, data in _files(tmp_path / "v").items()}
    asked = list(vault.questions(150, count=30))
    assert len(asked) == 30
    for question in asked:
        index = next(i for i in range(150) if vault.identity(1, i).path == question["path"])
        fact = vault.identity(1, index).fact
        assert [path for path, text in texts.items() if fact in text] == [question["path"]]


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.md").write_text("mine")
    with pytest.raises(FileExistsError):
        vault.generate(tmp_path, 5)
    assert _files(tmp_path) == {"mine.md": b"mine"}
