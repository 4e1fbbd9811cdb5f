"""BM25 vectors: one configuration for notes and questions, as the engine makes it."""

from palace.embedding.sparse import Bm25Embedder
from palace.stores.ports import Sparse, SparseEmbedder

BM25: SparseEmbedder = Bm25Embedder()


def shared(note: str, question: str) -> int:
    return len(set(BM25.documents([note])[0].indices) & set(BM25.query(question).indices))


def test_notes_and_questions_meet_after_stemming_folding_and_segmenting() -> None:
    assert shared("She was running to the cafés", "cafe runs") == 2
    assert shared("成年人每天需要蛋白质", "蛋白质") >= 1
    assert shared("東京の図書館で本を読む", "図書館") >= 1


def test_stop_words_and_nothing_weigh_nothing() -> None:
    assert BM25.documents(["", "the of and"]) == [Sparse((), ()), Sparse((), ())]
    assert BM25.query("the") == Sparse((), ())


def test_a_word_that_comes_often_weighs_more_and_every_word_of_a_question_one() -> None:
    once, often = BM25.documents(["zebra lion", "zebra zebra zebra lion"])
    assert max(often.values) > max(once.values)
    assert set(BM25.query("zebra lion zebra").values) == {1.0}


def test_texts_keep_their_order_and_half_characters_are_no_error() -> None:
    a, b = BM25.documents(["zebra", "lion"])
    assert a != b
    assert BM25.documents(["lion", "zebra"]) == [b, a]
    assert BM25.query("zebra \udce9").indices


def test_the_fingerprint_is_the_engines_own() -> None:
    assert Bm25Embedder().fingerprint == BM25.fingerprint
    assert BM25.fingerprint.startswith("bm25-")
