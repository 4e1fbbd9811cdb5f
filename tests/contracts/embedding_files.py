"""A weights file as small as one can be, in the published layout: random numbers, a vocabulary of a few pieces."""

import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

HIDDEN, LAYERS, HEADS, INNER, POSITIONS = 64, 2, 2, 128, 16
PIECES = ["<s>", "<pad>", "</s>", "<unk>", "▁", "a", "▁dog", "狗", "é", "б", "7", "<mask>"]


def write_tiny_weights(path: Path) -> dict[str, npt.NDArray[np.float32]]:
    """Write the file; the tensors as it should be read."""
    random = np.random.default_rng(3)
    kept: dict[str, npt.NDArray[np.float32]] = {}
    stored: dict[str, tuple[int, int, bytes]] = {}

    def vector(name: str, size: int, around: float = 0.0) -> None:
        kept[name] = (around + random.normal(0, 0.1, size)).astype(np.float32)
        stored[name] = (0, size, kept[name].astype("<f4").tobytes())

    def matrix(name: str, rows: int, columns: int) -> None:
        codes = random.integers(0, 16, (rows, columns // 32, 32), np.uint8)
        scales = random.uniform(0.01, 0.03, (rows, columns // 32, 1)).astype(np.float16)
        kept[name] = ((codes.astype(np.float32) - 8) * scales.astype(np.float32)).reshape(rows, columns)
        packed = codes[..., :16] | codes[..., 16:] << 4
        groups = np.concatenate([scales.view(np.uint8).reshape(rows, -1, 2), packed], axis=-1)
        stored[name] = (1, rows * columns, groups.tobytes())

    matrix("emb.word", len(PIECES) + 1, HIDDEN)  # the published table has rows beyond the vocabulary, too
    vector("emb.pos", POSITIONS * HIDDEN)
    vector("emb.type", 2 * HIDDEN)
    norms = ["emb.ln"]
    for layer in (f"l{number}" for number in range(LAYERS)):
        norms += [f"{layer}.aln", f"{layer}.oln"]
        sizes = {"q": (HIDDEN, HIDDEN), "k": (HIDDEN, HIDDEN), "v": (HIDDEN, HIDDEN), "ao": (HIDDEN, HIDDEN)}
        for part, (rows, columns) in (sizes | {"fi": (INNER, HIDDEN), "fo": (HIDDEN, INNER)}).items():
            matrix(f"{layer}.{part}.w", rows, columns)
            vector(f"{layer}.{part}.b", rows)
    for norm in norms:
        vector(f"{norm}.w", HIDDEN, around=1.0)
        vector(f"{norm}.b", HIDDEN)
    path.write_bytes(_file(stored))
    return kept


def _file(stored: dict[str, tuple[int, int, bytes]]) -> bytes:
    encoded = [piece.encode() for piece in PIECES]
    bounds = np.cumsum([0, *map(len, encoded)]).astype("<u4").tobytes()
    scores = np.linspace(0, -11, len(PIECES)).astype("<f4").tobytes()
    sizes = (HIDDEN, LAYERS, HEADS, INNER, len(PIECES) + 1, POSITIONS, 2)
    blob = b"".join(encoded)
    head = struct.pack("<4sI7ifi5iQ", b"E5S1", 1, *sizes, 1e-12, 32, len(PIECES), 0, 2, 1, 3, len(blob))
    normalisation = struct.pack("<IB", 0x00A0, 1) + struct.pack("<I", 0x20)
    head += bounds + scores + blob + struct.pack("<iI", 1, len(normalisation)) + normalisation
    entries = sum(2 + len(name) + 21 for name in stored)
    offset = len(head) + 4 + entries
    directory, body = struct.pack("<i", len(stored)), b""
    for name, (kind, count, data) in stored.items():
        directory += struct.pack("<H", len(name)) + name.encode()
        directory += struct.pack("<BIQQ", kind, count, offset + len(body), len(data))
        body += data
    return head + directory + body
