"""The measures of a ranking, and the sets that they are taken on."""

import gzip
import json
import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.sets import Mean, load, ndcg, recall, reciprocal_rank
from palace.errors import UsageError

RELEVANT = {"a": 2, "b": 1}


def jsonl(file: Path, rows: Sequence[object]) -> None:
    with gzip.open(file, "wt", encoding="utf-8") as out:
        out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def beir(folder: Path, *, corpus: bool = True) -> Path:
    folder.mkdir()
    if corpus:
        rows = [
            {"_id": "d1", "title": "Leeks", "text": "Leeks like deep beds.", "metadata": {"room": "garden"}},
            {"_id": "d2", "title": "", "text": "---\nA plan to launch in May.", "metadata": {"room": "work"}},
        ]
        jsonl(folder / "corpus.jsonl.gz", rows)
    questions = [
        {"_id": "q1", "text": "deep beds", "metadata": {"room": "garden", "exclude": ["d2"]}},
        {"_id": "q2", "text": "nobody knows", "metadata": {"room": "work"}},
    ]
    jsonl(folder / "queries.jsonl.gz", questions)
    (folder / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\nq1\td2\t0\n", encoding="utf-8")
    return folder


def test_recall_is_the_share_of_the_relevant() -> None:
    assert recall(["a", "x", "b"], RELEVANT, 1) == 0.5
    assert recall(["a", "x", "b"], RELEVANT, 5) == 1.0
    assert recall([], RELEVANT, 10) == 0.0


def test_ndcg_has_linear_gains() -> None:
    assert ndcg(["a", "b"], RELEVANT, 10) == pytest.approx(1.0)
    swapped = (1 + 2 / 1.584962500721156) / (2 + 1 / 1.584962500721156)
    assert ndcg(["b", "a"], RELEVANT, 10) == pytest.approx(swapped)
    assert ndcg(["x"] * 10 + ["a"], RELEVANT, 10) == 0.0


def test_reciprocal_rank_is_of_the_first() -> None:
    assert reciprocal_rank(["x", "b", "a"], RELEVANT) == 0.5
    assert reciprocal_rank(["x"], RELEVANT) == 0.0


def test_a_mean_of_nothing_is_nothing() -> None:
    mean = Mean()
    assert set(mean.row().values()) == {0.0}
    mean.add(["a", "b"], RELEVANT)
    mean.add(["x"], RELEVANT)
    assert mean.row() == {"recall@1": 0.25, "recall@5": 0.5, "recall@10": 0.5, "nDCG@10": 0.5, "MRR": 0.5}


def test_a_set_is_read_and_questions_without_an_answer_left_out(tmp_path: Path) -> None:
    found = load(beir(tmp_path / "tiny"))
    assert found.name == "tiny"
    assert [(d.id, d.title, d.room) for d in found.documents] == [("d1", "Leeks", "garden"), ("d2", "", "work")]
    assert [(q.id, dict(q.relevant), q.exclude) for q in found.questions] == [("q1", {"d1": 1}, frozenset({"d2"}))]
    assert found.has_rooms


def test_a_set_without_a_corpus_takes_a_vault(tmp_path: Path) -> None:
    folder, vault = beir(tmp_path / "known", corpus=False), tmp_path / "garden"
    (vault / "beds").mkdir(parents=True)
    (vault / "beds" / "Leeks.md").write_text("deep", encoding="utf-8")
    (vault / ".trash").mkdir()
    (vault / ".trash" / "Old.md").write_text("old", encoding="utf-8")
    with tarfile.open(tmp_path / "garden.tar.gz", "w:gz") as archive:
        archive.add(vault, "garden")
    for corpus in (vault, tmp_path / "garden.tar.gz"):
        assert [(d.id, d.title, d.data) for d in load(folder, corpus).documents] == [
            ("beds/Leeks.md", "Leeks", b"deep")
        ]
    with pytest.raises(UsageError, match="--corpus"):
        load(folder)


def test_what_is_no_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no retrieval set"):
        load(tmp_path)
    with pytest.raises(UsageError, match="no vault"):
        load(beir(tmp_path / "known", corpus=False), tmp_path / "absent")
