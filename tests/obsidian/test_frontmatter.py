"""Properties: where they begin and end, what they hold, and what is wrong with them."""

from typing import Any

import pytest

from tests.obsidian.reading import codes, read, tags

YAML = """---
text: plain
number: 12
octal: 012
float: 1.5
on: on
yes: yes
time: 12:30:00
date: 2024-07-21
datetime: 2024-07-21T12:37:00
bool: true
nothing:
list: [a, 1]
block:
  - x
  - {y: z}
literal: |
  one
  two
nan: .nan
inf: -.inf
tagged: !mine value
2024: year
true: key
null: key
---
body
"""


def test_values_are_yaml_1_2_and_dates_stay_texts() -> None:
    assert read(YAML).properties == {
        "text": "plain", "number": 12, "octal": 12, "float": 1.5, "on": "on", "yes": "yes", "time": "12:30:00",
        "date": "2024-07-21", "datetime": "2024-07-21T12:37:00", "bool": True, "nothing": None, "list": ["a", 1],
        "block": ["x", {"y": "z"}], "literal": "one\ntwo\n", "nan": ".nan", "inf": "-.inf", "tagged": "value",
        "2024": "year", "true": "key", "null": "key",
    }  # fmt: skip
    assert read(YAML).problems == ()


def test_line_ends_leave_no_trace_in_values() -> None:
    for end in ("\r\n", "\r"):
        assert read(YAML.replace("\n", end)).properties == read(YAML).properties


FENCES = [
    ("---\na: b\n---\nx", True),
    ("---\na: b\n---", True),
    ("---\na: b\n---  \t\nx", True),
    ("---  \na: b\n---\nx", True),
    ("\ufeff---\na: b\n---\nx", True),
    ("---\r\na: b\r\n---\r\nx", True),
    ("\n---\na: b\n---\n", False),
    (" ---\na: b\n---\n", False),
    ("----\na: b\n---\n", False),
    ("---\na: b\n", False),
    ("---\na: b\n----\n", False),
    ("---\na: b\n...\n", False),
    ("--- # c\na: b\n---\n", False),
    ("text\n---\na: b\n---\n", False),
    ("---", False),
    ("", False),
]


@pytest.mark.parametrize(("text", "there"), FENCES)
def test_strict_fences(text: str, there: bool) -> None:  # noqa: FBT001
    note = read(text)
    assert note.properties == ({"a": "b"} if there else {})
    assert (note.body_start > 0) is there
    assert note.problems == ()


def test_without_properties_no_text_is_lost() -> None:
    data = b"---\ntags: [x]\n\nnever closed #real\n"
    note = read(data)
    assert [t.name for t in note.tags] == ["real"]
    assert b"".join(data[b.start : b.end] for b in note.blocks) == b"---tags: [x]never closed #real"


def test_only_the_first_block_counts() -> None:
    assert tags("---\ntags: [x]\n---\n---\ntags: [y]\n---\n") == ["x"]


def test_empty_properties() -> None:
    for text in ("---\n---\n#x", "---\n\n---\n#x", "---\n# only a comment\n---\n#x"):
        assert (read(text).properties, tags(text), codes(text)) == ({}, ["x"], [])


FAULTS: list[tuple[str, dict[str, Any], list[tuple[str, int]]]] = [
    ("---\na: b: c\nd: e\n---\n#x", {}, [("yaml-invalid", 2)]),
    ("---\nd: e\na: @me\n---\n#x", {}, [("yaml-invalid", 3)]),
    ("---\na: [b\n---\n#x", {}, [("yaml-invalid", 2)]),
    ("---\na:\n\t- b\n---\n#x", {}, [("yaml-invalid", 3)]),
    ("---\na: *b\n---\n#x", {}, [("yaml-invalid", 2)]),
    ("---\na: 1\nb: 2\na: 3\na: 4\n---\n#x", {"a": 4, "b": 2}, [("yaml-duplicate-key", 2)]),
    ('---\nb: 2\n"a": 1\na : 3\n---\n#x', {"b": 2, "a": 3}, [("yaml-duplicate-key", 3)]),
    ('---\n{"a": 1,\n "a": {"b": 1, "c": 2}}\n---\n#x', {"a": {"b": 1, "c": 2}}, [("yaml-duplicate-key", 2)]),
    ("---\na: &n [1]\nb: *n\n---\n#x", {"a": [1], "b": [1]}, [("yaml-alias", 3)]),
    ("---\na: {{title}}\nb: c\n---\n#x", {"a": None, "b": "c"}, [("yaml-template", 2)]),
    ("---\nb: c\n{{title}}: d\n---\n#x", {"b": "c", "{{…}}": None}, [("yaml-template", 1)]),
    ("---\na: {{date}} {{time}}\n---\n#x", {}, [("yaml-invalid", 2)]),
    ("---\njust text\n---\n#x", {}, [("properties-not-mapping", 1)]),
    ("---\n- a\n- b\n---\n#x", {}, [("properties-not-mapping", 1)]),
]


@pytest.mark.parametrize(("text", "values", "problems"), FAULTS)
def test_a_fault_is_a_problem_and_the_body_is_read(
    text: str, values: dict[str, Any], problems: list[tuple[str, int]]
) -> None:
    note = read(text)
    assert note.properties == values
    assert [t.name for t in note.tags if t.inline] == ["x"]
    assert codes(text) == problems


def test_text_between_rules_is_text() -> None:
    data = b"---\n\nJust a #rule, then text\n\n---\n\nmore #real\n"
    note = read(data)
    assert [t.name for t in note.tags] == ["rule", "real"]
    assert note.body_start == 0


def test_what_looks_like_an_alias_is_none_without_its_anchor() -> None:
    assert codes("---\na: |\n  - *bold* text & more\n  - &x\nb: '*c* & d'\n---\n") == []


def test_templates_say_so_in_their_hint() -> None:
    for text in ("---\na: {{title}}\n---\n", "---\na: {{date}} {{time}}\n---\n", "---\na: <% tp.x %>: y\n---\n"):
        (problem,) = read(text).problems
        assert "template" in problem.hint


BOMBS = [
    "a: &a [x]\n" + "".join(f"b{i}: &b{i} [*a, *a]\n" for i in range(9)),
    "- " * 100_000 + "x\n",
    "? " * 100_000 + "x\n",
    "- ? " * 100_000 + "x\n",
    ": " * 100_000 + "x\n",
    "a: " + "[" * 100_000 + "\n",
    "a: " + "[" * 100 + "]" * 100 + "\n",
    "".join(" " * i + "a:\n" for i in range(300)),
    "a: " + "x" * 1_100_000 + "\n",
]


@pytest.mark.parametrize("yaml", BOMBS, ids=lambda yaml: f"{yaml[:8]!r} {len(yaml)}")
def test_bombs_are_refused(yaml: str) -> None:
    note = read(f"---\n{yaml}---\n#x")
    assert (note.properties, [t.name for t in note.tags]) == ({}, ["x"])
    assert next(p.code for p in note.problems) in {
        "yaml-alias", "yaml-invalid", "properties-too-deep", "properties-too-large", "properties-not-mapping",
    }  # fmt: skip


TAGS = [
    ("tags: [a, b/c]", ["a", "b/c"]),
    ("tags:\n- a\n-\n- 1984\n- 1.5\n- true\n- [b]\n- {c: d}\n- '#e'", ["a", "e"]),
    ("tags: [Foo, foo, FOO]", ["Foo"]),
    ("tags: a b", []),
    ("tags: #a", []),
    ("tags: 5", []),
    ("tags: {a: 1}", []),
    ("Tags: [a]\ntags: [b]", ["a", "b"]),
    ('tags: ["\\u0061"]', ["a"]),
]


@pytest.mark.parametrize(("yaml", "expected"), TAGS)
def test_tags_of_properties(yaml: str, expected: list[str]) -> None:
    assert tags(f"---\n{yaml}\n---\n") == expected


def test_several_tags_in_one_text_are_a_problem_where_obsidian_sees_none() -> None:
    assert codes("---\nx: y\ntags: a, b\n---\n") == [("tags-ignored", 3)]
    assert codes("---\ntags: a b\n---\n", "lenient") == [("tags-lenient", 2)]
    assert codes("---\ntags: [a]\n---\n", "lenient") == []
    assert tags("---\ntag: '甲，乙 #丙'\n---\n", "lenient") == ["甲", "乙", "丙"]


ALIASES = [
    ("aliases: one, two", ("one, two",), ("one", "two")),
    ("aliases: [one, two, one, '', 3]", ("one", "two", "3"), ("one", "two", "3")),
    ("Aliases:\n- one", ("one",), ("one",)),
    ("alias: one", (), ("one",)),
    ("aliases:", (), ()),
    ("aliases: {a: b}", (), ()),
]


@pytest.mark.parametrize(("yaml", "obsidian", "lenient"), ALIASES)
def test_aliases(yaml: str, obsidian: tuple[str, ...], lenient: tuple[str, ...]) -> None:
    assert read(f"---\n{yaml}\n---\n").aliases == obsidian
    assert read(f"---\n{yaml}\n---\n", "lenient").aliases == lenient
