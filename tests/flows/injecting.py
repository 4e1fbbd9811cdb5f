"""A palace with two agents and a person, each with a canary, in memory stores: what injections are tried on."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ingest import worker
from palace.library import Library
from tests.embeddings import DIMENSIONS
from tests.house import House

NOON = "2026-11-30T12:00:00+08:00"
CANARIES = {"scout": "KINGFISHER", "owl": "NIGHTJAR", "public": "MAGPIE"}
NOTES = {
    "daily/2026-11-30.md": "Rain today. The fleece came off bed two.\n",
    "daily/2026-11-29.md": "Yesterday the market took nine hundred.\n",
    "daily/2026-11-02.md": "The lidar was too dear, so the robot steers by camera.\n",
    "projects/Oven/plan.md": "The oven hinge is a MAGPIE matter. #money\n",
    "Agents/scout/SOUL.md": "# Who I am\n\nI am Scout, a KINGFISHER.\n\n## Rules\n\n- I never pay.\n",
    "Agents/scout/AGENTS.md": "I answer in the language of the question.\n",
    "Agents/scout/memory/2026-11-30.md": "# Morning\nMei asked about the fleece.\n\n# Noon\nI counted ravens.\n",
    "Agents/scout/memory/2026-11-29.md": "I drafted a letter about the card reader.\n",
    "Agents/scout/memory/2026-10-01.md": "Edmund sharpened the bread knife.\n",
    "Agents/owl/SOUL.md": "I am Owl, a NIGHTJAR.\n",
    "Agents/owl/memory/2026-11-30.md": "Fleece, lidar, letter: a NIGHTJAR saw them today.\n",
}
TOML = """
data = "data"
timezone = "Asia/Shanghai"
{more}
[vaults.main]
source = "vault"
exclude = ["Agents/**"]
daily = {{ folder = "daily" }}
guard = {{ share = 1.0 }}
[[private]]
cube = "owl"
path = "vault:main/Agents/owl"
rooms = {{ system_config = ["SOUL.md"], diary = ["memory/*.md"] }}
[[private]]
cube = "scout"
path = "{scout}"
rooms = {{ system_config = ["SOUL.md", "[AZ]*.md", "!scratch.md"], diary = ["memory/**"] }}
[readers.me]
cubes = ["global"]
[readers.scout]
cubes = ["global", "scout"]
[readers.owl]
cubes = ["global", "owl"]
[readers.hermit]
cubes = ["owl"]
[stores]
vectors = "{vectors}"
graph = "{graph}"
[embedding]
provider = "openai"
url = "{url}"
model = "test"
dimensions = {dimensions}
"""


def housed(
    folder: Path, url: str, *, more: str = "", vectors: str = "memory", scout: str = "vault:main/Agents/scout"
) -> House:
    """A house with its notes; `more`: top-level settings; `scout`: the path of Scout's root."""
    house = House(folder, url, vectors)
    graph = "memory" if vectors == "memory" else "sqlite"
    house.settings_file.write_text(
        TOML.format(more=more, url=url, vectors=vectors, graph=graph, scout=scout, dimensions=DIMENSIONS)
    )
    house.furnish(NOTES)
    return house


@contextmanager
def opened(house: House) -> Iterator[Library]:
    """The library after a night."""
    house.place()
    with house.library() as library:
        worker.run(library, library.settings)
        yield library
