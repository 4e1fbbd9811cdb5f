"""Settings from `dualwall.toml` and the environment: found, read, made absolute and checked, all faults at once."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, get_args

import platformdirs
from pydantic import BaseModel, ValidationError
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict
from pydantic_settings import SettingsError as EnvironmentFault

from palace.configuration_rules import Fault, did_you_mean, faults
from palace.errors import SettingsError
from palace.settings import Settings
from palace.toml_lines import KeyPath, key_lines, line_of

FILE_NAME = "dualwall.toml"
PREFIX = "DUALWALL_"
NOT_SETTINGS = frozenset({"DUALWALL_CONFIG", "DUALWALL_CACHE", "DUALWALL_TOKEN"})
"""Variables of that prefix that are no keys of the file: the program's own, and where clients keep their token."""

_Table: TypeAlias = dict[str, Any]
_Part = TypeVar("_Part", bound=BaseModel)


def find(config: Path | None = None) -> Path:
    """The settings file: `config`, else DUALWALL_CONFIG, else ./dualwall.toml, else the user's config folder.

    Raises SettingsError when a named file is absent, or none is found.
    """
    named = config or (Path(given) if (given := os.environ.get("DUALWALL_CONFIG")) else None)
    if named is not None:
        file = named.expanduser().absolute()
        if not file.is_file():
            raise SettingsError(f"There is no settings file {file}.", f"Write one: dualwall init --config {file}")
        return file
    for file in (Path.cwd() / FILE_NAME, user_file()):
        if file.is_file():
            return file
    raise SettingsError(
        f"No settings were found: neither ./{FILE_NAME} nor {user_file()}.", "Write them: dualwall init VAULT"
    )


def user_file() -> Path:
    """Where the settings are when nobody says otherwise."""
    return platformdirs.user_config_path("dualwall", appauthor=False) / FILE_NAME


def load(config: Path | None = None) -> Settings:
    """Settings with absolute paths, checked. Raises SettingsError with every fault and its line."""
    file = find(config)
    try:
        text = file.read_text(encoding="utf-8-sig")
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(
            f"{file} is not valid TOML: {error}", "Mend that line, then run the command again."
        ) from error
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}.") from error
    return parse(table, _environment(), file=file, lines=key_lines(text))


def parse(table: _Table, environment: _Table, *, file: Path, lines: Mapping[KeyPath, int]) -> Settings:
    """Settings from the file's keys under those of the environment; raises SettingsError with every fault."""
    merged = _merge(table, environment)
    found, settings = _validate(merged)
    if settings is not None:
        settings = _absolute(settings, file.parent)
        found += faults(settings)
    found += _stray_variables()
    if found or settings is None:
        found.sort(key=lambda fault: line_of(lines, fault.where) or 0)
        raise SettingsError(
            "\n".join(_render(fault, file, lines, environment) for fault in found),
            "Nothing was touched. Mend the settings, then run the command again.",
        )
    return settings


class _Environment(Settings, BaseSettings):
    """The same shapes, as pydantic-settings reads them from variables."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True)


def _environment() -> _Table:
    try:
        return EnvSettingsSource(_Environment)()
    except EnvironmentFault as error:
        raise SettingsError(f"The environment: {error}.", "Lists and tables are JSON there: '[\"global\"]'") from error


def _stray_variables() -> Iterator[Fault]:
    """Variables that were meant as keys: they have the two underscores, or are nearly one."""
    known = {name.upper() for name in Settings.model_fields}
    for name in os.environ:
        key = name.removeprefix(PREFIX).upper()
        if name.startswith(PREFIX) and name not in NOT_SETTINGS and key.split("__")[0] not in known:
            hint = did_you_mean(key.split("__")[0], known)
            if "__" in key or hint.startswith("Did"):
                yield Fault((name,), "this variable is no key of the settings", hint.replace("mean ", f"mean {PREFIX}"))


def _merge(below: _Table, above: _Table) -> _Table:
    """`above` wins, table by table; the order of `below` stays (the first reader is the default one)."""
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _validate(table: _Table) -> tuple[list[Fault], Settings | None]:
    """Faults of shape, and the settings without the keys that are at fault where they can do without them."""
    try:
        return [], Settings.model_validate(table)
    except ValidationError as error:
        found = [_shape_fault(dict(fault)) for fault in error.errors(include_url=False, include_input=False)]
    try:
        return found, Settings.model_validate(_without(table, [fault.where for fault in found]))
    except ValidationError:
        return found, None


def _without(table: _Table, paths: list[KeyPath]) -> _Table:
    def prune(node: Any, here: KeyPath) -> Any:  # noqa: ANN401 - a TOML value
        if isinstance(node, dict):
            return {key: prune(value, (*here, key)) for key, value in node.items() if (*here, key) not in paths}
        if isinstance(node, list):
            return [prune(value, (*here, at)) for at, value in enumerate(node)]
        return node

    return {str(key): value for key, value in prune(table, ()).items()}


def _shape_fault(fault: _Table) -> Fault:
    where: KeyPath = tuple(fault["loc"])
    if fault["type"] == "extra_forbidden":
        return Fault(where, "unknown key", did_you_mean(str(where[-1]), _keys_at(Settings, where[:-1])))
    if fault["type"] == "missing":
        return Fault(where, "is missing", _MISSING.get(where, ""))
    return Fault(where, str(fault["msg"]))


_MISSING: dict[KeyPath, str] = {("data",): 'Say where Dualwall keeps its data: data = "~/.local/share/dualwall"'}


def _keys_at(model: type[BaseModel], path: KeyPath) -> set[str]:
    """Names of the keys that a table at this path may have."""
    if not path:
        return set(model.model_fields)
    field = model.model_fields.get(str(path[0]))
    inner = _model_in(field.annotation) if field else None
    if inner is None:
        return set()
    named = isinstance(path[1] if len(path) > 1 else None, int) or path[0] in {"vaults", "readers"}
    return _keys_at(inner, path[2 if named else 1 :])


def _model_in(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401 - any annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for part in get_args(annotation) if (model := _model_in(part))), None)


def _absolute(settings: Settings, base: Path) -> Settings:
    """The same settings with `~` expanded and every path absolute; `vault:…` and `host:…` stay as they are."""
    vaults = {
        name: vault if vault.remote else vault.model_copy(update={"source": _path(vault.source, base)})
        for name, vault in settings.vaults.items()
    }
    private = tuple(
        entry if entry.in_vault else entry.model_copy(update={"path": _path(entry.path, base)})
        for entry in settings.private
    )
    return settings.model_copy(
        update={
            "data": Path(_path(str(settings.data), base)),
            "vaults": vaults,
            "private": private,
            "embedding": _resolved(settings.embedding, base),
            "stores": _resolved(settings.stores, base),
        }
    )


def _resolved(part: _Part, base: Path) -> _Part:
    """The same part of the settings with every `Path` in it absolute."""
    changes: dict[str, object] = {}
    for key in type(part).model_fields:
        value = getattr(part, key)
        if isinstance(value, Path):
            changes[key] = Path(_path(str(value), base))
        elif isinstance(value, BaseModel):
            changes[key] = _resolved(value, base)
    return part.model_copy(update=changes)


def _path(text: str, base: Path) -> str:
    """Absolute and without `..`; symlinks stay (what they hide is the rules' business)."""
    return os.path.normpath(base / Path(text).expanduser())


def _render(fault: Fault, file: Path, lines: Mapping[KeyPath, int], environment: _Table) -> str:
    name = ".".join(str(part) for part in fault.where)
    message = f"{name}: {fault.message}" if name else fault.message
    return f"{_place(fault.where, file, lines, environment)}{message}." + (f" {fault.hint}" if fault.hint else "")


def _place(where: KeyPath, file: Path, lines: Mapping[KeyPath, int], environment: _Table) -> str:
    if where and where[0] in os.environ:
        return ""
    node: object = environment
    for part in where:
        node = node.get(part) if isinstance(node, dict) else None
    if where and node is not None:
        return f"{PREFIX}{'__'.join(str(part).upper() for part in where)}: "
    line = line_of(lines, where)
    return f"{file}:{line}: " if line else f"{file}: "
