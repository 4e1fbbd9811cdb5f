"""What a question becomes before it is asked, and how much of it one chunk covers."""

import pytest

from palace.errors import UsageError
from palace.search.legs import MOST_CHARACTERS, Coverage, FixedState, clean
from palace.stores.ports import Sparse
from palace.walls import Reader
from tests.flows.searching import Leaf, SmallPalace

ME = Reader("me", frozenset({"global"}))


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("  a   question\n", "a question"),
        ("zero\u200bwidth", "zerowidth"),
        ("nul\x00here", "nul here"),
        ("全角　空格", "全角 空格"),
        ("half \ud800 pair", "half ? pair"),
    ],
)
def test_a_question_is_cleaned(query: str, text: str) -> None:
    assert clean(query) == (text, ())


@pytest.mark.parametrize("query", ["", "   ", "\n\t", "\u200b\u200d", "\x00"])
def test_an_empty_question_is_refused(query: str) -> None:
    with pytest.raises(UsageError, match="empty"):
        clean(query)


def test_a_long_question_is_cut_between_words_and_says_so() -> None:
    text, hints = clean("word " * 1000)
    assert len(text) <= MOST_CHARACTERS
    assert text.endswith("word")
    assert len(hints) == 1
    text, _ = clean("长" * 5000)
    assert len(text) == MOST_CHARACTERS


def test_coverage_is_the_share_of_what_one_chunk_could_have() -> None:
    leaves = [Leaf("a", ("rose garden",)), Leaf("b", ("rose bush",)), Leaf("c", ("stone wall",))]
    palace = SmallPalace(leaves)
    searcher = palace.searcher()
    coverage, scope = Coverage(palace.vectors, FixedState()), ME.scope()

    def covered(text: str) -> float:
        sparse = searcher.sparse.query(text)
        top = palace.vectors.sparse(sparse, scope, 1)
        return coverage(sparse, top[0].score if top else 0.0, scope)

    assert covered("rose garden") == pytest.approx(1.0)
    assert covered("rose") == pytest.approx(1.0)
    assert 0.3 < covered("garden wall") < 0.7
    assert covered("rose quantum chromodynamics") < 0.3
    assert covered("quantum") == 0.0
    assert coverage(Sparse((), ()), 0.0, scope) == 0.0
