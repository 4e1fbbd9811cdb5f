"""Arguments and answers of the agents' tools, as shapes. What is said of an argument is what a model reads of it."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator


def _integral(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_integral)
"""Beside a strict integer: JSON has one kind of number, so 5.0 is one; "5" and true are none."""
_SEEN = Field(min_length=1, json_schema_extra={"pattern": r"\S"})
"""Of what has to be there: blanks alone count as left out."""
_Room = Annotated[str, Field(max_length=300, description="A room as list_rooms gave it. Leave it out when none fits.")]
_Wing = Annotated[str, Field(max_length=300, description="Only this wing.")]
_Ref = Annotated[str, _SEEN, Field(max_length=1000, description="`ref` of a hit.")]


class Arguments(BaseModel):
    """Arguments of a tool. Empty strings and null count as left out; unknown names are refused."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _without_empty(cls, given: Any) -> Any:  # noqa: ANN401 - whatever a model sent
        if not isinstance(given, Mapping):
            return given
        return {k: v for k, v in given.items() if k not in cls.model_fields or not _empty(v)}


def _empty(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


class ListRooms(Arguments):  # noqa: D101 - the schema's words are the descriptions
    query: Annotated[str, Field(max_length=100_000, description="The question that you want to search for.")] = ""
    wing: _Wing = ""
    cursor: Annotated[str, Field(max_length=2000, description="`next` of the page before.")] = ""


class Search(Arguments):  # noqa: D101
    query: Annotated[
        str, _SEEN, Field(max_length=100_000, description="One question in plain words, not a whole prompt.")
    ]
    room: _Room = ""
    wing: _Wing = ""
    limit: Annotated[int, Field(strict=True, ge=1, le=50, description="Hits at most."), WHOLE] = 8
    max_tokens: Annotated[
        int, Field(strict=True, ge=500, le=50_000, description="Size of the answer at most."), WHOLE
    ] = 3000


class Read(Arguments):  # noqa: D101
    ref: _Ref
    lines: Annotated[
        list[Annotated[int, Field(strict=True, ge=1), WHOLE]],
        Field(min_length=2, max_length=2, description="First and last line."),
    ] = []


class Neighbors(Arguments):  # noqa: D101
    ref: _Ref


class Recent(Arguments):  # noqa: D101
    room: _Room = ""
    days: Annotated[int, Field(strict=True, ge=1, le=3660), WHOLE] = 7


class Remember(Arguments):  # noqa: D101
    text: Annotated[str, _SEEN, Field(max_length=20_000)]
    title: Annotated[str, Field(max_length=200, description="A few words to find it by.")] = ""


class Status(Arguments):  # noqa: D101
    pass


class Answer(BaseModel):
    """What a tool answers, or a part of it. What is absent is left out, to keep answers small."""

    model_config = ConfigDict(extra="forbid")


class Room(Answer):  # noqa: D101
    room: str
    label: str
    cube: str
    notes: int
    changed: str | None = None
    description: str | None = None
    score: float | None = None


class Rooms(Answer):  # noqa: D101
    rooms: list[Room]
    next: str | None = None
    truncated: bool


class Hit(Answer):  # noqa: D101
    ref: str
    title: str
    path: str
    cube: str
    rooms: list[str]
    heading: str | None = None
    lines: list[int]
    text: str
    score: float
    note_sha256: str
    trust: str
    status: str | None = None
    stale: bool | None = None


class Note(Answer):  # noqa: D101
    ref: str
    title: str
    path: str | None = None
    cube: str | None = None
    rooms: list[str]
    score: float | None = None
    via: str | None = None
    changed: str | None = None


class Hits(Answer):  # noqa: D101
    status: Literal["hit", "miss"]
    fallback: bool
    reason: str | None = None
    hits: list[Hit]
    elsewhere: list[Note]
    hints: list[str]
    truncated: bool
    receipt: dict[str, Any]


class Reading(Answer):  # noqa: D101
    ref: str
    title: str
    path: str
    cube: str
    rooms: list[str]
    lines: list[int]
    text: str
    note_sha256: str
    stale: bool | None = None
    truncated: bool


class Neighborhood(Answer):  # noqa: D101
    links: list[Note]
    backlinks: list[Note]
    shared_tags: list[Note]
    unresolved: list[str]
    truncated: bool


class Changes(Answer):  # noqa: D101
    notes: list[Note]
    fallback: bool
    reason: str | None = None
    hints: list[str]
    truncated: bool


class Kept(Answer):  # noqa: D101
    ref: str
    title: str
    path: str
    cube: str
    room: str
    status: str
    new: bool


class State(Answer):  # noqa: D101
    reader: str
    cubes: list[str]
    notes: int
    pending: int
    problems: int
    generation: int
    last_success: str | None = None
