"""A real `dualwall serve` over a small real palace: two agents and a person, each with a canary that is theirs alone."""

import json
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from dualwall.tokens import digest
from palace.vocabulary import NoteRef
from tests.embeddings import DIMENSIONS
from tests.house import House

CANARY = "NIGHTJAR"
"""In the text, a heading, a title, a tag, a link, a room and a file that is skipped: all of them Owl's."""
TOKENS = {name: f"token-of-{name}" for name in ("me", "scout", "owl")}
NOTES: dict[str, str | bytes] = {
    "daily/2026-11-30.md": "Rain today. The fleece came off bed two.\n",
    "projects/Oven/plan.md": "# Hinge\nThe oven hinge creaks. #money\nSee [[notes]] and [[nowhere]].\n",
    "projects/Oven/notes.md": "The oven was bought in May. #money\n",
    "projects/Oven/long.md": "# Log\n"
    + "".join(f"Day {n}: the oven reached {180 + n} degrees.\n\n" for n in range(900)),
    "areas/Garden/index.md": "Everything that grows behind the bakery. And more.\n",
    "areas/Garden/beds.md": "Bed one has beans. Bed two has a fleece.\n",
    "areas/Garden/番茄.md": "番茄在五月以后移栽。霜冻过后才安全。\n",
    "Agents/scout/SOUL.md": "I am Scout. I never pay for an oven.\n",
    "Agents/scout/memory/2026-11-30.md": "Mei asked about the fleece.\n",
    "Agents/owl/SOUL.md": f"# {CANARY} rules\nI am Owl, a {CANARY}. The oven hinge is [[plan]]. #money #{CANARY}\n",
    f"Agents/owl/memory/{CANARY}.md": f"The fleece, the oven: a {CANARY} saw [[notes]] and [[{CANARY} nest]].\n",
    f"Agents/owl/{CANARY}-scratch.txt": CANARY,
}
TOML = """
data = "data"
timezone = "Asia/Shanghai"
[vaults.main]
source = "vault"
exclude = ["Agents/**"]
daily = {{ folder = "daily" }}
guard = {{ share = 1.0 }}
[[private]]
cube = "owl"
path = "vault:main/Agents/owl"
rooms = {{ system_config = ["SOUL.md"], {canary} = ["memory/*.md"] }}
[[private]]
cube = "scout"
path = "vault:main/Agents/scout"
rooms = {{ system_config = ["SOUL.md"], diary = ["memory/*.md"] }}
[readers.me]
cubes = ["global"]
token_sha256 = "{me}"
[readers.scout]
cubes = ["global", "scout"]
token_sha256 = "{scout}"
write = true
[readers.owl]
cubes = ["global", "owl"]
token_sha256 = "{owl}"
[embedding]
provider = "openai"
url = "{url}"
model = "test"
dimensions = {dimensions}
[inject]
deadline_ms = 5000
[serve]
schedule = ""
rate = {rate}
"""
OWLS = [NoteRef("owl", "main", f"Agents/owl/{path}").id for path in ("SOUL.md", f"memory/{CANARY}.md")]
"""Ids that a reader without that cube could have worked out."""


def furnished(folder: Path, url: str, rate: int = 1_000_000) -> House:
    """A palace after its first night."""
    house = House(folder, url)
    hashes = {name: digest(token) for name, token in TOKENS.items()}
    folder.mkdir(parents=True, exist_ok=True)
    house.settings_file.write_text(TOML.format(url=url, dimensions=DIMENSIONS, canary=CANARY, rate=rate, **hashes))
    house.furnish(NOTES)
    house.night()
    return house


@dataclass(slots=True)
class Served:
    """A running server. `log`: its last lines, as objects."""

    house: House
    url: str
    process: subprocess.Popen[str]
    log: deque[str] = field(default_factory=lambda: deque(maxlen=2000))

    def http(self, reader: str | None = "scout", token: str | None = None) -> httpx.Client:
        """A client with a reader's token, or another one, or none."""
        given = token if token is not None else TOKENS.get(reader or "")
        headers = {} if given is None else {"Authorization": f"Bearer {given}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60)

    def tool(self, name: str, arguments: dict[str, Any], reader: str = "scout") -> dict[str, Any]:
        """A tool's answer over REST."""
        with self.http(reader) as http:
            answer = http.post(f"/api/v1/tools/{name}", json=arguments)
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            return found


@contextmanager
def serving(house: House, *arguments: str) -> Iterator[Served]:
    """Run `dualwall serve` on a free port until the body ends; it has to stop gracefully, with exit code 0."""
    command = [sys.executable, "-m", "dualwall.cli", "serve", "--config", str(house.settings_file)]
    with subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        log: deque[str] = deque(maxlen=2000)
        reader = threading.Thread(target=lambda: log.extend(process.stderr or ()), daemon=True)
        reader.start()
        try:
            line = process.stdout.readline()
            served = Served(house, json.loads(line)["listening"] if line else "", process, log)
            yield served
            process.terminate()
            code = process.wait(30)
            assert code == 0, (code, list(log)[-20:])
        finally:
            process.kill()
            reader.join(10)


def wait_ready(served: Served, seconds: float = 60) -> None:
    """Until a question would be answered."""
    with served.http(None) as http:
        for _ in range(int(seconds * 10)):
            if http.get("/readyz").status_code == 200:
                return
            threading.Event().wait(0.1)
    raise AssertionError(list(served.log)[-20:])
