"""The commented settings file, made from the shapes of the settings, so that no key can be missing. Pure."""

import ast
import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from palace import settings as shapes
from palace.settings import (
    Daily,
    Embedding,
    Gateway,
    Ingest,
    Inject,
    Private,
    ReaderEntry,
    Rooms,
    Search,
    Serve,
    Settings,
    Stores,
    Vault,
)


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent's own folder inside the vault: its path there, and globs for its rooms."""

    name: str
    path: str
    rooms: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Found:
    """What the file is written for. `adopt`: the agents' folders become private roots, not proposals."""

    source: str
    data: str
    timezone: str
    daily: Daily | None = None
    agents: tuple[Agent, ...] = field(default=())
    adopt: bool = False


def render(found: Found) -> str:
    """The file's text. What is active is needed; what stands behind `#` is a default, or a proposal."""
    parts = [
        _comment("Dualwall's settings. `dualwall doctor` checks them. Any key may come from the environment: "
                 "DUALWALL_STORES__VECTORS=qdrant. A relative path is relative to this file."),
        *_key(Settings, "data", found.data),
        *_key(Settings, "timezone", found.timezone),
        *_vault(found),
        *_private(found),
        *_readers(found),
    ]  # fmt: skip
    for name, model in (
        ("stores", Stores),
        ("embedding", Embedding),
        ("rooms", Rooms),
        ("ingest", Ingest),
        ("search", Search),
        ("inject", Inject),
        ("serve", Serve),
        ("gateway", Gateway),
    ):
        parts += _section(name, _meaning(Settings, name), model)
    return "\n".join(parts) + "\n"


def _section(name: str, meaning: str, model: type[BaseModel]) -> Iterator[str]:
    """A table with its keys, then its tables."""
    yield from ("", _comment(meaning), f"[{name}]")
    inner: dict[str, type[BaseModel]] = {}
    for key, field_of in model.model_fields.items():
        kind = field_of.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            inner[key] = kind
        else:
            yield from _key(model, key)
    for key, kind in inner.items():
        yield from _section(f"{name}.{key}", _meaning(model, key), kind)


def _vault(found: Found) -> Iterator[str]:
    excluded = [re.sub(r"([\\\[\]*?!#])", r"\\\1", agent.path) + "/**" for agent in found.agents]
    given = {"source": found.source} | ({"exclude": excluded} if excluded else {})
    yield from ("", _comment(_meaning(Settings, "vaults")), "[vaults.main]")
    for key in Vault.model_fields:
        if key == "daily":
            yield _comment(_meaning(Vault, key))
            yield f"# daily = {_value(found.daily or Daily())}"
        else:
            yield from _key(Vault, key, given.get(key))


def _private(found: Found) -> Iterator[str]:
    yield from ("", _comment(_meaning(Settings, "private")))
    yield from (_comment(f"{key}: {_meaning(Private, key)}") for key in Private.model_fields)
    agents = found.agents or (
        Agent("dev-cat", "Agents/dev-cat", {"system_config": ("SOUL.md", "MEMORY.md"), "diary": ("memory/*.md",)}),
    )
    mark = "" if found.agents and found.adopt else "# "
    for agent in agents:
        yield f"{mark}[[private]]"
        yield f"{mark}cube = {_value(agent.name)}"
        yield f"{mark}path = {_value(f'vault:main/{agent.path}')}"
        yield f"{mark}rooms = {_value(dict(agent.rooms))}"


def _readers(found: Found) -> Iterator[str]:
    yield from ("", _comment(_meaning(Settings, "readers")), "[readers.me]")
    for key in ReaderEntry.model_fields:
        yield from _key(ReaderEntry, key, ["global"] if key == "cubes" else None)
    for agent in found.agents:
        mark = "" if found.adopt else "# "
        yield f"\n{mark}[readers.{agent.name}]"
        yield f"{mark}cubes = {_value(['global', agent.name])}"


def _key(model: type[BaseModel], name: str, value: object = None) -> Iterator[str]:
    """A key under its meaning: active with a value, else behind `#` with its default."""
    yield _comment(_meaning(model, name))
    if value is not None:
        yield f"{name} = {_value(value)}"
    else:
        yield f"# {name} = {_value(_default(model.model_fields[name]))}"


def _default(field: FieldInfo) -> object:
    default = field.get_default(call_default_factory=True)
    if default is None or default is PydanticUndefined:
        return 0 if int in get_args(field.annotation) else "…"
    return default


def _value(value: object) -> str:
    """TOML for what settings hold; JSON's strings, numbers and booleans are TOML's."""
    if isinstance(value, BaseModel):
        value = value.model_dump(exclude_none=True)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_name(str(key))} = {_value(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(item) for item in value)}]"
    return json.dumps(str(value) if isinstance(value, Path) else value, ensure_ascii=False)


def _name(key: str) -> str:
    return (
        key
        if key.isascii() and key.replace("-", "").replace("_", "").isalnum()
        else json.dumps(key, ensure_ascii=False)
    )


def _comment(text: str) -> str:
    return textwrap.fill(text, 110, initial_indent="# ", subsequent_indent="# ")


def _meaning(model: type[BaseModel], name: str) -> str:
    return _meanings()[model.__name__, name]


def _meanings() -> dict[tuple[str, str], str]:
    """(class, key) to the string that stands under the key in palace/settings.py."""
    found: dict[tuple[str, str], str] = {}
    for node in ast.parse(inspect.getsource(shapes)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for key, text in zip(node.body, node.body[1:], strict=False):
            if (
                isinstance(key, ast.AnnAssign)
                and isinstance(key.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                found[node.name, key.target.id] = str(text.value.value)
    return found
