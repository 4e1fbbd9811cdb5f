"""The built default model: the same vectors always, near to float32, for every language, and no hub is ever asked."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from bench.embedding_reference import vector
from palace.embedding import dense, model, tokens
from palace.embedding.build.fetch import WEIGHTS_FILE
from palace.embedding.build.weights import Weights
from palace.settings import Embedding
from palace.stores.ports import Embedder
from tests.support import ROOT

pytestmark = pytest.mark.model

TEXTS = [
    "Adults need about 50 g of protein a day.",
    "成年人每天需要大约五十克蛋白质，最好分三餐吃。",
    "De kat zit op de mat; le café est fermé.",
    "Собака лает на луну.",
    "",
    "# Recipe\n\n- 200 g flour\n- 3 eggs\n\n```python\nprint('x')\n```\n" * 3,
]


@pytest.fixture(name="embedder", scope="module")
def _embedder() -> Iterator[Embedder]:
    made = dense.load(Embedding())
    yield made
    made.close()


def test_vectors_have_unit_length_and_a_cache_loses_nothing(embedder: Embedder) -> None:
    for found in embedder.passages(TEXTS):
        assert found.shape == (embedder.dimensions,)
        assert found.dtype == np.float32
        assert abs(float(np.linalg.norm(found)) - 1) < 1e-3
        np.testing.assert_array_equal(found, found.astype(np.float16).astype(np.float32))


def test_a_vector_depends_on_its_text_alone(embedder: Embedder) -> None:
    once = list(embedder.passages(TEXTS))
    turned = list(embedder.passages(TEXTS[::-1] * 2))
    np.testing.assert_array_equal(np.array(once[::-1] * 2), np.array(turned))
    single = dense.load(Embedding(workers=1))
    np.testing.assert_array_equal(np.array(once), np.array(list(single.passages(TEXTS))))
    single.close()


def test_a_question_is_nearest_to_its_answer_in_either_language(embedder: Embedder) -> None:
    answers = np.array(list(embedder.passages(TEXTS)))
    for question, answer in (("how much protein should I eat?", 0), ("每天要吃多少蛋白质", 1), ("barking dog", 3)):
        scores = answers @ embedder.query(question)
        assert int(np.argmax(scores)) == answer
        assert 0.6 < scores.min() < scores.max() < 0.97
    crossed = answers[[0, 2, 3]] @ embedder.query("蛋白质的每日摄入量")
    assert int(np.argmax(crossed)) == 0


def test_what_is_over_the_limit_is_left_out(embedder: Embedder) -> None:
    long = "one two three four five six seven eight nine ten " * 60
    a, b = embedder.passages([long, long + "completely different words about zebras " * 20])
    np.testing.assert_array_equal(a, b)


def test_half_characters_are_no_error(embedder: Embedder) -> None:
    np.testing.assert_array_equal(embedder.query("a\udce9b"), embedder.query("a?b"))


def test_both_vocabularies_embed_english_and_chinese_alike(embedder: Embedder) -> None:
    lean = dense.load(Embedding(vocabulary="en-zh"))
    texts = TEXTS[:3]
    np.testing.assert_array_equal(np.array(list(embedder.passages(texts))), np.array(list(lean.passages(texts))))
    assert lean.fingerprint != embedder.fingerprint
    data = "model.onnx.data"
    assert (model.folder("en-zh") / data).stat().st_size < 0.65 * (model.folder("all") / data).stat().st_size
    lean.close()


@pytest.mark.slow
def test_int8_is_near_float32(embedder: Embedder) -> None:
    weights = Weights(model.folder().parent / WEIGHTS_FILE)
    pieces = tokens.load_pieces(model.folder())
    for text, found in zip(TEXTS[:4], embedder.passages(TEXTS[:4]), strict=True):
        wanted = vector(weights, [0, *pieces.encode(f"passage: {text}"), 2])
        assert float(found @ wanted) > 0.99


@pytest.mark.slow
def test_tokens_are_those_of_the_published_tokenizer(embedder: Embedder) -> None:
    assert embedder.max_tokens == model.MAX_TOKENS
    heavy = Tokenizer.from_file(str(model.folder() / "tokenizer.json"))
    light = tokens.load_pieces(model.folder())
    assert heavy.encode("Hello world!").ids == [0, 35378, 8999, 38, 2]  # as XLM-RoBERTa has always cut it
    for text in [
        *TEXTS,
        "ﬁne ａｂｃ １２３　全角～",
        "tab\tand\u00a0blank\u200bs\r\n",
        "한국어 문장입니다.",
        "日本語の文章。",
    ]:
        assert light.encode(text) == heavy.encode(text, add_special_tokens=False).ids


def test_token_starts_of_the_model() -> None:
    counter = tokens.load(Embedding())
    text = "你好 world, this is"
    starts = counter.starts(text)
    assert starts[-1] == text.index(" is")
    assert [text.encode()[at:][:1] for at in counter.byte_starts(text)[-2:]] == [b" ", b" "]
    assert counter.count("") == 0
    assert counter.count("Hello world!") == 3
    assert counter.count("x\udce9y") > 0


@pytest.mark.slow
def test_an_endless_line_costs_its_share_of_time() -> None:
    counter = tokens.load(Embedding())
    words = "the quick brown fox jumps over the lazy dog "

    def seconds(text: str) -> float:
        begun = time.process_time()
        counter.starts(text)
        return time.process_time() - begun

    short, long = words * 2_000, words * 20_000
    seconds(short)
    assert seconds(long) < 30 * min(seconds(short) for _ in range(3))
    assert counter.count(long) == pytest.approx(10 * counter.count(short), rel=0.001)


@pytest.mark.slow
def test_two_processes_at_once_build_one_model_from_weights_that_are_there(tmp_path: Path) -> None:
    model.ensure()
    (tmp_path / "models").mkdir()
    os.link(model.folder().parent / WEIGHTS_FILE, tmp_path / "models" / WEIGHTS_FILE)
    script = "from palace.embedding import model; print(model.ensure('en-zh'))"
    environment = os.environ | {"DUALWALL_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-c", script]
    runs = [subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    said = {run.communicate(timeout=120)[0].strip() for run in runs}
    assert [run.returncode for run in runs] == [0, 0]
    assert said == {str(tmp_path / "models" / model.folder("en-zh").name)}
    assert sorted(entry.name for entry in (tmp_path / "models").iterdir()) == [
        WEIGHTS_FILE,
        "lock",
        model.folder("en-zh").name,
    ]


@pytest.mark.slow
def test_a_model_that_lost_a_file_is_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model.ensure()
    (tmp_path / "models").mkdir()
    os.link(model.folder().parent / WEIGHTS_FILE, tmp_path / "models" / WEIGHTS_FILE)
    (tmp_path / "models" / ".build-killed" / "model").mkdir(parents=True)
    monkeypatch.setenv("DUALWALL_CACHE", str(tmp_path))
    assert not model.is_built("en-zh")
    built = model.ensure("en-zh")
    assert model.is_built("en-zh")
    (built / model.PIECES_FILE).write_bytes(b"half")
    assert not model.is_built("en-zh")
    assert model.ensure("en-zh") == built
    assert model.is_built("en-zh")
    assert not (tmp_path / "models" / ".build-killed").exists()


@pytest.mark.slow
def test_no_address_is_ever_asked() -> None:
    """Every attempt to connect or to look a host up is an error in this process."""
    model.ensure()
    script = (
        "import sys\n"
        "def refuse(event, args):\n"
        "    if event in ('socket.connect', 'socket.getaddrinfo', 'socket.gethostbyname'):\n"
        "        raise SystemExit(f'asked: {args}')\n"
        "sys.addaudithook(refuse)\n"
        "from palace.embedding import dense\n"
        "from palace.settings import Embedding\n"
        "made = dense.load(Embedding())\n"
        "print(made.query('x').shape, next(iter(made.passages(['y']))).shape)\n"
        "made.close()\n"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "(384,) (384,)\n", done.stderr
    assert done.stderr == ""


def test_the_fingerprint_tells_what_decides_a_vector(embedder: Embedder) -> None:
    plain = dense.load(Embedding(passage_prefix=""))
    other = list(plain.passages(["dog"]))
    assert plain.fingerprint != embedder.fingerprint
    assert not np.array_equal(other, list(embedder.passages(["dog"])))
    plain.close()
    again = dense.load(Embedding(model="intfloat/multilingual-e5-small", workers=4))
    assert again.fingerprint == embedder.fingerprint
    again.close()
