"""Tokens: who asks over TCP. One for each reader, made here, shown once, and kept as its SHA-256 alone."""

import hmac
import secrets
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import click

from dualwall.asking import reader_of
from dualwall.common import common, print_json, say
from palace.configuration import find, load
from palace.errors import UsageError
from palace.settings import ReaderEntry

if TYPE_CHECKING:
    from tomlkit import TOMLDocument

PREFIX = "dw_"
_LONGEST = 512
"""Characters of a header's token that are looked at."""


def make() -> str:
    """A new token: 256 random bits."""
    return PREFIX + secrets.token_urlsafe(32)


def digest(token: str) -> str:
    """What is kept of a token."""
    return sha256(token.encode("utf-8", "replace")).hexdigest()


def reader_of_token(readers: Mapping[str, ReaderEntry], token: str) -> str | None:
    """Whose token it is, or None. Every hash is compared, each in constant time, whichever it is."""
    if not token or len(token) > _LONGEST:
        return None
    asked, found = digest(token), None
    for name, entry in readers.items():
        if hmac.compare_digest(entry.token_sha256 or "", asked):
            found = name
    return found


@click.command()
@click.argument("reader")
@click.option("--write", is_flag=True, help="Put the hash into the settings file, with its comments kept.")
@common
def command(*, reader: str, write: bool, config: Path | None, as_json: bool) -> None:
    """Make a new token for READER and show it, once: only its hash is kept, in the settings.

    A running server knows the new one, and no longer the old one, within a second of the file's change.
    """
    file = find(config)
    reader_of(load(file), reader)
    token = make()
    if write:
        _write(file, reader, digest(token))
    if as_json:
        print_json({"reader": reader, "token": token, "token_sha256": digest(token), "written": write})
        return
    if write:
        say(f"Its hash is in {file}. The token is shown this once:")
    else:
        say(f"Put this line under [readers.{reader}] of {file}:\n")
        say(f'token_sha256 = "{digest(token)}"\n\nThe token is shown this once:')
    click.echo(token)


def _write(file: Path, reader: str, hashed: str) -> None:
    import tomlkit  # noqa: PLC0415

    document = tomlkit.parse(file.read_text(encoding="utf-8-sig"))
    try:
        _entry(document, reader)["token_sha256"] = hashed
    except (KeyError, TypeError) as error:
        raise UsageError(
            f"[readers.{reader}] is not in {file}.", "It comes from the environment: put the hash there."
        ) from error
    part = file.with_name(f".{file.name}.part")
    part.write_text(tomlkit.dumps(document), encoding="utf-8", newline="\n")
    part.chmod(file.stat().st_mode & 0o777)
    part.replace(file)


def _entry(document: "TOMLDocument", reader: str) -> dict[str, object]:
    found = document["readers"][reader]
    if not isinstance(found, dict):
        raise TypeError(reader)
    return found
