"""The hand-made vault of odd files against the tags that are expected of each. Needs ../shared."""

import json
import tarfile
from functools import lru_cache
from typing import Any

import pytest

from tests.obsidian.reading import read
from tests.support import shared

NAME = "synthetic-adversarial"
DIFFERENT = {
    "tags/math_html.md": "CommonMark ends an HTML block that a <div> began at the next blank line: the last tag stands inside it",
}
"""Expectations that are not met, each with its reason."""
OTHER_ENCODINGS = {f"enc/{name}.md" for name in ("utf16le", "utf16be", "gb18030", "shift_jis", "latin1")}


@lru_cache(maxsize=1)
def vault() -> tuple[dict[str, Any], dict[str, bytes]]:
    folder = shared() / "data" / "vaults"
    expected = json.loads((folder / f"{NAME}.MANIFEST.json").read_text(encoding="utf-8"))
    files = {}
    with tarfile.open(folder / f"{NAME}.tar.gz") as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isreg() else None
            if content is not None:
                files[member.name.removeprefix(f"{NAME}/")] = content.read()
    return expected, files


def small_notes() -> dict[str, bytes]:
    return {path: data for path, data in vault()[1].items() if path.endswith(".md") and not path.startswith("big/")}


def differences(path: str, expected: dict[str, Any], data: bytes) -> list[str]:
    note = read(data)
    inline = {tag.name.lower() for tag in note.tags if tag.inline}
    written = {tag.name.lower() for tag in note.tags if not tag.inline}
    unsettled = {word.strip("()") for text in expected.get("unsettled", []) for word in text.split()}
    out = []
    if isinstance(expected.get("fm_tags"), list) and written != set(expected["fm_tags"]):
        out.append(f"{path}: properties {written}")
    if "inline" in expected and (inline ^ set(expected["inline"])) - unsettled:
        out.append(f"{path}: body {inline}")
    if not inline.issuperset(expected.get("inline_contains", [])):
        out.append(f"{path}: body {inline}")
    return out


def test_every_expected_tag() -> None:
    expected, _ = vault()
    found = {path: d for path, data in small_notes().items() if (d := differences(path, expected.get(path, {}), data))}
    assert found.keys() == DIFFERENT.keys(), found


def test_files_with_faults_are_problems() -> None:
    codes = {path: {p.code for p in read(data).problems} for path, data in small_notes().items()}
    assert {path for path, found in codes.items() if "not-utf8" in found} == OTHER_ENCODINGS
    assert {path for path, found in codes.items() if "control-character" in found} == {"enc/nul.md", "enc/control.md"}
    assert {path for path, found in codes.items() if "yaml-invalid" in found} == {
        "fm/tab_indent.md", "fm/colon_value.md", "fm/at_backtick.md",
    }  # fmt: skip


def test_line_ends_and_marks_change_nothing() -> None:
    _, files = vault()
    plain = read(files["enc/lf.md"])
    for name in ("crlf", "bom", "bom_crlf", "mixed_eol", "lone_cr"):
        note = read(files[f"enc/{name}.md"])
        assert (note.properties, note.tags, note.aliases) == (plain.properties, plain.tags, plain.aliases), name


@pytest.mark.parametrize("path", ["big/one_line_8mb.md", "big/many_headings.md", "big/base64.md", "big/repeat.md"])
def test_big_files_are_read(path: str) -> None:
    _, files = vault()
    assert read(files[path]).blocks
