"""`dualwall.toml`: the shapes of the settings. Every key stands once, here, with its meaning."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Daily(_Part):
    """Where daily notes are. Left out: the vault's own daily-notes.json decides."""

    folder: str = ""
    format: str = "YYYY-MM-DD"


class Guard(_Part):
    """How much a source may lose in one run before the deletion guard stops it (both must be passed)."""

    share: Annotated[float, Field(ge=0, le=1)] = 0.2
    notes: Annotated[int, Field(ge=0)] = 20


class Vault(_Part):
    """One Obsidian vault, or any folder of Markdown."""

    source: str
    """A folder, or `user@host:path`."""
    public: tuple[str, ...] = (".",)
    exclude: tuple[str, ...] = ()
    daily: Daily | None = None
    mirror: Literal["rsync", "reflink", "copy"] = "rsync"
    guard: Guard = Guard()
    compat: Literal["obsidian", "lenient"] = "obsidian"

    @property
    def remote(self) -> bool:
        """Whether the source is another machine's: a colon before any slash, as rsync reads it."""
        return ":" in self.source.partition("/")[0]


class Rule(_Part):
    """A placement by glob; the longest match wins over the folder rule."""

    glob: str
    wing: str
    room: str


class Private(_Part):
    """A root that never enters the palace; cube and rooms come from here alone."""

    cube: str
    path: str
    rooms: dict[str, tuple[str, ...]]

    @property
    def in_vault(self) -> tuple[str, str] | None:
        """(vault, path in it) of a path written `vault:main/Agents/dev-cat`, else None."""
        if not self.path.startswith("vault:"):
            return None
        vault, _, path = self.path.removeprefix("vault:").partition("/")
        return vault, path.strip("/")


class ReaderEntry(_Part):
    """Who may ask, and which cubes they see."""

    cubes: Annotated[tuple[str, ...], Field(min_length=1)]
    token_sha256: str | None = None
    write: bool = False


class Stores(_Part):
    """Which engines hold vectors and graph."""

    vectors: Literal["edge", "qdrant", "memory"] = "edge"
    graph: Literal["sqlite", "neo4j", "memory"] = "sqlite"


class Embedding(_Part):
    """Which model embeds, and with how many workers. `provider = "openai"` asks an OpenAI-compatible address."""

    provider: Literal["fastembed", "openai"] = "fastembed"
    model: str = "multilingual-e5-small"
    vocabulary: Literal["all", "en-zh"] = "all"
    workers: Annotated[int, Field(ge=1, le=64)] = 2
    url: str | None = None
    api_key_file: Path | None = None
    dimensions: int | None = None
    query_prefix: str | None = None
    passage_prefix: str | None = None


class Rooms(_Part):
    """Which tags make no room, beside hex colours and single characters, and rules by glob."""

    deny_tags: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()


class Ingest(_Part):
    """Chunking and limits. Sizes in tokens of the model; `max_note_bytes`: larger notes are a Problem."""

    chunk_tokens: Annotated[int, Field(ge=32, le=480)] = 200
    max_note_bytes: Annotated[int, Field(ge=1024)] = 16 * 1024 * 1024


class Search(_Part):
    """Ranking: `fusion` over the top `prefetch` of each leg, `per_note` chunks of a note at most."""

    fusion: Literal["minmax", "rrf"] = "minmax"
    prefetch: Annotated[int, Field(ge=10, le=1000)] = 100
    limit: Annotated[int, Field(ge=1, le=100)] = 10
    per_note: Annotated[int, Field(ge=1, le=20)] = 2


class Settings(_Part):
    """The whole file. Paths are absolute after loading (`palace.configuration`)."""

    data: Path
    timezone: str = "UTC"
    vaults: dict[str, Vault] = Field(default_factory=dict)
    private: tuple[Private, ...] = ()
    readers: dict[str, ReaderEntry] = Field(default_factory=dict)
    stores: Stores = Stores()
    embedding: Embedding = Embedding()
    rooms: Rooms = Rooms()
    ingest: Ingest = Ingest()
    search: Search = Search()

    @property
    def default_reader(self) -> str:
        """The reader of the command line when none is named: the file's first one."""
        return next(iter(self.readers))

    def mirror(self, vault: str) -> Path:
        """Where a vault's mirror is."""
        return self.data / "mirror" / vault

    @property
    def palace(self) -> Path:
        """The folder of generations; `current` in it is the symlink that is swapped."""
        return self.data / "palace"

    @property
    def catalogue(self) -> Path:
        """The SQLite file of ledger and embedded graph."""
        return self.data / "store" / "catalogue.sqlite"
