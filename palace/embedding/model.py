"""The default model, multilingual-e5-small in int8, built once into the user's cache. Light to import.

Several processes may ask at once: one builds under a lock, the others wait and find it. What is built is complete or
not there, because its folder is renamed into place.
"""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeAlias

import platformdirs

from palace.errors import UnreachableError

Vocabulary: TypeAlias = Literal["all", "en-zh"]
Say: TypeAlias = Callable[[str], None]
"""Where a line of progress goes."""

NAME = "multilingual-e5-small"
NAMES = frozenset({NAME, f"intfloat/{NAME}"})
"""What settings may call it."""
DIMENSIONS = 384
MAX_TOKENS = 512
PIECES_FILE = "sentencepiece.model"
"""The tokenizer in the model's folder, for `sentencepiece`; `tokenizer.json` is the same one for fastembed."""

_RECIPE = "1"
"""Goes up with every change of the build that changes vectors; then vectors of before are of another model."""
_RECEIPT = "built.json"


def identity(vocabulary: Vocabulary) -> str:
    """SHA-256 of what decides a vector, prefixes left out: weights, vocabulary, quantisation, pooling."""
    from palace.embedding.build.fetch import WEIGHTS_SHA256  # noqa: PLC0415 - only names here, none of the building

    parts = (NAME, WEIGHTS_SHA256, vocabulary, _RECIPE, "mean", str(MAX_TOKENS))
    return hashlib.sha256("\x00".join(parts).encode()).hexdigest()


def cache_folder() -> Path:
    """Where models are kept: `$DUALWALL_CACHE`, else the platform's cache folder."""
    if chosen := os.environ.get("DUALWALL_CACHE"):
        return Path(chosen).expanduser().absolute()
    return platformdirs.user_cache_path("dualwall", appauthor=False)


def folder(vocabulary: Vocabulary = "all") -> Path:
    """Where the built model is, or will be."""
    return cache_folder() / "models" / f"{NAME}-{vocabulary}-{_RECIPE}"


def is_built(vocabulary: Vocabulary = "all") -> bool:
    """Whether the model is there with every file in its size."""
    where = folder(vocabulary)
    try:
        sizes = json.loads((where / _RECEIPT).read_text(encoding="utf-8"))
        return all((where / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError):
        return False


def ensure(vocabulary: Vocabulary = "all", say: Say | None = None) -> Path:
    """The folder of the built model; builds it first if it isn't there (once: 91 MB fetched, some 10 seconds).

    Raises:
        UnreachableError: the weights can't be fetched, or the cache can't be written.
    """
    where = folder(vocabulary)
    if is_built(vocabulary):
        return where
    try:
        where.parent.mkdir(parents=True, exist_ok=True)
        with _locked(where.parent / "lock"):
            if not is_built(vocabulary):
                _build(vocabulary, where, say or (lambda _: None))
    except OSError as error:
        raise UnreachableError(
            f"The embedding model can't be written to {where.parent}: {error}",
            "Make room or give access there, or name another folder by DUALWALL_CACHE.",
        ) from error
    return where


def _build(vocabulary: Vocabulary, where: Path, say: Say) -> None:
    from palace.embedding.build import fetch, graph, pieces  # noqa: PLC0415 - onnx is heavy and only needed here
    from palace.embedding.build.weights import Weights  # noqa: PLC0415

    for left in (*where.parent.glob(".build-*"), *where.parent.glob(".fetch-*")):
        shutil.rmtree(left, ignore_errors=True)  # of a build that was killed: the lock says that none is running
    weights = Weights(fetch.weights(where.parent, say))
    say(f"Building the embedding model in {where}")
    kept = weights.kept(vocabulary)
    with tempfile.TemporaryDirectory(dir=where.parent, prefix=".build-") as name:
        scratch = Path(name) / "model"
        scratch.mkdir()
        graph.write(weights, kept, scratch)
        pieces.write([weights.pieces[number] for number in kept], weights.shape, scratch)
        sizes = {file.name: file.stat().st_size for file in sorted(scratch.iterdir())}
        (scratch / _RECEIPT).write_text(json.dumps(sizes), encoding="utf-8")
        for file in scratch.iterdir():
            _settle(file)
        shutil.rmtree(where, ignore_errors=True)
        scratch.rename(where)


def _settle(file: Path) -> None:
    """On disk before the rename, so that a power cut leaves no folder of empty files."""
    with file.open("rb") as opened:
        os.fsync(opened.fileno())


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
