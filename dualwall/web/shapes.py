"""What the REST API takes and gives, for its OpenAPI page (docs/design.md, Contract)."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool

from dualwall.tool_shapes import WHOLE

_Names = Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=100)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SearchBody(_Body):
    """What a search is asked with."""

    query: Annotated[str, Field(min_length=1, max_length=20_000)]
    rooms: _Names = []
    wings: _Names = []
    limit: Annotated[int, Field(strict=True, ge=1, le=100), WHOLE] | None = None
    explain: StrictBool = False


class InjectBody(_Body):
    """The last user message, and the time that it is (ISO 8601, else now)."""

    message: str
    at: Annotated[str, Field(json_schema_extra={"format": "date-time"})] | None = None


class HookBody(BaseModel):
    """What Claude Code tells its hooks; fields that are not read here are ignored."""

    hook_event_name: str = "UserPromptSubmit"
    source: str | None = None
    prompt: str = ""


class HookContext(BaseModel):
    """What goes before the response."""

    hookEventName: Literal["UserPromptSubmit", "SessionStart"]  # noqa: N815 - Claude Code's name
    additionalContext: str  # noqa: N815 - likewise


class HookAnswer(BaseModel):
    """What a hook answers; nothing to events that it is not for."""

    hookSpecificOutput: HookContext | None = None  # noqa: N815 - likewise


class VerifyBody(_Body):
    """Whether what differs is mended."""

    repair: bool = False


class NightBody(_Body):
    """A night: only a plan of it, or only if the last success is older than that many seconds."""

    dry_run: bool = False
    older: float | None = None


class Room(BaseModel):
    """A room with exact counts."""

    cube: str
    wing: str
    room: str
    label: str
    notes: int
    changed: str | None
    description: str | None
    score: float | None


class Rooms(BaseModel):
    """A page of rooms; `next` is the cursor of the one after."""

    rooms: list[Room]
    next: str | None


class Hit(BaseModel):
    """A passage with all that is needed to cite and open it."""

    ref: str
    title: str
    vault: str
    path: str
    cube: str
    wings: list[str]
    rooms: list[str]
    heading: str
    lines: list[int]
    text: str
    score: float
    legs: dict[str, float | None]
    note_sha256: str
    chunk_sha256: str
    status: str
    trust: str
    stale: bool


class Elsewhere(BaseModel):
    """A stronger note outside the rooms that were named."""

    ref: str
    title: str
    rooms: list[str]
    score: float


class Places(BaseModel):
    """Rooms and wings."""

    rooms: list[str]
    wings: list[str]


class Receipt(BaseModel):
    """What was searched, and how."""

    time: str
    reader: str
    cubes: list[str]
    asked: Places
    searched: Places
    fallback: bool
    legs: dict[str, int]
    floors: dict[str, float]
    generation: int
    model: str
    dense_share: float


class Found(BaseModel):
    """The answer of a search. `hit` means near, never answered."""

    status: Literal["hit", "miss"]
    fallback: bool
    reason: str | None
    hits: list[Hit]
    elsewhere: list[Elsewhere]
    hints: list[str]
    receipt: Receipt


class Reading(BaseModel):
    """A note, or some of its lines."""

    ref: str
    title: str
    path: str
    cube: str
    rooms: list[str]
    text: str
    lines: list[int]
    note_sha256: str
    stale: bool


class Neighbor(BaseModel):
    """A note beside another; `via`: the link as written, or the tag."""

    ref: str
    title: str
    path: str
    cube: str
    rooms: list[str]
    via: str
    line: int | None


class Unresolved(BaseModel):
    """A link to no note."""

    link: str
    line: int


class Neighborhood(BaseModel):
    """What stands around a note."""

    links: list[Neighbor]
    backlinks: list[Neighbor]
    shared_tags: list[Neighbor]
    unresolved: list[Unresolved]


class InjectReceipt(BaseModel):
    """What goes before a response, and what was left out."""

    reader: str
    rooms: list[str]
    included: list[dict[str, Any]]
    left_out: list[dict[str, Any]]
    tokens: int
    late: bool


class Injection(BaseModel):
    """What goes before a response."""

    directive: str
    recall: str
    receipt: InjectReceipt


class Status(BaseModel):
    """What is indexed of the reader's cubes."""

    generation: int
    notes: int
    chunks: int
    pending: int
    model: str | None
    last_success: str | None
    problems: int
    open: int
    files: list[dict[str, Any]] | None = None
