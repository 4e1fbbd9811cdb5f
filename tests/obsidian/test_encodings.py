"""Bytes that are text, bytes that are none, and what stands between."""

import codecs

import pytest

from tests.obsidian.reading import codes, read

NOTE = """---
title: 测试 test
tags: [a, b/c]
aliases: [别名, One]
---
# Heading

Body with #inline and #巢状/标签 words, [[Link|alias]].
"""


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_line_ends_and_a_bom_change_nothing_but_places(end: str, mark: str) -> None:
    plain, note = read(NOTE), read(mark + NOTE.replace("\n", end))
    assert note.properties == plain.properties
    assert note.tags == plain.tags
    assert note.aliases == plain.aliases
    assert [(h.level, h.text, h.line) for h in note.headings] == [(1, "Heading", 6)]
    assert [(k.link, k.alias, k.line) for k in note.links] == [("Link", "alias", 8)]
    assert note.problems == ()


def test_mixed_line_ends_are_counted_as_editors_count_them() -> None:
    note = read("a\r\nb\rc\n#x\r\r\n#y")
    assert [(t.name, t.line) for t in note.tags] == [("x", 4), ("y", 6)]


@pytest.mark.parametrize(
    "data",
    [
        codecs.BOM_UTF16_LE + NOTE.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + NOTE.encode("utf-16-be"),
        codecs.BOM_UTF32_LE + NOTE.encode("utf-32-le"),
        "ascii text without a mark, twice as wide".encode("utf-16-le"),
        NOTE.encode("gb18030"),
        "日本語".encode("shift-jis"),
        "caf\xe9".encode("latin-1"),
        b"cut off \xe6\xb5",
        b"\x00\x01\x02\x00\x00binary",
    ],
)
def test_other_encodings_are_a_problem_and_never_mojibake(data: bytes) -> None:
    note = read(data)
    assert not note.text_encoding_ok
    assert [p.code for p in note.problems] == ["not-utf8"]
    assert "UTF-8" in note.problems[0].hint
    assert (note.properties, note.tags, note.links, note.headings, note.blocks) == ({}, (), (), (), ())


def test_the_line_of_the_first_wrong_byte_is_told() -> None:
    assert codes(b"one\ntwo\nthr\xe9\n") == [("not-utf8", 3)]


@pytest.mark.parametrize("character", ["\x00", "\x07", "\x1b", "\x7f"])
def test_control_characters_are_a_problem_and_the_note_is_read(character: str) -> None:
    text = f"# Title\n\nbefore{character}after #x\n"
    assert codes(text) == [("control-character", 3)]
    assert [t.name for t in read(text).tags] == ["x"]


def test_nothing_at_all() -> None:
    for text in ("", "\ufeff", " \n\t\r\n"):
        note = read(text)
        assert note.text_encoding_ok
        assert (note.blocks, note.problems) == ((), ())
