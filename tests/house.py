"""A whole small palace for tests: a vault on the disk, its settings, and nights that bring it up to date."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingest import worker
from ingest.worker import Options
from librarian.build import build
from palace.configuration import load
from palace.library import Library
from palace.settings import Settings
from palace.vocabulary import Counts
from sync.run import sync
from tests.embeddings import DIMENSIONS

TOML = """
data = "data"
[vaults.main]
source = "vault"
exclude = ["Agents/**"]
guard = {{ share = 1.0 }}
[[private]]
cube = "scout"
path = "vault:main/Agents/scout"
rooms = {{ system_config = ["SOUL.md"], diary = ["memory/*.md"] }}
[readers.me]
cubes = ["global"]
[readers.scout]
cubes = ["global", "scout"]
[stores]
vectors = "{vectors}"
[embedding]
provider = "openai"
url = "{url}"
model = "test"
dimensions = {dimensions}
"""


_DEFAULT = Options()


@dataclass(slots=True)
class House:
    """`vault`: the folder to write notes into; `data`: what Dualwall makes of it."""

    folder: Path
    url: str
    vectors: str = "edge"

    @property
    def vault(self) -> Path:
        return self.folder / "vault"

    @property
    def settings_file(self) -> Path:
        return self.folder / "dualwall.toml"

    @property
    def settings(self) -> Settings:
        return load(self.settings_file)

    def furnish(self, notes: Mapping[str, str | bytes]) -> None:
        """Write notes and, the first time, the settings."""
        for path, text in notes.items():
            file = self.vault / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
        if not self.settings_file.exists():
            self.settings_file.write_text(TOML.format(vectors=self.vectors, url=self.url, dimensions=DIMENSIONS))

    def place(self) -> None:
        """Sync and shelve, without an ingest."""
        settings = self.settings
        for vault in settings.vaults:
            sync(settings, vault)
        build(settings)

    def ingest(self, options: Options = _DEFAULT) -> Counts:
        with self.library() as library:
            return worker.run(library, library.settings, options=options)

    def night(self, options: Options = _DEFAULT) -> Counts:
        self.place()
        return self.ingest(options)

    @contextmanager
    def library(self) -> Iterator[Library]:
        library = Library.open(self.settings)
        try:
            yield library
        finally:
            library.close()

    def search(self, query: str, reader: str = "me", **options: Any) -> dict[str, Any]:  # noqa: ANN401 - a search's own
        with self.library() as library:
            return library.search(reader, query, **options)

    def verify(self) -> dict[str, Any]:
        with self.library() as library:
            return library.verify()
