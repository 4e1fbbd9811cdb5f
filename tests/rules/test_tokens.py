"""Counting tokens: characters to bytes, and long texts in pieces without a token more or less."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from palace.embedding import tokens
from palace.embedding.tokens import TokenCounter

WORDS = TokenCounter(lambda text: [match.span() for match in re.finditer(r"\S+", text)])


@given(st.text())
def test_bytes_are_those_of_the_characters(text: str) -> None:
    starts, bytes_ = WORDS.starts(text), WORDS.byte_starts(text)
    assert [len(text[:at].encode("utf-8", "surrogatepass")) for at in starts] == bytes_.tolist()


@settings(max_examples=20, deadline=None)
@given(st.text(st.characters(max_codepoint=0x4E20), max_size=400).map(lambda text: text.replace("\x1c", "")))
def test_a_long_text_has_the_tokens_of_its_pieces(text: str) -> None:
    long = (text + " end\n") * 300 * (1 + (1 << 16) // (len(text) + 5) // 300)
    assert WORDS.starts(long).tolist() == [match.start() for match in re.finditer(r"\S+", long)]


def test_a_text_without_blanks_is_cut_all_the_same() -> None:
    assert WORDS.starts("x" * 200_000).tolist() == [0, 65_536, 131_072, 196_608]


def test_pieces_are_cut_at_blanks() -> None:
    text = "a" * 65_000 + "\n" + "b" * 65_000 + " " + "c" * 1_000
    assert [piece.strip()[:1] for _, piece in tokens._segments(text)] == ["a", "b", "c"]
    assert "".join(piece for _, piece in tokens._segments(text)) == text


def test_nothing_has_no_tokens() -> None:
    assert WORDS.starts("").tolist() == []
    assert WORDS.byte_starts("").tolist() == []
    assert WORDS.count(" \n") == 0


@given(st.text())
def test_a_quicker_way_to_tokens_counts_as_many(text: str) -> None:
    quick = TokenCounter(WORDS._offsets, lambda piece: re.findall(r"\S+", piece))
    assert quick.count(text) == WORDS.count(text) == len(WORDS.starts(text))
