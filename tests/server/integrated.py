"""Other projects' programs, as tests of the integrations need them: installed once, outside the clone."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

PATIENCE = 60.0


def until(done: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Wait for something that another process does; fails after `patience` seconds."""
    deadline = time.monotonic() + patience
    while True:
        try:
            if done():
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline, "it was not done in time"
        time.sleep(0.1)


def free_port() -> int:
    """A port of localhost for a program that cannot pick one itself."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def silent() -> Iterator[str]:
    """The address of a server that takes requests and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def kept(name: str) -> Path:
    """A folder for another project's program, outside the clone and kept between runs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "dualwall-tests" / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def installed(command: list[str], folder: Path, why: str, patience: float = 230.0) -> None:
    """Run an installer; the test is skipped, with one line, where it is not there or does not reach its packages."""
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=patience)
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"{why} ({type(error).__name__})")
