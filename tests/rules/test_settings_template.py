"""The file that `dualwall init` writes: it holds every key, parses, and says what it found in the vault."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest
from pydantic import BaseModel

from dualwall import init
from dualwall.template import Agent, Found, render
from palace import settings as shapes
from palace.configuration import load
from palace.errors import UsageError
from palace.settings import Daily, Private, ReaderEntry, Settings, Vault

SECTIONS: dict[str, type[BaseModel]] = {
    "stores": shapes.Stores,
    "embedding": shapes.Embedding,
    "rooms": shapes.Rooms,
    "ingest": shapes.Ingest,
    "search": shapes.Search,
    "inject": shapes.Inject,
    "serve": shapes.Serve,
    "gateway": shapes.Gateway,
}
AGENT = Agent("dev-cat", "Agents/[dev] cat!", {"system_config": ("SOUL.md",), "diary": ("memory/*.md",)})


def keys_of(model: type[BaseModel]) -> set[str]:
    return set(model.model_fields)


def uncommented(text: str) -> dict[str, object]:
    """The file with every key and table behind `#` made active."""
    return tomllib.loads(re.sub(r"^# (?=(\[|[a-z_0-9]+ = ))", "", text, flags=re.MULTILINE))


def test_every_key_of_the_settings_is_in_the_file() -> None:
    table = uncommented(render(Found("~/Notes", "~/data", "UTC")))
    assert set(table) == keys_of(Settings)
    vaults, private, readers = table["vaults"], table["private"], table["readers"]
    assert isinstance(vaults, dict)
    assert isinstance(private, list)
    assert isinstance(readers, dict)
    assert set(vaults["main"]) == keys_of(Vault)
    assert set(private[0]) == keys_of(Private)
    assert set(readers["me"]) == keys_of(ReaderEntry)
    for name, model in SECTIONS.items():
        section = table[name]
        assert isinstance(section, dict)
        assert set(section) == keys_of(model)


def test_every_default_in_the_file_is_the_settings_own() -> None:
    table = uncommented(render(Found("~/Notes", "~/data", "UTC")))
    for name, model in SECTIONS.items():
        section = table[name]
        assert isinstance(section, dict)
        assert model.model_validate(_given(section, model)) == model()


def _given(section: Mapping[str, object], model: type[BaseModel]) -> dict[str, object]:
    """A section without the keys that have no default, in its tables too."""
    given: dict[str, object] = {}
    for key, value in section.items():
        default = model.model_fields[key].default
        if default is not None:
            given[key] = _given(value, type(default)) if isinstance(value, dict) else value
    return given


def test_a_vault_is_looked_into(tmp_path: Path) -> None:
    vault = tmp_path / 'My "Notes"'
    (vault / ".obsidian").mkdir(parents=True)
    (vault / ".obsidian" / "daily-notes.json").write_text('{"folder": "Tage", "format": "YYYY/MM"}')
    for agent in ("Agents/Dev Cat", "Agents/owl"):
        (vault / agent / "memory").mkdir(parents=True)
        (vault / agent / "SOUL.md").write_text("# Who I am\n")
    (vault / ".trash" / "x").mkdir(parents=True)
    (vault / ".trash" / "x" / "SOUL.md").write_text("gone")
    found = init.look(vault, "data", adopt=False)
    assert found.daily == Daily(folder="Tage", format="YYYY/MM")
    assert [(agent.name, agent.path) for agent in found.agents] == [
        ("dev-cat", "Agents/Dev Cat"),
        ("owl", "Agents/owl"),
    ]
    assert found.agents[0].rooms == {"system_config": ("SOUL.md",), "diary": ("memory/*.md",)}
    file = tmp_path / "dualwall.toml"
    init.write(file, found, force=False)
    settings = load(file)
    assert settings.vaults["main"].exclude == ("Agents/Dev Cat/**", "Agents/owl/**")
    assert settings.private == ()
    assert '# path = "vault:main/Agents/Dev Cat"' in file.read_text()


def test_adopted_agents_are_private_roots_that_no_public_folder_holds(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    file = tmp_path / "dualwall.toml"
    file.write_text(render(Found(str(tmp_path / "vault"), "data", "UTC", agents=(AGENT,), adopt=True)))
    settings = load(file)
    assert settings.private[0].in_vault == ("main", AGENT.path)
    assert settings.readers["dev-cat"].cubes == ("global", "dev-cat")
    assert settings.default_reader == "me"
    assert settings.readers["me"].cubes == ("global",)


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "dualwall.toml"
    found = Found("~/Notes", "data", "UTC")
    init.write(file, found, force=False)
    before = file.read_text()
    with pytest.raises(UsageError, match="is there already"):
        init.write(file, found, force=False)
    init.write(file, Found("~/Other", "data", "UTC"), force=True)
    assert file.read_text() != before
    assert list(file.parent.iterdir()) == [file]


def test_no_folder_no_settings(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="There is no folder"):
        init.look(tmp_path / "nowhere", "data", adopt=False)


@pytest.mark.parametrize("text", ["", "[]", "{broken", '{"folder": 3}', '{"folder": null}'])
def test_odd_daily_settings_do_no_harm(tmp_path: Path, text: str) -> None:
    (tmp_path / ".obsidian").mkdir()
    (tmp_path / ".obsidian" / "daily-notes.json").write_text(text)
    file = tmp_path / "out.toml"
    file.write_text(render(init.look(tmp_path, str(tmp_path.parent / "data"), adopt=False)))
    assert load(file).vaults["main"].source == str(tmp_path)
