"""The settings of a Qdrant server: faults are told with their line, paths become absolute, and no secret stands in them."""

from pathlib import Path

import pytest

from palace.configuration import load
from palace.errors import SettingsError

START = 'data = "data"\n[vaults.main]\nsource = "."\n[readers.me]\ncubes = ["global"]\n[stores.qdrant]\n'


def written(folder: Path, line: str) -> Path:
    file = folder / "dualwall.toml"
    (folder / "notes").mkdir(exist_ok=True)
    file.write_text(START.replace('"."', '"notes"') + line)
    return file


@pytest.mark.parametrize(
    "line",
    [
        'url = "127.0.0.1:6333"',
        'url = "grpc://127.0.0.1:6334"',
        'url = "https://"',
        'url = "http://me:secret@127.0.0.1:6333"',
        'url = "http://127.0.0.1:6333?key=secret"',
        "grpc_port = 70000",
        'collection = "two words"',
        'collection = ""',
        "shards = 0",
        "replicas = 0",
        'api_key = "secret"',
    ],
)
def test_a_fault_is_told_with_its_line(tmp_path: Path, line: str) -> None:
    with pytest.raises(SettingsError, match=r"dualwall\.toml:7") as error:
        load(written(tmp_path, line))
    assert "secret" not in str(error.value)


def test_files_are_relative_to_the_settings(tmp_path: Path) -> None:
    qdrant = load(
        written(tmp_path, 'url = "https://q.example.org/"\napi_key_file = "key"\nca_file = "../ca.pem"')
    ).stores.qdrant
    assert qdrant.url == "https://q.example.org"
    assert (qdrant.api_key_file, qdrant.ca_file) == (tmp_path / "key", tmp_path.parent / "ca.pem")
