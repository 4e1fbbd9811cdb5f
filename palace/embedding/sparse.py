"""Texts to BM25 vectors by the engine's own embedder: one configuration for notes and questions, here and on a server.

The engine folds, stops, stems and segments Chinese and Japanese. Its calls hold the interpreter (5 MB of English or
2.5 MB of Chinese a second), so where others are being served it belongs in a process of its own.
"""

import hashlib
from collections.abc import Iterable

from qdrant_edge import Bm25, Bm25Config, SparseVector, TokenizerType

from palace.stores.ports import Sparse

_PROBE = "Running cafés, 我们每天吃蛋白质; 東京の図書館, 도서관에서 the 3rd e-mail_address"


class Bm25Embedder:
    """The port over the engine's `Bm25`. The fingerprint tells what the engine makes of a probe: it changes with it."""

    def __init__(self) -> None:
        self._engine = Bm25(
            Bm25Config(tokenizer=TokenizerType.Multilingual, language="english", ascii_folding=True, k=1.0)
        )
        seen = (self.documents([_PROBE]), self.query(_PROBE))
        self.fingerprint = f"bm25-{hashlib.sha256(repr(seen).encode()).hexdigest()[:16]}"

    def documents(self, texts: Iterable[str]) -> list[Sparse]:
        """One vector a text, in order; a text of stop words alone has an empty one."""
        return [_sparse(self._engine.embed_document(_whole(text))) for text in texts]

    def query(self, text: str) -> Sparse:
        """The vector of a question: every word weighs one, the store's IDF does the rest."""
        return _sparse(self._engine.embed_query(_whole(text)))


def _sparse(vector: SparseVector) -> Sparse:
    return Sparse(tuple(vector.indices), tuple(vector.values))


def _whole(text: str) -> str:
    """The text with half characters replaced: the engine takes none."""
    return text.encode("utf-8", "replace").decode("utf-8")
