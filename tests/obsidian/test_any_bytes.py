"""What holds for every file, whatever its bytes are."""

from hypothesis import assume, given
from hypothesis import strategies as st

from tests.obsidian.reading import body, read

PIECES = [
    "---\n", "a: b\n", "tags: [a]\n", "tags: x\n", "{{t}}", "- ", "  - ", "1. ", "> ", ">", "# ", "## ", "#", "#tag", "#标签", "\n", "\n\n",
    "\r\n", "\r", "[[", "]]", "![[", "|", "\\", "\\|", "[", "]", "](", "(", ")", "a.md", "%20", "%", "%%", "`", "```\n", "~~~", "    ", "\t",
    "$", "$$", "<!--", "-->", "<div>", "</div>", "<b>", "*", "**", "_", "~~", "==", "| a | b |\n", "|--|--|\n", "^id", " ^id\n", "[^1]",
    "[^1]: ", "[r]: u\n", "word", " ", "词语", "é", "\u3000", "\u200b", "\ufeff", "\x00", "&amp;", "https://x.y/", "===\n", "***\n", "[ ] ",
    "&a ", "*a", "🎉", "\u00a0",
]  # fmt: skip
TEXTS = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
FILES = st.one_of(st.binary(max_size=200), st.text(max_size=100).map(str.encode), TEXTS.map(str.encode))


def line_of(data: bytes, offset: int) -> int:
    before = data[:offset]
    ends = before.count(b"\n") + before.count(b"\r") - before.count(b"\r\n")
    return ends + 1 - (before.endswith(b"\r") and data[offset : offset + 1] == b"\n")


@given(FILES)
def test_reading_never_raises_and_a_note_is_text_or_a_problem(data: bytes) -> None:
    for note in (read(data), read(data, "lenient")):
        assert note.text_encoding_ok or note.problems
        assert all(p.line is None or 1 <= p.line <= line_of(data, len(data)) for p in note.problems)


@given(FILES)
def test_spans_lie_in_the_file_in_order_with_their_lines(data: bytes) -> None:
    note = read(data)
    assert 0 <= note.body_start <= len(data)
    for heading in note.headings:
        assert note.body_start <= heading.start < heading.end <= len(data)
        assert heading.line == line_of(data, heading.start)
    for link in note.links:
        assert 0 <= link.start < link.end <= len(data)
        assert link.line == line_of(data, link.start)
        assert (link.key is None) == (link.start >= note.body_start)
    inner = [link.start for link in note.links if link.key is None]
    assert inner == sorted(inner)
    assert all(1 <= tag.line <= line_of(data, len(data)) for tag in note.tags)
    assert all(1 <= line <= line_of(data, len(data)) for _, line in note.block_ids)


@given(FILES)
def test_blocks_are_in_order_and_leave_no_text_out(data: bytes) -> None:
    note = read(data)
    if not note.text_encoding_ok:
        return
    at = note.body_start
    for block in note.blocks:
        assert not data[at : block.start].removeprefix(b"\xef\xbb\xbf").strip()
        assert at <= block.start < block.end <= len(data)
        assert list(block.cuts) == sorted(set(block.cuts))
        assert all(block.start < cut < block.end for cut in block.cuts)
        assert data[block.end - 1 : block.end].strip()
        data[block.start : block.end].decode()  # no border inside a character
        at = block.end
    assert not data[at:].removeprefix(b"\xef\xbb\xbf").strip()
    starts = {block.start for block in note.blocks if block.kind == "heading"}
    assert starts == {heading.start for heading in note.headings}


@given(FILES)
def test_each_tag_stands_where_it_was_found(data: bytes) -> None:
    if not read(data).text_encoding_ok:
        return
    _, found = body(data)
    for name, at in found.tags:
        assert data[at:].startswith(b"#" + name.encode())
        assert not name.isdigit()
        assert not any(c.isspace() for c in name)


@given(TEXTS)
def test_a_bom_only_moves_the_spans(text: str) -> None:
    assume(not text.startswith("\ufeff") and "\x00" not in text)  # NULs count by their share
    plain, marked = read(text), read("\ufeff" + text)
    assert [t.name for t in plain.tags] == [t.name for t in marked.tags]
    assert [(h.text, h.start + 3) for h in plain.headings] == [(h.text, h.start) for h in marked.headings]
    assert [(b.kind, b.start + 3, b.end + 3) for b in plain.blocks] == [(b.kind, b.start, b.end) for b in marked.blocks]
