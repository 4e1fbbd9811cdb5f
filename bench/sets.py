"""Retrieval sets in BEIR's fields, and the measures over a ranking."""

import gzip
import json
import math
import tarfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from palace.errors import UsageError
from palace.names import nfc

MEASURES = ("recall@1", "recall@5", "recall@10", "nDCG@10", "MRR")
_MOST_NOTE_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Document:
    """A document: what becomes a note. `room` is empty where the set has none."""

    id: str
    title: str
    data: bytes
    room: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its graded relevant documents; `exclude`: documents dropped before ranking."""

    id: str
    text: str
    relevant: Mapping[str, int]
    exclude: frozenset[str] = frozenset()
    room: str = ""


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    """One set, questions without a relevant document left out."""

    name: str
    documents: tuple[Document, ...]
    questions: tuple[Asked, ...]

    @property
    def has_rooms(self) -> bool:
        """Whether questions belong to rooms, and there is more than one."""
        return len({d.room for d in self.documents}) > 1 and all(q.room for q in self.questions)


@dataclass(slots=True)
class Mean:
    """The mean of each measure over the rankings added so far."""

    sums: dict[str, float] = field(default_factory=lambda: dict.fromkeys(MEASURES, 0.0))
    n: int = 0

    def add(self, ranking: Sequence[str], relevant: Mapping[str, int]) -> None:
        """Measure one ranking of document ids, best first, each once."""
        self.n += 1
        for k in (1, 5, 10):
            self.sums[f"recall@{k}"] += recall(ranking, relevant, k)
        self.sums["nDCG@10"] += ndcg(ranking, relevant, 10)
        self.sums["MRR"] += reciprocal_rank(ranking, relevant)

    def row(self) -> dict[str, float]:
        """Each mean to four places."""
        return {name: round(total / self.n, 4) if self.n else 0.0 for name, total in self.sums.items()}


def recall(ranking: Sequence[str], relevant: Collection[str], k: int) -> float:
    """Share of the relevant documents among the first k."""
    return len(set(ranking[:k]) & set(relevant)) / len(relevant)


def ndcg(ranking: Sequence[str], relevant: Mapping[str, int], k: int) -> float:
    """Normalised discounted cumulative gain with linear gains, as trec_eval has it."""
    gained = sum(relevant.get(d, 0) / math.log2(rank + 1) for rank, d in enumerate(ranking[:k], start=1))
    ideal = sorted(relevant.values(), reverse=True)[:k]
    return gained / sum(gain / math.log2(rank + 1) for rank, gain in enumerate(ideal, start=1))


def reciprocal_rank(ranking: Sequence[str], relevant: Collection[str]) -> float:
    """1/rank of the first relevant document; 0 when there is none."""
    return next((1 / rank for rank, d in enumerate(ranking, start=1) if d in relevant), 0.0)


def load(folder: Path, corpus: Path | None = None, limit_queries: int | None = None) -> RetrievalSet:
    """Read a set. Raises UsageError for a folder that is none, or lacks a corpus when none is given."""
    for name in ("queries.jsonl.gz", "qrels.tsv"):
        if not (folder / name).is_file():
            raise UsageError(f"{folder} is no retrieval set: it has no {name}.", "See docs/design.md, Benchmarks.")
    own = folder / "corpus.jsonl.gz"
    if own.is_file():
        documents = tuple(_documents(own))
    elif corpus is not None:
        documents = tuple(_vault(corpus))
    else:
        raise UsageError(f"{folder} has no corpus of its own.", "Give the vault it belongs to: --corpus VAULT")
    relevant = _judged(folder / "qrels.tsv")
    questions = [q for q in _questions(folder / "queries.jsonl.gz", relevant) if q.relevant]
    return RetrievalSet(folder.name, documents, tuple(questions[:limit_queries]))


def _documents(file: Path) -> Iterator[Document]:
    for row in _rows(file):
        room = (row.get("metadata") or {}).get("room") or ""
        yield Document(str(row["_id"]), str(row.get("title") or ""), str(row["text"]).encode(), str(room))


def _questions(file: Path, relevant: Mapping[str, Mapping[str, int]]) -> Iterator[Asked]:
    for row in _rows(file):
        about = row.get("metadata") or {}
        yield Asked(
            id=str(row["_id"]),
            text=str(row["text"]),
            relevant=relevant.get(str(row["_id"]), {}),
            exclude=frozenset(map(str, about.get("exclude") or ())),
            room=str(about.get("room") or ""),
        )


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _judged(file: Path) -> dict[str, dict[str, int]]:
    judged: dict[str, dict[str, int]] = {}
    for line in file.read_text(encoding="utf-8").splitlines()[1:]:
        question, document, grade = line.split("\t")
        if int(grade) > 0:
            judged.setdefault(question, {})[document] = int(grade)
    return judged


def _vault(corpus: Path) -> Iterator[Document]:
    """Notes of a vault, a folder or a tar file of one; ids are paths in it."""
    for path, data in sorted(_tar_notes(corpus) if corpus.is_file() else _folder_notes(corpus)):
        name = path.rsplit("/", 1)[-1]
        yield Document(nfc(path), nfc(name[:-3]), data)


def _folder_notes(corpus: Path) -> Iterator[tuple[str, bytes]]:
    if not corpus.is_dir():
        raise UsageError(f"There is no vault {corpus}.", "Give a folder, or a .tar.gz of one.")
    for file in corpus.rglob("*.md"):
        path = file.relative_to(corpus)
        if file.is_file() and not file.is_symlink() and not any(part.startswith(".") for part in path.parts):
            yield path.as_posix(), file.read_bytes()


def _tar_notes(corpus: Path) -> Iterator[tuple[str, bytes]]:
    """The one folder at the top of an archive is the vault, when there is only one."""
    with tarfile.open(corpus) as archive:
        found = [m for m in archive if m.isfile() and m.name.endswith(".md") and m.size <= _MOST_NOTE_BYTES]
        names = [m.name.removeprefix("./") for m in found]
        tops = {n.partition("/")[0] for n in names}
        cut = len(tops.pop()) + 1 if len(tops) == 1 else 0
        for member, name in zip(found, names, strict=True):
            path = name[cut:]
            content = archive.extractfile(member)
            if content is not None and not any(part.startswith(".") for part in path.split("/")):
                yield path, content.read()
