"""Links as written, and which note they mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palace.obsidian.links import LinkIndex, link_key, markdown_link, parts, resolve, wikilink
from palace.vocabulary import Link
from tests.obsidian.reading import read


def written(text: str) -> list[tuple[str, str | None, bool]]:
    return [(link.link, link.alias, link.embed) for link in read(text).links]


LINKS = [
    ("[[Note]]", [("Note", None, False)]),
    ("[[Note|shown]]", [("Note", "shown", False)]),
    ("[[ Note | shown ]]", [("Note", "shown", False)]),
    ("[[a|b|c]]", [("a", "b|c", False)]),
    ("[[a||b]]", [("a", "|b", False)]),
    ("![[img.png|300]]", [("img.png", "300", True)]),
    ("[[#Here]] [[#^b1]]", [("#Here", None, False), ("#^b1", None, False)]),
    ("| [[a\\|b]] |\n|--|\n| ![[c\\|d]] |\n", [("a", "b", False), ("c", "d", True)]),
    ("[[]] [[ ]]", []),
    ("[[|]] [[|x]] [[|#y]]", [("|", None, False), ("|x", None, False), ("|#y", None, False)]),
    ("[[over\ntwo lines]]", []),
    ("[[nested [x]]] [[a]]", [("nested [x", None, False), ("a", None, False)]),
    (r"\[[a]] \[\[b\]\]", []),
    ("`[[a]]` <!-- [[b]] -->\n\n```\n[[c]]\n```\n\n$[[d]]$\n", []),
    ("%% [[a]] %%\n\n# [[b]]\n\n- [ ] [[c]]\n\n> [[d]]\n", [(x, None, False) for x in "abcd"]),
    ("*[[a]]* **![[b]]**", [("a", None, False), ("b", None, True)]),
    ("[x](a.md)", [("a.md", "x", False)]),
    ("[x](a%20b.md#h%20i 'title')", [("a b.md#h i", "x", False)]),
    ("[x](<a b.md>)", [("a b.md", "x", False)]),
    ("[x](100%25.md) [y](100%.md) [z](%ff.md)", [("100%.md", "x", False), ("100%.md", "y", False), ("%ff.md", "z", False)]),
    ("[x](#h) [](a.md)", [("#h", "x", False), ("a.md", "", False)]),
    ("![x](p.png)", [("p.png", "x", True)]),
    ("[x]() [](<>)", []),
    ("[x](https://a) [y](mailto:b@c) [z](//d/e) [o](obsidian://open) ![w](http://e/p.png) <http://f>", []),
    ("[two\nlines](a.md)", [("a.md", "two lines", False)]),
    ("[r][q]\n\n[q]: a.md\n", []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), LINKS)
def test_links_as_written(text: str, expected: list[tuple[str, str | None, bool]]) -> None:
    assert written(text) == expected


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("page", ("page", None, None)),
        ("page#a#b", ("page", "a#b", None)),
        ("page#^b", ("page", None, "b")),
        ("#a", ("", "a", None)),
        ("page#", ("page", None, None)),
        ("a note #tag", ("a note", "tag", None)),
    ],
)
def test_the_parts_of_a_link(link: str, expected: tuple[str, str | None, str | None]) -> None:
    assert parts(link) == expected


def test_links_in_properties_are_whole_texts_with_their_keys() -> None:
    text = '---\nup: "[[A|a]]"\nall:\n  - "[[B#h]]"\n  - in: "[[C]]"\nno: "see [[D]]"\nalso: "[[E]] [[F]]"\nbare: [[G]]\n---\n'
    data = text.encode()
    links = read(data).links
    assert [(link.link, link.alias, link.key, link.line) for link in links] == [
        ("A", "a", "up", 2), ("B#h", None, "all.0", 4), ("C", None, "all.1.in", 5),
    ]  # fmt: skip
    assert [data[link.start : link.end] for link in links] == [b"[[A|a]]", b"[[B#h]]", b"[[C]]"]


def test_a_link_knows_its_line() -> None:
    assert [link.line for link in read("---\na: b\n---\n\n[[x]]\n[[y]]\r\n\r\n[[z]]").links] == [5, 6, 8]


VAULT = [
    "Home.md",
    "a/Home.md",
    "a/deep/Note.md",
    "b/Note.md",
    "b/img.png",
    "b/other.md",
    "a/b/other.md",
    "double.md.md",
    "v1.2.md",
]


@pytest.mark.parametrize(
    ("target", "source", "expected"),
    [
        ("", "a/x.md", "a/x.md"),
        ("home", "b/x.md", "Home.md"),
        ("HOME.MD", "b/x.md", "Home.md"),
        ("Home", "a/x.md", "Home.md"),  # the exact path comes before the same folder
        ("Note", "c/x.md", "b/Note.md"),  # the shortest path
        ("note", "a/deep/x.md", "a/deep/Note.md"),  # the same folder
        ("deep/Note", "c/x.md", "a/deep/Note.md"),
        ("b/other", "a/x.md", "b/other.md"),
        ("./Note", "a/x.md", None),
        ("./Note", "b/x.md", "b/Note.md"),
        ("../b/Note", "a/x.md", "b/Note.md"),
        ("../../Note", "a/x.md", None),
        ("/Home", "a/x.md", "Home.md"),
        ("/Note", "b/x.md", None),
        ("img.png", "x.md", "b/img.png"),
        ("img", "x.md", None),
        ("double.md.md", "x.md", "double.md.md"),
        ("double.md", "x.md", None),
        ("v1.2", "x.md", "v1.2.md"),
        ("ome", "x.md", None),
        ("Missing", "x.md", None),
    ],
)
def test_which_note_a_link_means(target: str, source: str, expected: str | None) -> None:
    assert LinkIndex(VAULT).resolve(target, source) == expected


def test_names_that_differ_in_case_or_normal_form() -> None:
    paths = ["case/Note.md", "case/note.md", "caf\u00e9.md"]
    index = LinkIndex(paths)
    assert index.resolve("note", "case/x.md") == "case/note.md"
    assert index.resolve("Note", "case/x.md") == "case/Note.md"
    assert index.resolve("NOTE", "case/x.md") == "case/Note.md"
    assert index.resolve("cafe\u0301", "x.md") == "caf\u00e9.md"


def test_a_note_that_came_and_went() -> None:
    index = LinkIndex(["a/Note.md"])
    index.add("Note.md")
    index.add("Note.md")
    assert index.candidates("x/NOTE") == ["a/Note.md", "Note.md"]
    index.discard("Note.md")
    index.discard("never.md")
    assert index.resolve("note", "x.md") == "a/Note.md"


NAMES = st.text(alphabet="aB./é md", max_size=8)
PATHS = st.lists(
    st.lists(st.text(alphabet="aBcé. ", min_size=1, max_size=3), min_size=1, max_size=3)
    .map("/".join)
    .map("{}.md".format)
)


@given(NAMES, PATHS, PATHS)
def test_only_paths_with_the_same_key_decide(target: str, paths: list[str], sources: list[str]) -> None:
    source = (sources or ["x.md"])[0]
    same_key = [path for path in paths if link_key(path) == link_key(target)]
    assert resolve(target, source, paths) == resolve(target, source, same_key)


@given(st.text())
def test_any_text_has_parts(text: str) -> None:
    target, heading, block = parts(text)
    assert heading is None or block is None
    assert target == text.partition("#")[0].strip()
    wikilink(text)
    markdown_link(text)


def test_a_link_is_what_the_vocabulary_says() -> None:
    assert read("x [[a#^b|c]]").links == (Link("a#^b", "a", None, "b", "c", embed=False, line=1, start=2, end=12),)
