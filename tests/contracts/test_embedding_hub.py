"""Models of fastembed's list: from its cache without a network, and one clear error where there is neither."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from palace.embedding import dense, model, tokens
from palace.errors import SettingsError
from palace.settings import Embedding
from tests.support import ROOT

MODEL = "BAAI/bge-small-en-v1.5"


@pytest.mark.slow
def test_no_cache_and_no_network_is_one_clear_error_at_once(tmp_path: Path) -> None:
    script = (
        "import time\n"
        "from palace.embedding import dense\n"
        "from palace.errors import UnreachableError\n"
        "from palace.settings import Embedding\n"
        "import palace.embedding.hub\n"
        "begun = time.monotonic()\n"
        "try:\n"
        f"    dense.load(Embedding(model='{MODEL}'))\n"
        "except UnreachableError as error:\n"
        "    print(int(error.exit_code), time.monotonic() - begun < 6, error)\n"
    )
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "DUALWALL_CACHE": str(tmp_path),
        "HF_ENDPOINT": "http://127.0.0.1:9",
    }
    begun = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(f"6 True The model {MODEL} is not on this machine"), done.stderr
    assert "multilingual-e5-small" in done.stdout
    assert done.stderr == ""
    assert time.monotonic() - begun < 30


@pytest.mark.slow
def test_an_unknown_model_is_a_fault_of_the_settings() -> None:
    with pytest.raises(SettingsError, match="there is no") as caught:
        dense.load(Embedding(model="BAAI/bge-smal-en-v1.5"))
    assert MODEL in caught.value.hint


@pytest.mark.model
@pytest.mark.slow
def test_a_cached_model_is_loaded_and_counted_with_its_own_tokenizer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The default model's files in the place where the hub's cache would have another model's."""
    built = model.ensure("en-zh")
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path))
    from fastembed import TextEmbedding  # noqa: PLC0415

    (entry,) = (known for known in TextEmbedding.list_supported_models() if known["model"] == MODEL)
    snapshot = tmp_path / f"models--{entry['sources']['hf'].replace('/', '--')}" / "snapshots" / ("c0ffee" * 7)[:40]
    snapshot.mkdir(parents=True)
    for file in built.iterdir():
        target = entry["model_file"] if file.name == "model.onnx" else file.name
        os.link(file, snapshot / target)
    refs = snapshot.parent.parent / "refs"
    refs.mkdir()
    (refs / "main").write_text(snapshot.name)

    embedder = dense.load(Embedding(model=MODEL))
    assert embedder.dimensions == 384
    assert embedder.max_tokens == 512
    assert embedder.fingerprint.startswith("bge-small-en-v1.5-")
    a, b = embedder.passages(["a dog", "a dog"])
    assert (a == b).all()
    assert (a == embedder.query("a dog")).all()  # no prefixes for this family
    counter = tokens.load(Embedding(model=MODEL))
    assert counter.starts("Hello 世界 there").tolist() == [0, 6, 6, 9]
    embedder.close()
