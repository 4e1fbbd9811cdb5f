"""Ids are the same every time, and no two things share one."""

from palace.vocabulary import NoteRef

NOTE = NoteRef("global", "main", "a.md")


def test_a_chunks_id_tells_every_heading_path_from_every_other() -> None:
    paths = [(), ("",), ("", ""), ("a",), ("a", ""), ("", "a"), ("a", "b"), ("a\x1fb",), ("a b",)]
    ids = {NOTE.chunk_id(path, ordinal) for path in paths for ordinal in range(3)}
    assert len(ids) == 3 * len(paths)
    assert NOTE.chunk_id((), 0) == NoteRef("global", "main", "a.md").chunk_id((), 0)


def test_a_notes_id_is_of_its_cube_its_vault_and_its_path() -> None:
    others = [NoteRef("scout", "main", "a.md"), NoteRef("global", "two", "a.md"), NoteRef("global", "main", "b.md")]
    assert len({NOTE.id, *(other.id for other in others)}) == 4
