"""`dualwall.toml`: the shapes of the settings. Every key stands once, here, with its meaning for `dualwall init`."""

from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Daily(_Part):
    """Where daily notes are. Left out: the vault's own daily-notes.json decides."""

    folder: str = ""
    """The folder, relative to the vault; "" is the vault itself."""
    format: str = "YYYY-MM-DD"
    """The date in the file names, as Obsidian writes it."""


class Guard(_Part):
    """How much a source may lose in one run before the deletion guard stops it (both must be passed)."""

    share: Annotated[float, Field(ge=0, le=1)] = 0.2
    """The share of the notes."""
    notes: Annotated[int, Field(ge=0)] = 20
    """The number of notes."""


class Vault(_Part):
    """One Obsidian vault, or any folder of Markdown."""

    source: str
    """Where the vault is: a folder, or user@host:path (by ssh)."""
    public: tuple[str, ...] = (".",)
    """Folders of the vault that become rooms which every reader of the cube `global` sees."""
    exclude: tuple[str, ...] = ()
    """Globs of what stays out, beside what is never read (.obsidian, .trash, .git, templates, conflict copies)."""
    daily: Daily | None = None
    """The daily notes. Left out: the vault's own .obsidian/daily-notes.json decides."""
    mirror: Literal["rsync", "reflink", "copy"] = "rsync"
    """How the mirror is made: rsync, or reflink or copy where there is no rsync (local vaults only)."""
    guard: Guard = Guard()
    """How much may vanish in one run before nothing is deleted and the run stops; both must be passed."""
    compat: Literal["obsidian", "lenient"] = "obsidian"
    """How properties are read: obsidian (as Obsidian does) or lenient."""

    @property
    def remote(self) -> bool:
        """Whether the source is another machine's: a colon before any slash, as rsync reads it."""
        return ":" in self.source.partition("/")[0]


class Rule(_Part):
    """A placement by glob; the longest match wins over the folder rule."""

    glob: str
    """Which notes, relative to the public folder."""
    wing: str
    """The wing that they stand in."""
    room: str
    """The room that they stand in."""


class Private(_Part):
    """A root that never enters the palace; cube and rooms come from here alone."""

    cube: str
    """Whose it is: the agent's id."""
    path: str
    """A folder, or vault:NAME/FOLDER for one inside a vault (which then has to exclude it)."""
    rooms: dict[str, tuple[str, ...]]
    """Globs for each room; what no glob names is not read, and `dualwall status --files` lists it."""

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
    """What this reader sees: "global", and agents' ids."""
    token_sha256: str | None = None
    """The SHA-256 of its token, for the server; `dualwall token READER` makes one."""
    write: bool = False
    """Whether it may write into the inboxes of its cubes."""


class Qdrant(_Part):
    """The Qdrant server that holds the vectors where `vectors = "qdrant"`."""

    url: str = "http://127.0.0.1:6333"
    """The server's address; https:// for TLS."""
    grpc_port: Annotated[int, Field(ge=0, le=65_535)] = 0
    """The port of its gRPC (6334), which carries large loads faster; 0: everything goes by HTTP."""
    api_key_file: Path | None = None
    """A file that holds the server's key, or a JWT."""
    ca_file: Path | None = None
    """The certificate of the authority that signed the server's, where this system does not know it."""
    collection: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,100}$")] = "dualwall"
    """The name of the palace there. Palaces that share a server need names of their own."""
    shards: Annotated[int, Field(ge=1, le=1024)] = 1
    """Into how many parts a new collection is cut: one for each server, or two."""
    replicas: Annotated[int, Field(ge=1, le=16)] = 1
    """On how many servers each part of a new collection stands; 2 or more need three servers."""

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            raise ValueError('is no address of a server: write it as "http://127.0.0.1:6333"')
        if parts.username is not None or parts.password is not None:
            raise ValueError("holds a password: put the key into a file and name it in api_key_file")
        return url.rstrip("/")


class Neo4j(_Part):
    """The Neo4j server that holds the graph where `graph = "neo4j"`."""

    url: str = "bolt://127.0.0.1:7687"
    """The server's address; bolt+s:// for TLS, neo4j:// or neo4j+s:// for a cluster."""
    user: str = "neo4j"
    """Who logs in, where there is a password_file."""
    password_file: Path | None = None
    """A file that holds the password. Left out: a server that asks for none."""
    database: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]{2,62}$")] = "neo4j"
    """The database, for this palace alone; the free edition of Neo4j has one a server."""

    @field_validator("url")
    @classmethod
    def _address(cls, url: str) -> str:
        parts = urlsplit(url)
        schemes = {f"{scheme}{tls}" for scheme in ("bolt", "neo4j") for tls in ("", "+s", "+ssc")}
        if parts.scheme not in schemes or not parts.hostname or parts.path.strip("/") or parts.query or parts.fragment:
            raise ValueError('is no address of a server: write it as "bolt://127.0.0.1:7687"')
        if parts.username is not None or parts.password is not None:
            raise ValueError("holds a password: put it into a file and name that in password_file")
        return url.rstrip("/")


class Stores(_Part):
    """Which engines hold vectors and graph."""

    vectors: Literal["edge", "qdrant", "memory"] = "edge"
    """edge (in this process, on disk), qdrant (a server) or memory (for trials)."""
    graph: Literal["sqlite", "neo4j", "memory"] = "sqlite"
    """sqlite (a file), neo4j (a server) or memory (for trials)."""
    qdrant: Qdrant = Qdrant()
    """The Qdrant server that holds the vectors where `vectors = "qdrant"`."""
    neo4j: Neo4j = Neo4j()
    """The Neo4j server that holds the graph where `graph = "neo4j"`."""


class Embedding(_Part):
    """Which model embeds, and with how many workers. `provider = "openai"` asks an OpenAI-compatible address."""

    provider: Literal["fastembed", "openai"] = "fastembed"
    """fastembed (in this process) or openai (an OpenAI-compatible address)."""
    model: str = "multilingual-e5-small"
    """The model's name. The default one is built on this machine; others are the provider's."""
    vocabulary: Literal["all", "en-zh"] = "all"
    """all languages, or the leaner English and Chinese."""
    workers: Annotated[int, Field(ge=1, le=64)] = 2
    """How many processor cores embed."""
    url: str | None = None
    """The address, for openai: http://127.0.0.1:8080/v1"""
    api_key_file: Path | None = None
    """A file that holds the address's key."""
    dimensions: int | None = None
    """The vectors' length, for a model that is not known here."""
    query_prefix: str | None = None
    """What goes before a question, for a model that is not known here."""
    passage_prefix: str | None = None
    """What goes before a passage, likewise."""


class Rooms(_Part):
    """Which tags make no room, beside hex colours and single characters, and rules by glob."""

    deny_tags: tuple[str, ...] = ()
    """Tags that make no room, beside hex colours and single characters."""
    rules: tuple[Rule, ...] = ()
    """Rooms by glob; the longest match wins over the folder."""


class Ingest(_Part):
    """Chunking and limits. Sizes in tokens of the model; `max_note_bytes`: larger notes are a Problem."""

    chunk_tokens: Annotated[int, Field(ge=32, le=480)] = 200
    """The aim for one chunk, in tokens of the model."""
    max_note_bytes: Annotated[int, Field(ge=1024)] = 16 * 1024 * 1024
    """A larger note is a Problem and stays out."""


class Search(_Part):
    """Ranking: `fusion` over the top `prefetch` of each leg, `per_note` chunks of a note at most."""

    fusion: Literal["zscore", "minmax", "rrf"] = "zscore"
    """How the legs are fused: zscore, minmax or rrf."""
    prefetch: Annotated[int, Field(ge=10, le=1000)] = 150
    """How many of each leg are fused."""
    limit: Annotated[int, Field(ge=1, le=100)] = 10
    """How many hits an answer has."""
    per_note: Annotated[int, Field(ge=1, le=20)] = 2
    """How many chunks of one note an answer has at most."""


class Inject(_Part):
    """What stands before an agent's response: recall in at most `items` whole entries, directives in full or not at all."""

    tokens: Annotated[int, Field(ge=0, le=100_000)] = 800
    """How many tokens of diary and daily notes a request gets at most."""
    items: Annotated[int, Field(ge=0, le=50)] = 6
    """How many of their entries it gets at most."""
    directive_tokens: Annotated[int, Field(ge=0, le=100_000)] = 2000
    """How many tokens the agent's own system_config may take; if it takes more, all of it is left out."""
    deadline_ms: Annotated[int, Field(ge=1, le=60_000)] = 150
    """How many milliseconds a request waits for its memory at most; then it goes on with what is there."""


class Serve(_Part):
    """Where `dualwall serve` listens, when it runs the night by itself, and how much one client may ask."""

    listen: str = "127.0.0.1:8377"
    """HOST:PORT. Beyond localhost it listens only when a reader has a token."""
    hosts: tuple[str, ...] = ()
    """Names by which clients reach this machine, beside localhost and IP addresses; others are refused."""
    schedule: str = "50 2 * * *"
    """When the night runs, as a crontab says it, in UTC; a missed one is run at once. "" leaves it to your own timer."""
    rate: Annotated[int, Field(ge=1, le=1_000_000)] = 1200
    """How many requests a minute one reader may send, or one address without a token."""


class Gateway(_Part):
    """The model's address behind the gateway, and how long it may take."""

    upstream: str | None = None
    """Where requests to /v1/… go on to: https://api.openai.com. Without one there is no gateway."""
    timeout_connect: Annotated[float, Field(gt=0, le=600)] = 10.0
    """How many seconds the upstream may take to be reached."""
    timeout_read: Annotated[float, Field(gt=0, le=86_400)] = 600.0
    """How many seconds it may say nothing, before its answer and within; a whole stream may take any time."""
    max_body_bytes: Annotated[int, Field(ge=1024)] = 20 * 1024 * 1024
    """A larger request goes on as it is, without memory."""

    @field_validator("upstream")
    @classmethod
    def _address(cls, upstream: str | None) -> str | None:
        if upstream is None:
            return None
        parts = urlsplit(upstream)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            raise ValueError('is no address of a server: write it as "https://api.openai.com"')
        if parts.username is not None or parts.password is not None:
            raise ValueError("holds a password: the client's own Authorization goes on to the upstream")
        return upstream


class Settings(_Part):
    """The whole file. Paths are absolute after loading (`palace.configuration`)."""

    data: Path
    """Where mirror, palace, inbox and stores are: one folder, on one mount, outside every vault."""
    timezone: str = "UTC"
    """Whose "today" it is."""
    vaults: dict[str, Vault] = Field(default_factory=dict)
    """The vaults, each by a name of a-z, 0-9, - and _."""
    private: tuple[Private, ...] = ()
    """Agents' own folders: they never enter the palace, and only readers of that cube see them."""
    readers: dict[str, ReaderEntry] = Field(default_factory=dict)
    """Who may ask. The first one is the command line's."""
    stores: Stores = Stores()
    """Which engines hold vectors and graph."""
    embedding: Embedding = Embedding()
    """Which model embeds."""
    rooms: Rooms = Rooms()
    """Which rooms there are, beside folders and tags."""
    ingest: Ingest = Ingest()
    """How notes are cut."""
    search: Search = Search()
    """How answers are ranked."""
    inject: Inject = Inject()
    """What is put before an agent's responses."""
    serve: Serve = Serve()
    """The server."""
    gateway: Gateway = Gateway()
    """The gateway: a model's API with memory added to its requests."""

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
    def store(self) -> Path:
        """The folder of the embedded stores: `edge/` and `catalogue.sqlite`."""
        return self.data / "store"

    @property
    def catalogue(self) -> Path:
        """The SQLite file of ledger and embedded graph."""
        return self.store / "catalogue.sqlite"
