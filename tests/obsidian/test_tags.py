"""What is a tag in the body, and what is none."""

import pytest

from palace.obsidian.tags import tag_name
from tests.obsidian.reading import codes, read, tags

# The twenty-five inputs that settle the rule.
INPUTS = [
    ("#AI-Fortune #Architecture", ["AI-Fortune", "Architecture"]),
    ("# Heading", []),
    ("#Heading", ["Heading"]),
    ("#1984 #y1984 #2024-goals", ["y1984", "2024-goals"]),
    ("c: #ff0000", ["ff0000"]),
    ("https://x.y/p#frag", []),
    ("[[Note#Heading]] [[#Same]] ![[N#^b1]]", []),
    ("[Chat #support](u#x)", ["support"]),
    ("`#code`\n\n```\n#!/bin/sh\n```\n", []),
    ("%% #hidden %%", ["hidden"]),
    ("<!-- #html -->\n\n<div>\n#p\n</div>\n", []),
    ("$#m$\n\n$$\n#m2\n$$\n", []),
    (r"\#escaped", []),
    ('(#a) "#b" .#c', []),
    ("#a#b", ["a", "b"]),
    ("x _#u_ y", ["u"]),
    ("#人工智能 #café #日本語", ["人工智能", "café", "日本語"]),
    ("#标签，更多", ["标签，更多"]),
    ("#inbox/to-read", ["inbox/to-read"]),
    ("#a/", ["a"]),
    ("#Tag #TAG", ["Tag"]),
    ("\u3000#x", ["x"]),
    ("foo#bar", []),
    ("---\ntags: a, b\n---\n", []),
    ("---\ntags: solo\n---\n", ["solo"]),
    ('---\ntags: ["#q", 1984, "two words"]\n---\n', ["q"]),
    ("\ufeff---\ntags: [a]\n---\n", ["a"]),
    ("\n---\ntags: [a]\n---\n", []),
    ("---\nTAGS: [a]\n---\n", ["a"]),
    ("---\ntag: a\n---\n", []),
    ("#diary #System_Config #ｄｉａｒｙ #dіary", ["diary", "System_Config", "ｄｉａｒｙ", "dіary"]),
]
LENIENT = [("---\ntags: a, b\n---\n", ["a", "b"]), ("---\ntag: a\n---\n", ["a"])]

OURS = [
    ("after white space of every kind", "\u00a0#a\u2003#b\tc\u2028#d", ["a", "b", "d"]),
    ("a zero-width space ends a tag and opens none", "#a\u200bb \u200b#c", ["a"]),
    ("U+FEFF counts as white space", "x \ufeff#a", ["a"]),
    ("emphasis, strike and highlight", "**#a** *#b* ~~#c~~ ==#d== __#e__", ["a", "b", "c", "d", "e"]),
    ("underscores inside stay", "#a_b_c _#d_e_", ["a_b_c", "d_e"]),
    ("an equals sign before", "k=#v", ["v"]),
    ("not after brackets and braces", "[#a] {#b} <#c>", []),
    ("an escaped bracket before", r"\[\[#Escaped Links\]\]", ["Escaped"]),
    ("a chain ends at what is no tag", "#a#b#1#c", ["a", "b"]),
    ("two hashes are none", "##a # b", []),
    ("only slashes are none", "#/ #//", []),
    ("a digit and a slash are a tag", "#1/2", ["1/2"]),
    ("punctuation ends a tag", "#a, #b. #c; #d: #e! #f? #g) #h", ["a", "b", "c", "d", "e", "f", "g", "h"]),
    ("emoji, and a joiner that ends it", "#✅done #👨\u200d👩", ["✅done", "👨"]),
    ("controls end a tag", "#a\x07b #c\x00d", ["a", "c"]),
    ("table cells with and without blanks", "| #a|#b |\n|--|--|\n|#c|#d|\n", ["a", "b", "c", "d"]),
    ("quotes and callouts, also without a blank", "> #a\n>#b\n\n> [!note] T #c\n>> #d\n", ["a", "b", "c", "d"]),
    ("a tag of HTML is no quote mark", "x <b>#a</b>", []),
    ("lists and tasks", "- #a\n- [ ] #b\n- [x] c #d\n1. #e\n", ["a", "b", "d", "e"]),
    ("headings", "# t #a\n\nu #b\n===\n", ["a", "b"]),
    ("footnotes", "x[^1]\n\n[^1]: #a\n", ["a"]),
    ("comments in blocks", "%%\n#a\n%%\n", ["a"]),
    ("an unclosed comment", "#a\n\n%% open\n#b\n", ["a", "b"]),
    ("an unclosed fence runs to the end", "#a\n\n~~~\n#b\n\n#c\n", ["a"]),
    ("indented code", "x\n\n    #a\n\n#b\n", ["b"]),
    ("code in lists and quotes", "- x\n  ```\n  #a\n  ```\n\n> ```\n> #b\n> ```\n\n#c\n", ["c"]),
    ("an image's text", "![#a b #c](p.png) ![[p|#d]]", []),
    ("a wikilink's alias", "[[n|#a b #c]] #d", ["d"]),
    ("addresses with marks before the hash", "http://x/_#a https://y/?q=#b www.z/~#c <http://w/ #d>", ["d"]),
    ("a link's own brackets", "[#a b](u) [b #c](u)", ["c"]),
    ("dollars that are no math", "costs $5 and #a costs $6", ["a"]),
    ("an entity", "&#35;a &amp;#b", []),
    ("a backslash ends a tag", r"#a\_b", ["a"]),
]


@pytest.mark.parametrize(("text", "expected"), INPUTS)
def test_the_twenty_five_inputs(text: str, expected: list[str]) -> None:
    assert tags(text) == expected


@pytest.mark.parametrize(("text", "expected"), LENIENT)
def test_lenient_vaults_take_more(text: str, expected: list[str]) -> None:
    assert tags(text, "lenient") == expected
    assert codes(text, "lenient") == [("tags-lenient", 2)]


@pytest.mark.parametrize(("text", "expected"), [case[1:] for case in OURS], ids=[case[0] for case in OURS])
def test_the_rule_in_its_corners(text: str, expected: list[str]) -> None:
    assert tags(text) == expected


def test_a_tag_keeps_its_first_spelling_and_line() -> None:
    note = read("---\ntags:\n- one\n- Two\n---\n\n#two #Three\n#THREE\n")
    assert [(t.name, t.line, t.inline) for t in note.tags] == [("one", 3, False), ("Two", 4, False), ("Three", 7, True)]


def test_the_same_letters_in_two_normal_forms_are_one_tag() -> None:
    assert tags("#caf\u00e9 #cafe\u0301") == ["café"]


def test_full_width_punctuation_in_a_tag_is_flagged_where_it_stands() -> None:
    assert codes("x\n\n#标签，更多 #标签\n") == [("tag-punctuation", 3)]


@pytest.mark.parametrize(
    ("written", "name"),
    [("a", "a"), ("#a", "a"), (" a ", "a"), ("a/", "a"), ("a b", None), ("2024", None), ("", None), ("#", None), ("a.b", None),
     ("##a", None), ("/", None), ("🎉", "🎉")],
)  # fmt: skip
def test_tags_of_the_properties(written: str, name: str | None) -> None:
    assert tag_name(written) == name
