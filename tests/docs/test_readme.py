"""README.md and docs/: what they name exists, and what they promise is the contract."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from palace.errors import Exit
from palace.search.receipt import Reading
from palace.vocabulary import Answer, Hit, Receipt
from tests.docs import checks
from tests.support import ROOT

README = ROOT / "README.md"
DOCUMENTS = [README, ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
CONTRACT = frozenset(
    {
        "init", "doctor", "sync", "librarian", "ingest", "nightly", "status", "verify", "parse", "rooms", "search", "read",
        "neighbors", "inject", "hook", "serve", "mcp", "token", "tools", "migrate", "inbox", "receipt", "hygiene", "eval", "tune",
    }
)  # fmt: skip


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_a_document_names_exists(document: Path) -> None:
    assert checks.faults(document.read_text(encoding="utf-8"), document.parent) == []


@pytest.mark.parametrize(
    "planted",
    [
        "`dualwall serach x`",
        "`dualwall search x --rom y`",
        "`dualwall search`, then `dualwall rooms a b c`",
        "`dualwall librarian demolish`",
        "`dualwall search x --limit many`",
        "```sh\nDUALWALL_CONFIG=a dualwall nightly --wet-run  # never\n```",
        "```sh\ncd x && .venv/bin/dualwall polish\n```",
        "`make coffee`",
        "`make run VALT=~/Notes`",
        '```toml\n[vaults.main]\nsource = "x"\npublick = ["."]\n```',
        '```toml\n[stores]\nvectors = "paper"\n```',
        "`stores.vectros`",
        "`[embeding]`",
        "set DUALWALL_STORES__VECTROS=qdrant",
        "it ends with exit code 9",
        "| exit | meaning |\n|---|---|\n| 0 | fine |\n",
        "`palace/attic.py`",
        "`python -m bench.cake`",
        "`python -m bench.vault OUT --candles 3`",
        "[see](docs/nothing.md)",
        "[see](docs/design.md#nothing)",
        "[see](#nothing)",
    ],
)
def test_a_document_that_names_something_absent_fails(planted: str) -> None:
    assert checks.faults(planted) != []


@pytest.mark.parametrize(
    "sound",
    [
        '`dualwall search`, `dualwall search "a question" --room a --room b --as me --json --config x.toml`',
        "`dualwall librarian build`, `dualwall --help`, `dualwall status --files --help`",
        "```sh\nDUALWALL_STORES__VECTORS=memory dualwall rooms | head  # the first ones\n```",
        "`make run VAULT=~/Notes`",
        '```toml\n[vaults.main]\nsource = "x"\n```\n`stores.vectors` `[[private]]` `vaults.main.source` `manifest.jsonl`',
        "exit code 4 and DUALWALL_CONFIG",
        "`palace/errors.py` `projects/Dandy/Motors.md` [here](#there)\n\n## There\n",
        "`python -m bench.vault OUT --notes 5`",
    ],
)
def test_what_is_there_is_no_fault(sound: str) -> None:
    assert checks.faults(sound) == []


def test_the_commands_of_the_readme_are_the_contracts() -> None:
    from dualwall.cli import COMMANDS  # noqa: PLC0415

    named = checks.named_commands(README.read_text(encoding="utf-8"))
    shown = {name for name, entry in COMMANDS.items() if not entry.hidden}
    assert named <= CONTRACT
    assert shown <= CONTRACT
    assert shown - named == set(), "the README says nothing of these commands"


@pytest.mark.parametrize("document", ["README.md", "docs/design.md"])
def test_every_exit_code_is_told(document: str) -> None:
    assert [int(code) for code in re.findall(r"(?m)^\| (\d) \|", _read(document))] == [int(code) for code in Exit]


def test_the_readme_and_the_design_have_the_same_words() -> None:
    def words(text: str) -> list[str]:
        table = text.partition("| word | meaning |\n|---|---|\n")[2].partition("\n\n")[0]
        return re.findall(r"(?m)^\| ([\w, ]+?) \|", table)

    assert words(_read("README.md")) == words(_read("docs/design.md")) != []


def test_every_field_of_receipts_and_hits_is_explained() -> None:
    receipts = _read("docs/design.md").partition("\n## Receipts\n")[2].partition("\n## ")[0]
    first, second = receipts.split("| field | meaning |\n|---|---|\n")[1:]
    assert re.findall(r"(?m)^\| `(\w+)` \|", first) == [field.name for field in fields(Receipt)]
    assert re.findall(r"(?m)^\| `(\w+)` \|", second) == [field.name for field in fields(Hit)]


@pytest.mark.parametrize(("command", "shape"), [("search", Answer), ("read", Reading)])
def test_the_json_that_the_design_lists_is_what_is_printed(command: str, shape: type) -> None:
    row = re.search(rf"(?m)^\| `dualwall {command}` \|(.+)\|$", _read("docs/design.md"))
    assert row is not None
    listed = re.sub(r"\([^)]*\)", "", row[1])
    assert re.findall(r"`(\w+)`", listed) == [field.name for field in fields(shape)]


def test_every_dependency_is_explained_and_no_other() -> None:
    project = tomllib.loads(_read("pyproject.toml"))
    groups = project["dependency-groups"]
    wanted = [*project["project"]["dependencies"], *groups["dev"], *project["build-system"]["requires"]]
    told = re.findall(r"(?m)^\| ([a-z0-9-]+) \|", _read("docs/decisions/0001-dependencies.md"))
    assert sorted(set(told) - {"library"}) == sorted({re.split(r"[<>=\[;~! ]", name)[0] for name in wanted})


def test_every_decision_is_listed() -> None:
    pages = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("0*.md"))
    assert re.findall(r"\]\((0\d{3}-[\w-]+\.md)\)", _read("docs/decisions/README.md")) == pages


def test_the_licence_is_whole() -> None:
    licence = _read("LICENSE")
    assert "Apache License" in licence
    assert "END OF TERMS AND CONDITIONS" in licence
    assert len(licence.encode()) == 11_358
