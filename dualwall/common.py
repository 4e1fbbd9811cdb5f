"""What the commands share: the options that each takes, and how they print."""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import click

Json: TypeAlias = dict[str, Any]
"""An object of contract.md."""
_Command = TypeVar("_Command", bound=Callable[..., Any])

config_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="The settings file (else DUALWALL_CONFIG, else ./dualwall.toml, else yours).",
)
json_option = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")


def common(command: _Command) -> _Command:
    """Add the options that every command takes: `config` and `as_json`."""
    return config_option(json_option(command))


def print_json(value: Mapping[str, Any]) -> None:
    """One object on one line of standard output, UTF-8 whatever the locale."""
    sys.stdout.flush()
    sys.stdout.buffer.write(json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace") + b"\n")
    sys.stdout.buffer.flush()


def say(text: str) -> None:
    """A line about the work itself, on standard error."""
    click.echo(text, err=True)
