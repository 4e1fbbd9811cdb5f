"""Time grows with the size of a note and with nothing else."""

import time

import pytest

from tests.obsidian.reading import read

MANY = 100_000
REPEATED = [
    "[", "[[", "![", "![[", "[[|", "`", "```\n", "~~~\n\n", ">", "> ", "*", "_", "~~", "$", "$$", "<", "<!--", "<a ", "<?", "|", "#", "# ",
    "#a", "#a ", " #", "^", " ^a\n", "- ", "  - a\n", "1. ", "%%", "\\[#", "\\", "<br>#a", "*#a", "=#a", ">#a ", "[a](", "[a](b)", "[a]: b\n",
    "[^1]: x\n", "[[|a]]", "[[a|b]] ", "![[a]]", "&#35;", "http://x.y/_#a", "<div>\n", "| a |\n|--|\n", "\r", "#标签，更多 ", "a\n===\n",
    "a ^b\n\n", "---\n",
]  # fmt: skip
LONG = {
    "words": "word " * 1_600_000,
    "no blanks": "a" * 8_000_000,
    "Chinese": "汉字" * 1_400_000,
    "one tag": "#" + "a" * 8_000_000,
    "one address": "http://" + "a_#" * 2_600_000,
    "blank lines": "\n" * 8_000_000,
}
PROPERTIES = {
    "keys": "".join(f"k{i}: [a, b]\n" for i in range(50_000)),
    "equal keys": "".join(f"k{i}: 1\nk{i}: 2\n" for i in range(30_000)),
    "tags": "tags:\n" + "".join(f"- t{i}\n" for i in range(60_000)),
    "escaped tags": "tags:\n" + "".join(f'- "\\u0061{i}"\n' for i in range(50_000)),
    "links": "l:\n" + "".join(f'- "[[n{i}]]"\n' for i in range(50_000)),
    "escaped links": 'l:\n- "[[x]]"\n' + "".join(f'- "[[\\u0061{i}]]"\n' for i in range(40_000)),
    "placeholders": "".join(f"k{i}: {{{{t}}}}\n" for i in range(40_000)),
    "blanks": "x:" + " " * 900_000 + "y & *z\n",
    "colons": "a: &x b\n" + ":\n" * 300_000 + "*x\n",
}


def seconds(text: str) -> float:
    data = text.encode()
    start = time.process_time()
    read(data)
    return time.process_time() - start


@pytest.mark.slow
@pytest.mark.parametrize("piece", REPEATED, ids=repr)
def test_a_hundred_thousand_of_anything(piece: str) -> None:
    assert seconds(piece * MANY) < 5  # the slowest take half a second; quadratic ones would take minutes


@pytest.mark.slow
@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
def test_eight_megabytes_in_one_piece(text: str) -> None:
    assert seconds(text) < 5


@pytest.mark.slow
@pytest.mark.parametrize("yaml", PROPERTIES.values(), ids=PROPERTIES.keys())
def test_large_properties(yaml: str) -> None:
    assert seconds(f"---\n{yaml}---\n") < 5


@pytest.mark.parametrize("piece", ["[[", "```\n", "> ", "#a ", "[a](b) "])
def test_ten_times_as_much_takes_about_ten_times_as_long(piece: str) -> None:
    seconds(piece * 1000)
    small = min(seconds(piece * 2_000) for _ in range(3))
    assert seconds(piece * 20_000) < 40 * small + 0.05
