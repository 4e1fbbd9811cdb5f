"""The folder of the embedded engine: opened by one process, made over in a child process, swapped by one rename.

STORE/store.json    which model and dimensions, and which shard folder is the live one
STORE/shard-000001  the engine's own files
STORE/tail          how many points changed since the shard was last optimised: a hint
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from qdrant_edge import (
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    HnswIndexConfig,
    KeywordIndexParams,
    Memory,
    Modifier,
    ScalarQuantizationConfig,
    ScalarType,
    UpdateOperation,
)

from palace.errors import BusyError, DualwallError, ModelMismatchError, StoreError, UnreachableError
from palace.stores.edge_payload import FLAT
from palace.stores.filters import BM25, DENSE

_FORMAT = 2
_META = "store.json"
_TAIL = "tail"
_SHARD = re.compile(r"shard-(\d{6,})")
_REBUILD = "Run `dualwall ingest --rebuild`: the store is made again from your notes."
_OPTIMISE = """
import sys
from qdrant_edge import EdgeShard
shard = EdgeShard.load(sys.argv[1])
shard.optimize()
shard.flush()
shard.close()
"""
_HOT = frozenset(FLAT) - {"note_id"}
"""Payload keys that searches filter by; their indexes stay in memory."""


@dataclass(frozen=True, slots=True)
class Meta:
    """What stands in store.json."""

    format: int
    model: str
    dimensions: int
    shard: str


class ShardFolder:
    """One store's folder. `open` takes the engine's lock; it is given back when the last shard object is gone."""

    def __init__(self, path: Path, dimensions: int, model: str) -> None:
        self.path = path
        self._dimensions = dimensions
        self._model = model
        self._shard = ""

    def open(self) -> EdgeShard:
        """The live shard, made if there is none.

        Raises BusyError when another process holds it, ModelMismatchError for vectors of another model, StoreError for
        a damaged folder, UnreachableError when the folder cannot be used.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            meta = self._read_meta()
            shard = self._create() if meta is None else self._load(meta)
            self.sweep()
        except OSError as error:
            raise _unusable(self.path, error) from error
        return shard

    def made_over(self) -> EdgeShard:
        """Optimise a copy of the live shard in a child process, make it the live one and open it.

        The caller has flushed, and writes nothing meanwhile; searches go on in the old shard. Raises StoreError when it did not work; then the old shard is still the live one.
        """
        name = f"shard-{self._newest() + 1:06d}"
        copy = self.path / name
        try:
            shutil.copytree(self.path / self._shard, copy)
            _optimise_in_child(copy)
            _sync(copy)
            with engine("opening", copy):
                fresh = EdgeShard.load(str(copy))
            self._write_meta(name)
        except (OSError, StoreError) as error:
            shutil.rmtree(copy, ignore_errors=True)
            raise StoreError(
                f"{self.path} could not be optimised: {error}", "It goes on as it was; is the disk full?"
            ) from error
        return fresh

    def read_tail(self) -> int:
        """The hint of the last time; 0 when there is none."""
        try:
            return int((self.path / _TAIL).read_text("ascii"))
        except (OSError, ValueError):
            return 0

    def write_tail(self, tail: int) -> None:
        """Leave the hint for the next time."""
        with suppress(OSError):
            (self.path / _TAIL).write_text(str(tail), "ascii")

    def _read_meta(self) -> Meta | None:
        file = self.path / _META
        try:
            meta = Meta(**json.loads(file.read_text("utf-8")))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise StoreError(f"{file} is damaged: {error}.", _REBUILD) from error
        if meta.format != _FORMAT:
            raise StoreError(f"{self.path} was written by another version of Dualwall.", _REBUILD)
        if (meta.model, meta.dimensions) != (self._model, self._dimensions):
            stored, wanted = f"{meta.model} ({meta.dimensions})", f"{self._model} ({self._dimensions})"
            raise ModelMismatchError(
                f"{self.path} holds vectors of {stored}; the settings name {wanted}. They cannot be compared.",
                "Run `dualwall ingest --rebuild` to embed your notes with the new model, or name the old one again.",
            )
        return meta

    def _write_meta(self, shard: str) -> None:
        meta = Meta(_FORMAT, self._model, self._dimensions, shard)
        draft = self.path / f"{_META}.new"
        with draft.open("w", encoding="utf-8") as out:
            out.write(json.dumps(asdict(meta), indent=1))
            out.flush()
            os.fsync(out.fileno())
        draft.replace(self.path / _META)
        _sync_folder(self.path)
        self._shard = shard

    def _load(self, meta: Meta) -> EdgeShard:
        folder = self.path / meta.shard
        if not any((folder / "segments").glob("*")):
            raise StoreError(f"{folder} is gone or empty.", _REBUILD)
        with engine("opening", folder):
            shard = EdgeShard.load(str(folder))
        if self._read_meta() != meta:  # another process made it over between the two lines above
            shard.close()
            raise _busy(self.path)
        self._shard = meta.shard
        return shard

    def _create(self) -> EdgeShard:
        """A new shard with its indexes; what a killed creation left is begun again."""
        name = "shard-000001"
        folder = self.path / name
        ours = {name, _TAIL, f"{_META}.new"}
        if strangers := [p.name for p in self.path.iterdir() if p.name not in ours and not p.name.startswith(".")]:
            raise StoreError(
                f"{self.path} holds {strangers[0]} but no {_META}: it is no store of Dualwall.",
                "Name another data folder, or move these files away.",
            )
        if folder.exists():
            with suppress(StoreError), engine("opening", folder):  # BusyError comes through: another process is at it
                EdgeShard.load(str(folder)).close()
            shutil.rmtree(folder)
        with engine("creating", folder):
            shard = EdgeShard.create(str(folder), _config(self._dimensions))
            for key in FLAT:
                shard.update(UpdateOperation.create_field_index(key, _index(key)))
            shard.flush()
        self._write_meta(name)
        return shard

    def sweep(self) -> None:
        """Remove shards that are not the live one: what an optimising process left when it was killed."""
        for folder in self.path.iterdir():
            if _SHARD.fullmatch(folder.name) and folder.name != self._shard:
                shutil.rmtree(folder, ignore_errors=True)

    def _newest(self) -> int:
        return max(int(m[1]) for p in self.path.iterdir() if (m := _SHARD.fullmatch(p.name)))


def discard(path: Path) -> None:
    """Delete a store that will be made again. Raises BusyError when a process holds it."""
    try:
        for folder in path.glob("shard-*"):
            with suppress(StoreError), engine("opening", folder):
                EdgeShard.load(str(folder)).close()
        if path.exists():
            shutil.rmtree(path)
    except OSError as error:
        raise _unusable(path, error) from error


@contextmanager
def engine(doing: str, folder: Path | None = None) -> Iterator[None]:
    """Turn what the engine raises (a bare Exception, or ValueError for a malformed id) into an error of ours."""
    try:
        yield
    except Exception as error:
        if type(error) not in {Exception, ValueError, TypeError}:
            raise
        raise _translated(str(error), doing, folder) from error


def _translated(text: str, doing: str, folder: Path | None) -> DualwallError:
    where = f" {folder}" if folder else ""
    if "WouldBlock" in text and folder:
        return _busy(folder.parent)
    if "No space left" in text or "os error 28" in text:
        return StoreError(
            f"The disk is full: {doing} the vector store{where} failed.", "Free some space, then run it again."
        )
    return StoreError(f"The vector store{where} failed at {doing}: {text}.", _REBUILD)


def _busy(path: Path) -> BusyError:
    return BusyError(
        f"Another process holds the vector store in {path}.",
        "Ask it (`dualwall serve` answers the other commands), or wait until it ends.",
    )


def _unusable(path: Path, error: OSError) -> UnreachableError:
    return UnreachableError(
        f"{path} cannot be used: {error.strerror}.", "Check the folder, its permissions and the disk."
    )


def _config(dimensions: int) -> EdgeConfig:
    """Flat int8: no graph is built, since filtered graphs return wrong neighbours for rooms unrelated to the vectors.

    In memory are the quantised vectors, which every query reads whole, and the indexes of `_HOT`; the rest is read where
    it lies, so that a large palace costs little memory and opens at once. (`Cached` vectors took 20 s to open on a busy disk.)
    """
    return EdgeConfig(
        vectors={DENSE: EdgeVectorParams(size=dimensions, distance=Distance.Cosine, memory=Memory.Cold)},
        sparse_vectors={BM25: EdgeSparseVectorParams(modifier=Modifier.Idf, memory=Memory.Cold)},
        hnsw_config=HnswIndexConfig(m=0, ef_construct=100, full_scan_threshold=10_000),
        quantization_config=ScalarQuantizationConfig(type=ScalarType.Int8, memory=Memory.Pinned),
        payload_memory=Memory.Cold,
        id_tracker_memory=Memory.Cold,
        optimizers=EdgeOptimizersConfig(indexing_threshold=1_000),  # KB; `EdgeVectors.optimize` decides whether it pays
    )


def _index(key: str) -> KeywordIndexParams:
    return KeywordIndexParams(is_tenant=key == "cube_id", memory=None if key in _HOT else Memory.Cold)


def _optimise_in_child(folder: Path) -> None:
    """The engine's calls hold the interpreter, `optimize` for many seconds, and a fork of an opened engine hangs.

    In a session of its own: Ctrl-C ends the parent's wait, which ends the child.
    """
    command = [sys.executable, "-c", _OPTIMISE, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, start_new_session=True)
    if done.returncode != 0:
        said = done.stderr.strip().rpartition("\n")[2] or f"exit {done.returncode}"
        raise StoreError(f"The process that optimises {folder} failed: {said}", "Run the command again.")


def _sync(folder: Path) -> None:
    """Everything below on the disk, before the old shard goes."""
    for base, _, files in os.walk(folder):
        for file in files:
            with (Path(base) / file).open("rb") as opened:
                os.fsync(opened.fileno())
        _sync_folder(Path(base))


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
