"""Settings: found, read, made absolute, and refused with every fault at once."""

import os
from pathlib import Path

import pytest

from palace import configuration
from palace.configuration import load
from palace.errors import Exit, SettingsError
from palace.settings import Settings
from palace.toml_lines import key_lines, line_of

WHOLE = """
data = "data"
timezone = "Asia/Shanghai"

[vaults.main]
source = "Notes"
exclude = ["Agents/**"]
daily = { folder = "daily", format = "YYYY-MM-DD" }

[[private]]
cube = "dev-cat"
path = "vault:main/Agents/dev-cat"
rooms = { system_config = ["SOUL.md"], diary = ["memory/*.md"] }

[readers.me]
cubes = ["global"]

[readers.dev-cat]
cubes = ["global", "dev-cat"]
"""


@pytest.fixture(autouse=True)
def _no_settings_around(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in list(os.environ):
        if name.startswith("DUALWALL_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    (tmp_path / "Notes").mkdir()
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")


def settle(folder: Path, text: str) -> Settings:
    file = folder / "dualwall.toml"
    file.write_text(text, encoding="utf-8")
    return load(file)


def refuse(folder: Path, text: str) -> str:
    with pytest.raises(SettingsError) as caught:
        settle(folder, text)
    assert caught.value.exit_code == Exit.USAGE
    return caught.value.message


def test_a_whole_file_has_absolute_paths(tmp_path: Path) -> None:
    settings = settle(tmp_path, WHOLE)
    assert settings.data == tmp_path / "data"
    assert settings.vaults["main"].source == str(tmp_path / "Notes")
    assert settings.private[0].path == "vault:main/Agents/dev-cat"
    assert settings.private[0].in_vault == ("main", "Agents/dev-cat")
    assert settings.default_reader == "me"


def test_home_expands_and_remote_sources_stay(tmp_path: Path) -> None:
    text = WHOLE.replace('"data"', '"~/d"').replace('"Notes"', '"me@host:~/Notes"')
    settings = settle(tmp_path, text)
    assert settings.data == tmp_path / "home" / "d"
    assert settings.vaults["main"].source == "me@host:~/Notes"
    assert settings.vaults["main"].remote


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUALWALL_STORES__VECTORS", "memory")
    monkeypatch.setenv("DUALWALL_VAULTS__MAIN__SOURCE", str(tmp_path / "empty"))
    monkeypatch.setenv("DUALWALL_READERS__YOU__CUBES", '["global"]')
    monkeypatch.setenv("DUALWALL_SEARCH__LIMIT", "7")
    settings = settle(tmp_path, WHOLE)
    assert settings.stores.vectors == "memory"
    assert settings.stores.graph == "sqlite"
    assert settings.vaults["main"].source == str(tmp_path / "empty")
    assert settings.vaults["main"].exclude == ("Agents/**",)
    assert settings.search.limit == 7
    assert list(settings.readers) == ["me", "dev-cat", "you"]


def test_the_search_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="dualwall init"):
        load()
    mine = configuration.user_file()
    mine.parent.mkdir(parents=True)
    mine.write_text(WHOLE)
    assert configuration.find() == mine
    here = Path.cwd() / "dualwall.toml"
    here.write_text(WHOLE)
    assert configuration.find() == here
    named = tmp_path / "named.toml"
    named.write_text(WHOLE)
    monkeypatch.setenv("DUALWALL_CONFIG", str(named))
    assert configuration.find() == named
    assert configuration.find(here) == here


def test_a_named_file_that_is_absent_is_not_replaced_by_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (Path.cwd() / "dualwall.toml").write_text(WHOLE)
    monkeypatch.setenv("DUALWALL_CONFIG", str(tmp_path / "none.toml"))
    with pytest.raises(SettingsError, match=r"none\.toml"):
        load()


def test_all_faults_come_at_once_with_their_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUALWALL_STORE__VECTORS", "memory")
    message = refuse(
        tmp_path,
        'data = "data"\ntimezone = "Asia/Shanghi"\ncolour = 1\n[vaults.main]\nsorce = "x"\nsource = "Notes"\n'
        'public = ["../x"]\n[stores]\nvectors = "egde"\n[readers.me]\ncubes = ["globl"]\n',
    )
    file = tmp_path / "dualwall.toml"
    assert "DUALWALL_STORE__VECTORS: this variable is no key of the settings. Did you mean DUALWALL_STORES?" in message
    assert f'{file}:2: timezone: there is no time zone "Asia/Shanghi". Did you mean Asia/Shanghai?' in message
    assert f"{file}:3: colour: unknown key." in message
    assert f"{file}:5: vaults.main.sorce: unknown key. Did you mean source?" in message
    assert f'{file}:7: vaults.main.public: "../x" leaves its folder.' in message
    assert f"{file}:9: stores.vectors: " in message
    assert f'{file}:11: readers.me.cubes: there is no cube "globl". Did you mean global?' in message


def test_a_fault_from_the_environment_names_its_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUALWALL_STORES__VECTORS", "egde")
    assert refuse(tmp_path, WHOLE).startswith("DUALWALL_STORES__VECTORS: ")
    monkeypatch.setenv("DUALWALL_STORES__VECTORS", "edge")
    monkeypatch.setenv("DUALWALL_READERS__ME__CUBES", "global")
    with pytest.raises(SettingsError):
        load(tmp_path / "dualwall.toml")


def test_broken_toml_names_the_line(tmp_path: Path) -> None:
    assert "line 2" in refuse(tmp_path, 'data = "x"\nvaults = = 3\n')
    (tmp_path / "bytes.toml").write_bytes(b'data = "\xff"\n')
    with pytest.raises(SettingsError, match="not valid TOML"):
        load(tmp_path / "bytes.toml")


def test_nothing_security_relevant_has_a_default(tmp_path: Path) -> None:
    message = refuse(tmp_path, 'timezone = "UTC"\n')
    assert "data: is missing" in message
    message = refuse(tmp_path, 'data = "data"\n')
    assert '[readers.me] and cubes = ["global"]' in message
    assert "[vaults.main]" in message
    assert "cubes" in refuse(tmp_path, WHOLE.replace('cubes = ["global"]', "cubes = []"))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('exclude = ["Agents/**"]', "", "does not exclude it"),
        ('exclude = ["Agents/**"]', 'exclude = ["Agents/dev-cat"]', None),
        ('exclude = ["Agents/**"]', 'exclude = ["Agents/dev-cat/*.md"]', "does not exclude it"),
        ('exclude = ["Agents/**"]', 'exclude = ["Agents/**", "!Agents/dev-cat/memory/**"]', "does not exclude it"),
        ('exclude = ["Agents/**"]', 'public = ["projects"]', None),
        ('exclude = ["Agents/**"]', 'public = ["Agents/dev-cat/shared"]', 'holds the public folder "Agents/dev-cat/shared"'),
        ('"vault:main/Agents/dev-cat"', '"vault:man/Agents/dev-cat"', 'there is no vault "man"'),
        ('"vault:main/Agents/dev-cat"', '"vault:main/"', "is the whole vault"),
        ('"vault:main/Agents/dev-cat"', '"vault:main/../x"', "leaves its folder"),
        ('"vault:main/Agents/dev-cat"', '"Notes/Agents/dev-cat"', None),
        ('"vault:main/Agents/dev-cat"', '"Notes/private"', "does not exclude it"),
        ('"vault:main/Agents/dev-cat"', '"."', 'holds the whole vault "main"'),
        ('cube = "dev-cat"', 'cube = "global"', '"global" is the cube of public notes'),
        ('cube = "dev-cat"', 'cube = "../cat"', "is no cube name"),
        ('cube = "dev-cat"', 'cube = "Dev"', "is no cube name"),
        ("[vaults.main]", '[vaults."a/b"]', "is no vault name"),
        ("[readers.me]", '[readers."m e"]', "is no reader name"),
        ('data = "data"', 'data = "Notes/data"', "lies inside"),
        ('data = "data"', 'data = "."', "lies inside the data folder"),
        ('source = "Notes"', 'source = "data/x"', "lies inside the data folder"),
        ('diary = ["memory/*.md"]', 'diary = ["../*.md"]', "leaves its folder"),
        ('diary = ["memory/*.md"]', '"a/b" = ["*.md"]', "is no room name"),
        ('folder = "daily"', 'folder = "../daily"', "leaves its folder"),
        ('exclude = ["Agents/**"]', 'exclude = ["Agents/**", "../x"]', "leaves its folder"),
        ('cubes = ["global"]', 'cubes = ["global"]\ntoken_sha256 = "abc"', "is no SHA-256"),
    ],
)  # fmt: skip
def test_walls_and_names(tmp_path: Path, old: str, new: str, expected: str | None) -> None:
    text = WHOLE.replace(old, new)
    assert text != WHOLE
    if expected is None:
        settle(tmp_path, text)
    else:
        assert expected in refuse(tmp_path, text)


def test_a_private_root_behind_a_symlink_is_seen_through(tmp_path: Path) -> None:
    (tmp_path / "Notes" / "secret").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "Notes" / "secret")
    assert "does not exclude it" in refuse(tmp_path, WHOLE.replace('"vault:main/Agents/dev-cat"', '"link"'))
    (tmp_path / "store").symlink_to(tmp_path / "Notes")
    assert "lies inside" in refuse(tmp_path, WHOLE.replace('data = "data"', 'data = "store/data"'))


def test_two_cubes_never_share_a_root(tmp_path: Path) -> None:
    other = '[[private]]\ncube = "owl"\npath = "Notes/Agents"\nrooms = { diary = ["**"] }\n'
    assert 'cubes "dev-cat" and "owl" would share notes' in refuse(tmp_path, WHOLE + other)
    settle(tmp_path, WHOLE + other.replace('"owl"', '"dev-cat"'))
    settle(tmp_path, WHOLE + other.replace("Notes/Agents", "Notes/Agents/owl"))


def test_two_readers_never_share_a_token(tmp_path: Path) -> None:
    token = f'token_sha256 = "{"a" * 64}"\n'
    text = WHOLE.replace('cubes = ["global"]\n', f'cubes = ["global"]\n{token}') + token
    assert 'is the token of "me" too' in refuse(tmp_path, text)


def test_rules_make_no_reserved_room(tmp_path: Path) -> None:
    message = refuse(tmp_path, WHOLE + '[rooms]\nrules = [{ glob = "a/**", wing = "w", room = "System-Config" }]\n')
    assert 'reserved room "system_config"' in message


def test_every_key_has_its_line() -> None:
    """
    # a comment
    data = "x"
    [vaults.main]
    source = "a"
    "daily" = { folder = "d" }
    [[private]]
    cube = "a"
    [[private]]
    cube = "b"
    [private.rooms]
    diary = [
      "x = y",
    ]
    a.b = 1
    """
    lines = key_lines(_docstring())
    assert line_of(lines, ("data",)) == 3
    assert line_of(lines, ("vaults", "main", "daily", "folder")) == 6
    assert line_of(lines, ("private", 1, "cube")) == 10
    assert line_of(lines, ("private", 1, "rooms", "diary", 0)) == 12
    assert line_of(lines, ("private", 1, "rooms", "a", "b")) == 15
    assert line_of(lines, ("nowhere",)) is None


def _docstring() -> str:
    return test_every_key_has_its_line.__doc__ or ""
