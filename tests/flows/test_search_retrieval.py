"""A retrieval set goes through chunker, model, stores and search."""

import json
from pathlib import Path

import pytest

from bench.retrieval import main
from bench.sets import MEASURES
from tests.rules.test_search_measures import beir
from tests.support import shared

pytestmark = [pytest.mark.slow, pytest.mark.model]


@pytest.mark.parametrize("store", ["memory", "edge"])
def test_a_set_prints_its_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str], store: str) -> None:
    assert main([str(beir(tmp_path / "tiny")), "--json", "--rooms", "--store", store]) == 0
    (result,) = json.loads(capsys.readouterr().out)["sets"]
    assert (result["set"], result["documents"], result["questions"]) == ("tiny", 2, 1)
    assert list(result["rows"]) == ["random", "bm25", "dense", "fused", "oracle room", "random pool"]
    for name in ("bm25", "dense", "fused", "oracle room"):
        assert [result["rows"][name][m] for m in MEASURES] == [1.0] * 5


def test_a_set_prints_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(beir(tmp_path / "tiny")), "--store", "memory"]) == 0
    out = capsys.readouterr().out
    assert "tiny (2 documents, 2 chunks, 1 questions)" in out
    assert all(measure in out for measure in MEASURES)


def test_what_is_no_set_ends_with_the_exit_code_of_wrong_usage(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 2


def test_sessions_are_found_as_the_plain_pipeline_finds_them(capsys: pytest.CaptureFixture[str]) -> None:
    folder = shared() / "data" / "retrieval" / "locomo_sessions_dev"
    assert main([str(folder), "--json", "--limit-queries", "150", "--store", "memory"]) == 0
    (result,) = json.loads(capsys.readouterr().out)["sets"]
    rows = result["rows"]
    assert rows["fused"]["recall@10"] >= max(rows["bm25"]["recall@10"], rows["dense"]["recall@10"], 0.9)
    assert rows["random"]["recall@10"] < 0.3
