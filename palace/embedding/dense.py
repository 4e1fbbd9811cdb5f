"""Texts to dense vectors by fastembed, one text at a time, so that a vector never depends on its neighbours.

An int8 model computes other vectors for a text in other batches, and mixed lengths make a batch slow; a batch of one
is neither. Speed comes from several threads over one session that has one thread a text.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from palace.embedding import model
from palace.embedding.model import Say
from palace.settings import Embedding
from palace.stores.ports import Embedder, Vector

if TYPE_CHECKING:  # imported when a model is loaded
    from fastembed import TextEmbedding
    from sentencepiece import SentencePieceProcessor

_REMEMBERED = 1000
"""Questions whose vectors are kept, at 2 kB each."""
_FIRST, _LAST = 0, 2
"""Ids of `<s>` and `</s>`."""


class Prefixes(NamedTuple):
    """What is put before a text: models are trained to tell questions from passages by it."""

    query: str
    passage: str

    @classmethod
    def of(cls, embedding: Embedding) -> "Prefixes":
        """Those of the settings, else those of the model's family."""
        usual = cls("query: ", "passage: ") if "e5" in embedding.model.lower() else cls("", "")
        given = (embedding.query_prefix, embedding.passage_prefix)
        return cls(*(own if own is not None else default for own, default in zip(given, usual, strict=True)))


def fingerprint(name: str, identity: str, prefixes: Prefixes) -> str:
    """A model's name and 16 hex digits over all that decides its vectors: weights, vocabulary, pooling, prefixes."""
    digest = hashlib.sha256("\x00".join((identity, *prefixes)).encode()).hexdigest()
    return f"{name}-{digest[:16]}"


def unit(vector: Vector) -> Vector:
    """Unit length, in float16's precision: a vector is the same, fresh or from the cache.

    Raises:
        ValueError: the vector is zero or not finite.
    """
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or length == 0.0:
        raise ValueError("a vector of no direction")
    return (vector / length).astype(np.float16).astype(np.float32)


def load(embedding: Embedding, say: Say | None = None) -> Embedder:
    """The embedder that the settings name. `say` is told when something is fetched or built.

    Raises:
        UnreachableError: the model isn't there and can't be fetched, or its address doesn't answer.
        SettingsError: there is no such model.
    """
    if embedding.provider == "openai":
        from palace.embedding.openai import OpenAIEmbedder  # noqa: PLC0415

        return OpenAIEmbedder(embedding)
    if embedding.model in model.NAMES:
        return _default(embedding, model.ensure(embedding.vocabulary, say))
    return _from_hub(embedding)


@dataclass(frozen=True, slots=True)
class Description:
    """What is known of a loaded model."""

    fingerprint: str
    dimensions: int
    max_tokens: int
    prefixes: Prefixes


class FastEmbedder:
    """The port over one fastembed model, which `engine` loads when the first text comes. Thread-safe."""

    def __init__(self, engine: "Callable[[], TextEmbedding]", description: Description, workers: int) -> None:
        self.fingerprint = description.fingerprint
        self.dimensions = description.dimensions
        self.max_tokens = description.max_tokens
        self._prefixes = description.prefixes
        self._load = engine
        self._loaded: TextEmbedding | None = None
        self._loading = threading.Lock()
        self._workers = ThreadPoolExecutor(workers, thread_name_prefix="embed")
        self._asked = lru_cache(_REMEMBERED)(self._embed)

    def passages(self, texts: Sequence[str]) -> Iterator[Vector]:
        """One vector a text, in order. Given up half way, what has not begun is never computed."""
        return self._workers.map(self._embed, [self._prefixes.passage + text for text in texts])

    def query(self, text: str) -> Vector:
        """The vector of a question, computed by the caller's own thread: it never waits behind passages.

        The last ones are remembered: an agent asks again, and its every turn begins with the question that is open.
        """
        return self._asked(self._prefixes.query + text)

    def close(self) -> None:
        """Give the workers back."""
        self._workers.shutdown(wait=True, cancel_futures=True)

    def _embed(self, text: str) -> Vector:
        whole = text.encode("utf-8", "replace").decode("utf-8")
        vector = unit(np.asarray(next(iter(self._engine().embed([whole], batch_size=1))), np.float32))
        vector.setflags(write=False)  # others may hold it
        return vector

    def _engine(self) -> "TextEmbedding":
        with self._loading:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded


@dataclass(frozen=True, slots=True)
class _Encoding:
    """What fastembed reads of a tokenised text."""

    ids: list[int]
    attention_mask: list[int]


class _Pieces:
    """The default model's tokenizer in fastembed's eyes: in `sentencepiece`, cut at the model's limit."""

    def __init__(self, pieces: "SentencePieceProcessor", limit: int) -> None:
        self._pieces = pieces
        self._room = limit - 2

    def encode_batch(self, texts: Sequence[str]) -> list[_Encoding]:
        """One encoding a text; batches of one need no padding."""
        found = [[_FIRST, *self._pieces.encode(text)[: self._room], _LAST] for text in texts]
        return [_Encoding(ids, [1] * len(ids)) for ids in found]


def _default(embedding: Embedding, folder: Path) -> FastEmbedder:
    prefixes = Prefixes.of(embedding)
    identity = fingerprint(model.NAME, model.identity(embedding.vocabulary), prefixes)
    description = Description(identity, model.DIMENSIONS, model.MAX_TOKENS, prefixes)
    return FastEmbedder(partial(_default_engine, folder), description, embedding.workers)


def _default_engine(folder: Path) -> "TextEmbedding":
    from fastembed import TextEmbedding  # noqa: PLC0415
    from fastembed.common.model_description import ModelSource, PoolingType  # noqa: PLC0415

    from palace.embedding.tokens import load_pieces  # noqa: PLC0415

    name = f"dualwall/{folder.name}"
    if name not in {known["model"] for known in TextEmbedding.list_supported_models()}:
        TextEmbedding.add_custom_model(
            name,
            pooling=PoolingType.MEAN,
            normalization=True,
            sources=ModelSource(hf=name),  # never asked: the path is given
            dim=model.DIMENSIONS,
            model_file="model.onnx",
        )
    engine = TextEmbedding(
        name, cache_dir=str(folder.parent), threads=1, lazy_load=True, specific_model_path=str(folder)
    )
    # fastembed loads tokenizer.json, at 280 MB and 1 s, only where there is no tokenizer yet.
    inner: Any = engine.model  # typed for a tokenizer of `tokenizers`; read for `encode_batch` alone
    inner.tokenizer = _Pieces(load_pieces(folder), model.MAX_TOKENS)
    inner.load_onnx_model()
    return engine


def _from_hub(embedding: Embedding) -> FastEmbedder:
    from fastembed import TextEmbedding  # noqa: PLC0415

    from palace.embedding.hub import locate  # noqa: PLC0415

    found = locate(embedding.model)
    engine = TextEmbedding(found.name, threads=1, specific_model_path=str(found.folder))
    prefixes = Prefixes.of(embedding)
    truncation = getattr(getattr(engine.model, "tokenizer", None), "truncation", None) or {}
    limit = int(truncation.get("max_length", model.MAX_TOKENS))
    identity = fingerprint(found.name.rpartition("/")[2], found.identity, prefixes)
    return FastEmbedder(lambda: engine, Description(identity, found.dimensions, limit, prefixes), embedding.workers)
