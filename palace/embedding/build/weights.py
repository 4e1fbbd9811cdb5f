"""The published weights of multilingual-e5-small: a BERT of 12 layers in groups of 32 four-bit numbers.

Layout of the file, little-endian: a header (`_HEADER`); piece offsets, scores and UTF-8 bytes of the SentencePiece
vocabulary; a normalisation table that is not needed here; a directory of tensors; the tensors. A group is a float16
scale and 16 bytes: the low halves are its first 16 numbers, the high halves the others, each shifted up by 8.
"""

import struct
import unicodedata
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from palace.embedding.model import Vocabulary
from palace.errors import UnreachableError

Floats: TypeAlias = npt.NDArray[np.float32]
Ids: TypeAlias = npt.NDArray[np.int64]

SPECIALS = ("<s>", "<pad>", "</s>", "<unk>")
"""The first four pieces, in the order of their ids; `<mask>` is the last piece."""

_HEADER = struct.Struct("<4sI7ifi5iQ")  # magic, version; 7 sizes, epsilon, group size; 5 of the vocabulary, its bytes
_ENTRY = struct.Struct("<BIQQ")  # kind, count, offset, bytes
_GROUP = 32
_GROUP_BYTES = 2 + _GROUP // 2


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the network; `epsilon` is that of its layer normalisations."""

    hidden: int
    layers: int
    heads: int
    inner: int
    positions: int
    epsilon: float


class Weights:
    """One weights file, mapped into memory; numbers are unpacked when they are asked for."""

    def __init__(self, path: Path) -> None:
        self._bytes: npt.NDArray[np.uint8] = np.asarray(np.memmap(path, np.uint8, "r"))
        head = _HEADER.unpack(self._bytes[: _HEADER.size].tobytes())
        if head[0] != b"E5S1" or head[10] != _GROUP:
            raise UnreachableError(f"{path} is no file of multilingual-e5-small weights", "Delete it and run again.")
        hidden, layers, heads, inner, _, positions = head[2:8]
        self.shape = Shape(hidden, layers, heads, inner, positions, head[9])
        self.pieces, after = self._read_pieces(count=head[11], size=head[16])
        self._directory = self._read_directory(after)

    def _take(self, kind: str, count: int, offset: int) -> npt.NDArray[np.generic]:
        dtype = np.dtype(kind)
        return self._bytes[offset : offset + count * dtype.itemsize].view(dtype)

    def _read_pieces(self, count: int, size: int) -> tuple[list[tuple[str, float]], int]:
        """The vocabulary with its scores, and the offset of what follows."""
        offset = _HEADER.size
        bounds = self._take("<u4", count + 1, offset).tolist()
        offset += 4 * (count + 1)
        scores = self._take("<f4", count, offset).tolist()
        offset += 4 * count
        blob = self._bytes[offset : offset + size].tobytes()
        pieces = [blob[low:high].decode() for low, high in pairwise(bounds)]
        return list(zip(pieces, scores, strict=True)), offset + size

    def _read_directory(self, offset: int) -> dict[str, tuple[int, int]]:
        """Tensor name to (element count, byte offset)."""
        offset += 8 + int(self._take("<u4", 2, offset)[1])  # the normalisation table
        count = int(self._take("<i4", 1, offset)[0])
        offset += 4
        directory = {}
        for _ in range(count):
            length = int(self._take("<u2", 1, offset)[0])
            name = self._bytes[offset + 2 : offset + 2 + length].tobytes().decode()
            offset += 2 + length
            _, elements, where, _ = _ENTRY.unpack(self._bytes[offset : offset + _ENTRY.size].tobytes())
            offset += _ENTRY.size
            directory[name] = (elements, where)
        return directory

    def vector(self, name: str) -> Floats:
        """A tensor that is stored as it is: biases, normalisations, positions. Flat."""
        count, offset = self._directory[name]
        return np.array(self._take("<f4", count, offset), np.float32)

    def rows(self, name: str, columns: int, ids: Ids | None = None) -> Floats:
        """A matrix of four-bit groups, or those of its rows. Shape (rows, columns)."""
        count, offset = self._directory[name]
        groups = columns // _GROUP
        packed = self._take("u1", count // _GROUP * _GROUP_BYTES, offset).reshape(-1, groups, _GROUP_BYTES)
        chosen = packed if ids is None else packed[ids]
        scales = np.ascontiguousarray(chosen[..., :2]).view("<f2").astype(np.float32)
        halves = chosen[..., 2:].astype(np.uint8)
        numbers = np.concatenate([halves & 15, halves >> 4], axis=-1).astype(np.float32) - 8
        return (numbers * scales).reshape(len(chosen), columns)

    def kept(self, vocabulary: Vocabulary) -> Ids:
        """Ids of the pieces that a vocabulary keeps, ascending; specials always."""
        edge = {*range(len(SPECIALS)), len(self.pieces) - 1}
        keep = [
            number in edge or vocabulary == "all" or is_english_or_chinese(piece)
            for number, (piece, _) in enumerate(self.pieces)
        ]
        return np.flatnonzero(keep).astype(np.int64)


def is_english_or_chinese(piece: str) -> bool:
    """Whether every letter of a piece is Latin or a Chinese character; digits, signs and emoji belong to all."""
    return all(
        unicodedata.category(character)[0] not in "LM" or unicodedata.name(character, "").startswith(("LATIN", "CJK"))
        for character in piece
    )
