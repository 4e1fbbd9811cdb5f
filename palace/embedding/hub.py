"""Models of fastembed's own list: from its cache, else from the hub, and a missing network is said at once.

Imported only when the settings name such a model: fastembed takes a second to import, and no hub is asked otherwise.
"""

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

import httpx
from fastembed import TextEmbedding
from fastembed.common.model_description import DenseModelDescription
from huggingface_hub import constants
from loguru import logger
from rapidfuzz import process

from palace.embedding.model import cache_folder
from palace.errors import SettingsError, UnreachableError

_PATIENCE = 5.0
"""Seconds that the hub has for its first answer."""


@dataclass(frozen=True, slots=True)
class Located:
    """A model that is on this machine. `identity`: SHA-256 of the revision or of the weights."""

    name: str
    folder: Path
    dimensions: int
    identity: str


def locate(name: str) -> Located:
    """Find a model of fastembed's list, downloading it if it isn't cached.

    Raises:
        SettingsError: fastembed has no model of that name.
        UnreachableError: it isn't cached and can't be downloaded.
    """
    description = _description(name)
    logger.disable("fastembed")  # it reports every source that fails; one error of ours says it
    folder = _cached(description) or _downloaded(description)
    return Located(description.model, folder, int(description.dim or 0), _identity(description, folder))


def _description(name: str) -> DenseModelDescription:
    known = [entry["model"] for entry in TextEmbedding.list_supported_models()]
    if name.lower() not in {entry.lower() for entry in known}:
        near = [match for match, _, _ in process.extract(name, known, limit=3)]
        raise SettingsError(
            f"[embedding] model: there is no {name!r}", f"Did you mean one of these: {', '.join(near)}?"
        )
    return TextEmbedding._get_model_description(name)  # noqa: SLF001 - the list's own objects have no public door


def _cache() -> str:
    return os.environ.get("FASTEMBED_CACHE_PATH") or str(cache_folder() / "fastembed")


def _cached(description: DenseModelDescription) -> Path | None:
    try:
        return Path(TextEmbedding.download_model(description, _cache(), local_files_only=True))
    except ValueError:
        return None


def _downloaded(description: DenseModelDescription) -> Path:
    source = constants.ENDPOINT if description.sources.hf else description.sources.url or ""
    try:
        if constants.HF_HUB_OFFLINE:
            raise _unreachable(description.model, "HF_HUB_OFFLINE is set")
        httpx.head(source, timeout=_PATIENCE)
        return Path(TextEmbedding.download_model(description, _cache(), retries=1))
    except (ValueError, OSError, httpx.HTTPError) as error:
        raise _unreachable(description.model, str(error)) from error


def _identity(description: DenseModelDescription, folder: Path) -> str:
    """A hub's snapshot is named by its commit; anything else is told by its bytes."""
    if folder.parent.name == "snapshots":
        return hashlib.sha256(f"{description.model}\x00{folder.name}".encode()).hexdigest()
    with (folder / description.model_file).open("rb") as weights:
        return hashlib.file_digest(weights, "sha256").hexdigest()


def _unreachable(name: str, reason: str) -> UnreachableError:
    return UnreachableError(
        f"The model {name} is not on this machine and can't be downloaded: {reason}",
        'Connect and run again, or take the built-in model: [embedding] model = "multilingual-e5-small".',
    )
