"""Chunks follow headings, keep blocks whole where they fit, and lose no text."""

import re
import time

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.chunk import Sizes, chunk_note, passage_of
from palace.obsidian.note import read_note
from palace.vocabulary import Chunk, NoteRef

REF = NoteRef("global", "main", "a/Note.md")


class Words:
    """A token a word, and one for each character beyond ASCII."""

    def byte_starts(self, text: str) -> npt.NDArray[np.int64]:
        found = re.finditer(rb"[!-~]+|[\xc2-\xf4][\x80-\xbf]+", text.encode())
        return np.array([m.start() for m in found], np.int64)


def chunks(text: str, target: int = 20, limit: int = 512) -> list[Chunk]:
    data = text.encode()
    return chunk_note(read_note(data, REF.path), data, REF, "Note", Words(), sizes=Sizes.of(target, limit))


def test_each_heading_opens_a_chunk_and_its_path_stands_in_the_passage_alone() -> None:
    found = chunks("# One\nfirst\n\n## Two\nsecond\n\n# Three\nthird\n")
    assert [(c.heading_path, c.text) for c in found] == [
        (("One",), "first"),
        (("One", "Two"), "second"),
        (("Three",), "third"),
    ]
    assert found[1].passage == "Note > One > Two\nsecond"
    assert [c.lines for c in found] == [(2, 2), (5, 5), (8, 8)]


def test_a_heading_without_text_lives_on_in_its_children_or_is_its_own_text() -> None:
    assert [(c.heading_path, c.text) for c in chunks("# Empty\n## Child\ntext\n# Last\n")] == [
        (("Empty", "Child"), "text"),
        (("Last",), "# Last"),
    ]


def test_the_same_heading_twice_gives_two_ids() -> None:
    found = chunks("# Log\na\n\n# Log\nb\n")
    assert [c.ordinal for c in found] == [0, 1]
    assert found[0].id != found[1].id


def test_a_heading_inside_a_fence_is_text() -> None:
    found = chunks("# Code\n```\n# no heading\n```\n")
    assert [c.heading_path for c in found] == [("Code",)]
    assert "# no heading" in found[0].text


def test_text_before_the_first_heading_has_no_heading_path() -> None:
    assert [(c.heading_path, c.text) for c in chunks("intro\n\n# A\nx\n")] == [((), "intro"), (("A",), "x")]


def test_paragraphs_are_packed_up_to_the_target_and_not_over_it() -> None:
    found = chunks("\n\n".join(" ".join(f"w{i}{j}" for j in range(8)) for i in range(6)), target=20)
    assert [len(c.text.split()) for c in found] == [16, 16, 16]


def test_a_list_that_fits_the_model_stays_whole() -> None:
    text = "".join(f"- item number {i} here\n" for i in range(6))  # 30 tokens, target 20, most 30
    assert len(chunks(text, target=20)) == 1


def test_a_long_table_is_cut_between_rows() -> None:
    rows = "".join(f"| a{i} | b{i} |\n" for i in range(60))
    found = chunks(f"| h | k |\n|---|---|\n{rows}", target=40)
    assert len(found) > 1
    assert all(line.startswith("|") and line.endswith("|") for c in found for line in c.text.splitlines())


def test_one_endless_line_is_cut_at_sentences_then_blanks_then_tokens() -> None:
    sentences = chunks("One two three four five. " * 30, target=20)
    assert all(c.text.endswith(".") for c in sentences)
    assert all(len(c.text.split()) <= 30 for c in chunks("word " * 500, target=20))
    assert all(len(c.text) <= 30 for c in chunks("字" * 500, target=20))


def test_chinese_is_cut_at_its_own_full_stop() -> None:
    found = chunks("这是第一句话，很短。" * 20, target=20)
    assert all(c.text.endswith("。") for c in found)


def test_properties_alone_are_the_text() -> None:
    assert [c.text for c in chunks("---\nrating: 5\n---\n")] == ["---\nrating: 5\n---"]
    assert chunks("") == []
    assert chunks("   \n\n") == []


def test_changing_one_paragraph_changes_one_chunk() -> None:
    sections = [f"# H{i}\n" + " ".join(f"w{i}" for _ in range(15)) + "\n\n" for i in range(20)]
    before = chunks("".join(sections))
    sections[7] = "# H7\nsomething else\n\n"
    after = chunks("".join(sections))
    assert len({c.passage_sha256 for c in before} - {c.passage_sha256 for c in after}) == 1
    assert {c.id for c in before} == {c.id for c in after}


def test_the_context_of_a_passage_is_capped_and_never_says_the_title_twice() -> None:
    assert passage_of("T", ("T", "A"), "x") == "T > A\nx"
    assert len(passage_of("t" * 300, ("h" * 300,), "x")) == 202


def test_time_is_linear_in_the_size_of_one_line() -> None:
    def seconds(words: int) -> float:
        text = "word " * words
        start = time.process_time()
        chunks(text, target=200)
        return time.process_time() - start

    seconds(1000)
    assert seconds(80_000) < 40 * max(seconds(8_000), 0.01)  # quadratic would be 100


_LINES = st.lists(
    st.sampled_from(
        [
            "# One",
            "## Two",
            "text one two three",
            "- item",
            "| a | b |",
            "```",
            "> quote",
            "",
            "字字字。字",
            "tag #x",
            "---",
            "[[l]]",
        ]
    ),
    max_size=40,
)


@given(_LINES, st.sampled_from([5, 20, 60]))
def test_no_text_is_lost_and_no_chunk_overlaps(lines: list[str], target: int) -> None:
    text = "\n".join(lines)
    data = text.encode()
    note = read_note(data, REF.path)
    found = chunks(text, target=target)
    covered = bytearray(len(data))
    for c in found:
        assert data[c.start : c.end].decode() == c.text
        assert not any(covered[c.start : c.end])
        covered[c.start : c.end] = b"\x01" * (c.end - c.start)
    for h in note.headings:
        covered[h.start : h.end] = b"\x01" * (h.end - h.start)
    if found and found[0].start >= note.body_start:
        left = bytes(b for b, c in zip(data[note.body_start :], covered[note.body_start :], strict=True) if not c)
        assert left.strip() == b""
    assert len({c.id for c in found}) == len(found)


@pytest.mark.parametrize(("target", "limit"), [(200, 512), (480, 512), (200, 256), (32, 128)])
def test_sizes_leave_room_for_the_context(target: int, limit: int) -> None:
    sizes = Sizes.of(target, limit)
    assert 16 <= sizes.target <= sizes.most < limit
