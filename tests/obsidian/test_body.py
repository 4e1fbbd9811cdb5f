"""Headings, block ids and blocks, with their places in the file."""

import itertools

import pytest

from tests.obsidian.reading import read

HEADINGS = [
    ("# One", [(1, "One", 1)]),
    ("####### Seven", []),
    ("#NoSpace", []),
    ("#", [(1, "", 1)]),
    ("   ## In ##", [(2, "In", 1)]),
    ("## a # b#", [(2, "a # b#", 1)]),
    ("#\ttab", [(1, "tab", 1)]),
    ("# See [[Note|x]] and `c` *e*", [(1, "See [[Note|x]] and `c` *e*", 1)]),
    ("One\n===\n\nTwo\n---\n", [(1, "One", 1), (2, "Two", 4)]),
    ("over\ntwo lines\n---\n", [(2, "over two lines", 1)]),
    ("# One\r\n\r\ntext\r\n## Two\r\n", [(1, "One", 1), (2, "Two", 4)]),
    ("# One\r\r## Two\r", [(1, "One", 1), (2, "Two", 3)]),
    ("```\n# no\n```\n\n    # no\n\n<div>\n# no\n</div>\n", []),
    ("> # in a quote\n\n- # in a list\n", []),
    ("---\na: b\n---\n# After\n", [(1, "After", 4)]),
    ("%%\n# in a comment\n%%\n", [(1, "in a comment", 2)]),
]


@pytest.mark.parametrize(("text", "expected"), HEADINGS)
def test_headings(text: str, expected: list[tuple[int, str, int]]) -> None:
    assert [(h.level, h.text, h.line) for h in read(text).headings] == expected


def test_spans_count_from_the_first_byte_of_the_file() -> None:
    data = "\ufeff---\r\ntags: [é]\r\n---\r\n\r\n# 标题 [[链接|名]]\r\n\r\n![[图.png]]\r\n".encode()
    note = read(data)
    heading = note.headings[0]
    assert data[heading.start : heading.end].decode() == "# 标题 [[链接|名]]"
    assert [data[link.start : link.end].decode() for link in note.links] == ["[[链接|名]]", "![[图.png]]"]
    assert [data[b.start : b.end].decode() for b in note.blocks] == ["# 标题 [[链接|名]]", "![[图.png]]"]
    assert data[note.body_start :].startswith(b"\r\n# ")


def test_block_ids_end_a_block() -> None:
    text = "p ^one\n\np ^no\ngoes on ^two\n\n- a ^three\n  - b ^four-4\n\n> q\n^five\n\n# h ^six\n\n^seven\n\n`^no` x^2 ^no end\n"
    assert read(text).block_ids == (
        ("one", 1), ("two", 4), ("three", 6), ("four-4", 7), ("five", 10), ("six", 12), ("seven", 14),
    )  # fmt: skip


KINDS = """---
a: b
---
intro
more

# Heading

- one
  - two
- three

| h | k |
|---|---|
| a | b |

> quote
>
> second

```py
code

code
```

<div>
html
</div>

***

[ref]: http://x
[^1]: foot
"""


def test_blocks_are_the_top_level_ones_and_leave_no_text_out() -> None:
    data = KINDS.encode()
    note = read(data)
    assert [b.kind for b in note.blocks] == [
        "paragraph", "heading", "list", "table", "quote", "code", "html", "rule", "other", "other",
    ]  # fmt: skip
    kept = [data[b.start : b.end].decode() for b in note.blocks]
    assert kept[0] == "intro\nmore"
    assert kept[5] == "```py\ncode\n\ncode\n```"
    assert kept[8] == "[ref]: http://x"
    assert "".join("".join(kept).split()) == "".join(KINDS.partition("---\n")[2].partition("---\n")[2].split())


def pieces(text: str) -> list[list[str]]:
    """Each block's pieces between its cuts."""
    data = text.encode()
    out = []
    for block in read(data).blocks:
        borders = [block.start, *block.cuts, block.end]
        out.append([data[a:b].decode() for a, b in itertools.pairwise(borders)])
    return out


def test_lists_may_be_cut_at_items() -> None:
    assert pieces("- a\n  - b\n- c\n  more\n") == [["- a\n", "  - b\n", "- c\n  more"]]
    assert pieces("1. a\n2. - b\n") == [["1. a\n", "2. - b"]]


def test_tables_may_be_cut_at_rows() -> None:
    assert pieces("|a|\n|-|\n|b|\n|c|\n") == [["|a|\n|-|\n", "|b|\n", "|c|"]]


def test_quotes_may_be_cut_at_inner_paragraphs_and_items() -> None:
    assert pieces("> a\n>\n> b\n> - c\n> - d\n") == [["> a\n>\n", "> b\n", "> - c\n", "> - d"]]


def test_code_and_long_paragraphs_may_be_cut_at_lines() -> None:
    line = "x" * 99 + "\n"
    assert pieces(f"```\n{line * 4}```\n") == [["```\n", line, line, line, line, "```"]]
    assert pieces(line * 4) == [[line, line, line, line[:-1]]]
    assert pieces("short\nparagraph\n") == [["short\nparagraph"]]


def test_long_items_and_quotes_may_be_cut_at_lines_too() -> None:
    line = "  " + "x" * 97 + "\n"
    assert pieces(f"- a\n{line * 3}- b\n") == [["- a\n", line, line, line, "- b"]]


def test_a_cut_in_the_first_line_of_a_block_is_none() -> None:
    assert pieces("- - - a\n") == [["- - - a"]]
