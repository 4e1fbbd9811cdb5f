"""Makes a Markdown vault of any size for benches: the same bytes for the same seed, on every machine.

    python -m bench.vault OUT --notes N [--seed S] [--questions FILE]

English and Chinese notes in folders (wings and rooms), with properties, nested tags, aliases, links, daily notes,
tables, code, tasks and callouts. Words follow Zipf's law within topics, so lexical ranking has something to rank.
Sizes are skewed: the median is 2 kB, the mean 3 kB, and three notes of a thousand have 30 to 300 kB. 12 883 notes make
about 65 000 chunks of 200 tokens.

Note `i` depends on the seed and on `i` alone and links only to earlier notes, so a vault of 1 000 notes is the beginning
of one of 10 000. Each note states one fact; `--questions` writes questions about some of them with the path of the answer.
"""

import argparse
import datetime as dt
import itertools
import json
import math
import os
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bench import words

DAILY_EVERY = 12
_FIRST_DAY = dt.date(2012, 1, 1)
_SUFFIXES = ("Lab", "Log", "2023")
_SUFFIXES_CHINESE = ("笔记", "项目")
_SECTIONS = ("sources", "2020", "2022", "trials", "old", "meetings")
_WINGS = ("projects", "areas", "reading", "archive", "people", "inbox", "", "项目", "读书", "生活")
_WING_WEIGHTS = tuple(itertools.accumulate((30, 18, 14, 10, 6, 2, 2, 8, 6, 4)))
_CHINESE_WINGS = frozenset({"项目", "读书", "生活"})
_FLAT_TAGS = ("to-read", "idea", "done", "question", "待办", "想法", "v2", "PS5", "long-term")
_UNITS = ("grams", "minutes", "volts", "degrees", "litres", "metres", "kilos", "hours")
_UNITS_CHINESE = ("克", "分钟", "伏", "度", "升", "米", "公斤", "小时")


@dataclass(frozen=True, slots=True)
class Identity:
    """What others need to know of a note to link to it. `path` is relative to the vault."""

    index: int
    path: str
    title: str
    topic: int
    chinese: bool
    fact: str
    question: str


def generate(out: Path, notes: int, seed: int = 1) -> None:
    """Write a vault of `notes` notes into `out`, which must be empty or absent (FileExistsError otherwise)."""
    if out.exists() and any(out.iterdir()):
        raise FileExistsError(f"{out} is not empty; name a new folder")
    settings = out / ".obsidian"
    settings.mkdir(parents=True)
    (settings / "daily-notes.json").write_text('{"folder": "daily", "format": "YYYY-MM-DD"}\n', encoding="utf-8")
    made: set[str] = set()
    for index in range(notes):
        note = identity(seed, index)
        folder = os.path.dirname(note.path)  # noqa: PTH120 - a Path a note costs as much as writing it
        if folder not in made:
            (out / folder).mkdir(parents=True, exist_ok=True)
            made.add(folder)
        rng = random.Random(f"{seed}:{index}:body")
        target = out / note.path
        target.write_bytes(_render(note, rng, seed).encode())
        when = 1_325_376_000 + index * 7_919  # the later the note, the younger; whole seconds
        os.utime(target, (when, when))


def questions(notes: int, seed: int = 1, count: int = 200) -> Iterator[dict[str, str]]:
    """Up to `count` questions, evenly spread, each with the path of the only note that answers it."""
    step = max(1, notes // count)
    for index in range(0, min(notes, step * count), step):
        note = identity(seed, index)
        yield {"question": note.question, "path": note.path, "language": "zh" if note.chinese else "en"}


@lru_cache(maxsize=8192)
def identity(seed: int, index: int) -> Identity:
    """Path, title, topic and fact of note `index`."""
    rng = random.Random(f"{seed}:{index}")
    topic = rng.randrange(len(words.TOPICS))
    wing = rng.choices(_WINGS, cum_weights=_WING_WEIGHTS)[0]
    chinese = wing in _CHINESE_WINGS or rng.random() < 0.12
    fact, question = _fact(rng, index, words.TOPICS[topic], chinese=chinese)
    if index % DAILY_EVERY == DAILY_EVERY // 2:
        title = (_FIRST_DAY + dt.timedelta(days=index // DAILY_EVERY)).isoformat()
        path = f"daily/{title}.md"
    else:
        title = _title(rng, index, words.TOPICS[topic], chinese=chinese)
        path = "/".join((*_folders(rng, wing, words.TOPICS[topic]), f"{title}.md"))
    return Identity(index, path, title, topic, chinese, fact, question)


def _title(rng: random.Random, index: int, topic: words.Topic, *, chinese: bool) -> str:
    if chinese:
        return f"{words.place_chinese(index)}的{rng.choice(topic.chinese)}"
    return f"{rng.choice(topic.english).capitalize()} at {words.place(index)}"


def _fact(rng: random.Random, index: int, topic: words.Topic, *, chinese: bool) -> tuple[str, str]:
    number, unit = rng.randrange(11, 990), rng.randrange(len(_UNITS))
    if chinese:
        noun, person = rng.choice(topic.chinese), words.person_chinese(index)
        return f"{person}量到的{noun}是{number}{_UNITS_CHINESE[unit]}。", f"{person}量到的{noun}是多少？"
    noun, person = rng.choice(topic.english), words.person(index)
    return (
        f"{person} measured {number} {_UNITS[unit]} for the {noun}.",
        f"What did {person} measure for the {noun}?",
    )


def _folders(rng: random.Random, wing: str, topic: words.Topic) -> tuple[str, ...]:
    if wing in ("", "inbox"):
        return (wing,) if wing else ()
    if wing == "people" or rng.random() < 0.06:
        return (wing,)
    room = _room(rng, topic, chinese=wing in _CHINESE_WINGS)
    return (wing, room, rng.choice(_SECTIONS)) if rng.random() < 0.3 else (wing, room)


def _room(rng: random.Random, topic: words.Topic, *, chinese: bool) -> str:
    if chinese:
        return f"{topic.label_zh}{rng.choice(_SUFFIXES_CHINESE)}"
    return f"{topic.key}-{rng.choice(_SUFFIXES)}"


@lru_cache(maxsize=64)
def _population(topic: int, *, chinese: bool) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Words of a topic with cumulative weights: six of ten are common, three the topic's, one is of another topic."""
    common = words.COMMON_CHINESE if chinese else words.COMMON_ENGLISH
    subjects = [t.chinese if chinese else t.english for t in words.TOPICS]
    strange = tuple(word for n, subject in enumerate(subjects) if n != topic for word in subject)
    weights = (*_zipf(common, 0.6, 0.5), *_zipf(subjects[topic], 0.3, 0.8), *_zipf(strange, 0.1, 0.3))
    return (*common, *subjects[topic], *strange), tuple(itertools.accumulate(weights))


def _zipf(group: Sequence[str], share: float, exponent: float) -> Iterator[float]:
    weights = [(rank + 2) ** -exponent for rank in range(len(group))]
    return (share * weight / sum_ for sum_ in (sum(weights),) for weight in weights)


class _Writer:
    """Writes blocks of one note. `size` counts bytes, about."""

    def __init__(self, note: Identity, rng: random.Random, seed: int) -> None:
        self.note, self.rng, self.seed = note, rng, seed
        self.topic = words.TOPICS[note.topic]
        self.population, self.weights = _population(note.topic, chinese=note.chinese)
        self.joint, self.stop = ("", "。") if note.chinese else (" ", ".")
        self.blocks: list[str] = []
        self.size = 0

    def add(self, block: str) -> None:
        self.blocks.append(block)
        self.size += len(block) * (3 if self.note.chinese else 1)

    def phrase(self, low: int, high: int) -> str:
        count = low + int(self.rng.random() * (high - low))
        return self.joint.join(self.rng.choices(self.population, cum_weights=self.weights, k=count))

    def sentence(self) -> str:
        text, dice = self.phrase(6, 19), self.rng.random()
        if dice < 0.1:
            text = self.joint.join((text, self.mention(), self.phrase(2, 8)))
        elif dice < 0.2:
            text = self.joint.join((text, self.link(), self.phrase(2, 6)))
        return text[:1].upper() + text[1:] + self.stop

    def mention(self) -> str:
        """A place's name; a few are named often, most hardly ever."""
        index = int(60_000 * self.rng.random() ** 4)
        return words.place_chinese(index) if self.note.chinese else words.place(index)

    def link(self) -> str:
        if self.note.index == 0 or self.rng.random() < 0.05:
            return f"[[{self.phrase(2, 4)}]]"
        other = identity(self.seed, int(self.note.index * self.rng.random() ** 2))
        return f"[[{other.title}|{self.phrase(1, 3)}]]" if self.rng.random() < 0.2 else f"[[{other.title}]]"

    def tag(self) -> str:
        """A nested tag of the topic, a room's address, or a flat tag."""
        dice = self.rng.random()
        if dice < 0.55:
            return f"{self.topic.key.lower()}/{self.rng.choice(self.topic.english[:6])}"
        if dice < 0.75:
            return f"projects/{_room(self.rng, self.topic, chinese=False)}"
        return self.rng.choice(_FLAT_TAGS) if dice < 0.9 else self.topic.label_zh

    def paragraph(self) -> str:
        text = self.joint.join(self.sentence() for _ in range(self.rng.randrange(1, 5)))
        return f"{text} #{self.tag()}" if self.rng.random() < 0.08 else text

    def items(self) -> str:
        mark = self.rng.choice(("- ", "- ", "1. ", "- [ ] ", "- [x] "))
        return "\n".join(mark + self.phrase(3, 12) for _ in range(self.rng.randrange(3, 9)))

    def table(self) -> str:
        columns = self.rng.randrange(2, 5)
        head = [self.phrase(1, 2) for _ in range(columns)]
        rows = [
            [self.phrase(1, 4), *(str(self.rng.randrange(1000)) for _ in head[1:])]
            for _ in range(self.rng.randrange(3, 9))
        ]
        return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * columns, *rows))

    def code(self) -> str:
        names = self.rng.sample(self.topic.english, k=3)
        lines = (f"{name} = {self.rng.randrange(4096)}  # not a #tag" for name in names)
        return "```python\n#!/usr/bin/env python\n" + "\n".join(lines) + "\n```"

    def callout(self) -> str:
        return f"> [!note] {self.phrase(2, 5)}\n> {self.sentence()}\n> {self.sentence()}"

    def block(self) -> str:
        dice = self.rng.random()
        for share, make in ((0.76, self.paragraph), (0.92, self.items), (0.94, self.table), (0.98, self.callout)):
            if dice < share:
                return make()
        return self.code()

    def heading(self) -> str:
        texts = words.HEADINGS_CHINESE if self.note.chinese else words.HEADINGS_ENGLISH
        mark = "##" if self.rng.random() < 0.75 else "###"
        text = self.rng.choice(texts) if self.rng.random() < 0.6 else self.phrase(2, 5)
        return f"{mark} {text}"

    def properties(self) -> str:
        lines = ["tags:", *(f"  - {self.tag()}" for _ in range(self.rng.randrange(1, 4)))]
        if self.rng.random() < 0.25:
            lines += ["aliases:", f"  - {self.phrase(2, 4)}"]
        lines.append(f"created: {_FIRST_DAY + dt.timedelta(days=self.note.index % 4000)}")
        return "\n".join(("---", *lines, "---"))


def _render(note: Identity, rng: random.Random, seed: int) -> str:
    writer = _Writer(note, rng, seed)
    target = _target_size(rng)
    if rng.random() < 0.7:
        writer.add(writer.properties())
    if rng.random() < 0.6:
        writer.add(f"# {note.title}")
    fact_at, per_section = target * rng.random(), rng.randrange(7, 16)
    told = False
    for turn in itertools.count():
        if turn % per_section == per_section - 1:
            writer.add(writer.heading())
        writer.add(writer.block())
        if not told and writer.size >= fact_at:
            writer.add(writer.joint.join((writer.sentence(), note.fact, writer.sentence())))
            told = True
        if told and writer.size >= target:
            break
    return "\n\n".join(writer.blocks) + "\n"


def _target_size(rng: random.Random) -> float:
    """Bytes: lognormal around 2 kB (blocks overshoot it a little), with a long tail of 30 to 300 kB."""
    if rng.random() < 0.003:
        return 30_000 * 10 ** rng.random()
    return min(30_000.0, rng.lognormvariate(math.log(1_950), 0.8))


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m bench.vault", description="Make a Markdown vault for benches.")
    parser.add_argument("out", type=Path, help="a folder that is empty or absent")
    parser.add_argument("--notes", type=int, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--questions", type=Path, metavar="FILE", help="write known questions here, outside the vault")
    options = parser.parse_args()
    begin = time.perf_counter()
    try:
        generate(options.out, options.notes, options.seed)
    except FileExistsError as error:
        parser.error(str(error))
    if options.questions:
        lines = (json.dumps(q, ensure_ascii=False) for q in questions(options.notes, options.seed))
        options.questions.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{options.notes} notes in {options.out}, {time.perf_counter() - begin:.1f} s", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
