"""The compose stack on a Docker engine of the tests' own: images made on the spot, a project in a folder of its own."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
from platformdirs import user_cache_path

from tests.servers import neo4j_server
from tests.support import ROOT

HERE = Path(__file__).parent
ENGINE = user_cache_path("dualwall-tests", appauthor=False) / "docker"
"""dockerd's data and Compose itself, kept between runs, some 3 GB."""
DOCKER = "/usr/bin/docker"
_NEO4J = "5.26.30"
_BASES = {
    "python:3.11-slim-bookworm": ("python3", "python3-venv", "python3-pip"),
    "debian:bookworm-java": ("openjdk-17-jre-headless", "wget", "unzip"),
}
_SECRETS = {"pip": Path("/etc/pip.conf"), "ca": Path("/etc/ssl/certs/ca-certificates.crt")}
"""What pip needs behind a mirror, where the machine has it."""


def lacking() -> str | None:
    """Why no stack can be started here, in one line, or None."""
    if not (os.environ.get("CI") or os.environ.get("DUALWALL_TEST_COMPOSE")):
        return "a Docker engine is installed and started for this; DUALWALL_TEST_COMPOSE=1 allows it"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return "needs root on Debian: it installs and starts a Docker engine"
    if shutil.which("go") is None:
        return "needs go: Compose is built from its module"
    return neo4j_server.lacking()


def engine(*verb: str, timeout: float = 900) -> str:
    """One verb of engine.sh; what it printed."""
    return _run(["bash", str(HERE / "engine.sh"), *verb], timeout=timeout).strip()


def build(scratch: Path) -> None:
    """Engine, base images, Neo4j's stand-in and our image. Most of it is there after the first time."""
    engine("install")
    engine("compose", str(ENGINE))
    os.environ["DOCKER_HOST"] = engine("start", str(ENGINE))
    for tag, packages in _BASES.items():
        engine("base", str(ENGINE), tag, *packages)
    jars = scratch / "neo4j"
    shutil.copytree(HERE / "neo4j", jars)
    shutil.copytree(neo4j_server.gathered(), jars / "lib")
    _docker_build(jars, f"neo4j:{_NEO4J}-community", "--build-arg", f"VERSION={_NEO4J}")
    secrets = [f"--secret=id={name},src={file}" for name, file in _SECRETS.items() if file.is_file()]
    _docker_build(ROOT, "dualwall:test", *secrets)


def _docker_build(context: Path, tag: str, *options: str) -> None:
    argv = [DOCKER, "build", "--quiet", "--network", "host", "--tag", tag, *options, str(context)]
    _run(argv, {"DOCKER_BUILDKIT": "1"}, timeout=1500)


class Stack:
    """One project: its folder, its port, its token."""

    def __init__(self, home: Path, port: int) -> None:
        self.home = home
        self.url = f"http://127.0.0.1:{port}"
        shutil.copytree(ROOT / "examples" / "vault", home / "vault")
        shutil.copy(ROOT / "docker-compose.yml", home)
        (home / "deploy").mkdir()
        shutil.copy(ROOT / "deploy" / "prepare.sh", home / "deploy")
        _run(["chmod", "-R", "a+rX", str(home / "vault")])
        _run(["sh", str(home / "deploy" / "prepare.sh"), "./vault"])
        self.token = (home / ".stack" / "token").read_text()
        self._environment = {
            "DUALWALL_VERSION": "test",
            "DUALWALL_LISTEN": f"127.0.0.1:{port}",
            "DUALWALL_SCHEDULE": "* * * * *",
        }

    def compose(self, *words: str, whole: bool = False, timeout: float = 240) -> str:
        """`docker-compose …` over the file as people run it (`whole`), or with the vectors embedded."""
        files = ["docker-compose.yml"] if whole else ["docker-compose.yml", str(HERE / "embedded.yml")]
        options = [word for file in files for word in ("--file", file)]
        argv = [str(ENGINE / "docker-compose"), "--progress", "quiet", *options, *words]
        return _run(argv, self._environment, cwd=self.home, timeout=timeout)

    def up(self) -> None:
        """Everything started and healthy, else what the containers said."""
        try:
            self.compose("up", "--wait", "--wait-timeout", "200")
        except AssertionError as error:
            error.add_note(self.compose("logs", "--tail", "40")[-6000:])
            raise

    def inside(self, command: str) -> subprocess.CompletedProcess[str]:
        """A shell's line in Dualwall's container."""
        argv = [DOCKER, "exec", "dualwall-dualwall-1", "sh", "-c", command]
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=60)

    def ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> dict[str, Any]:
        """The server's answer through the published port."""
        headers = {"Authorization": f"Bearer {self.token}"}
        answer = httpx.request(method, self.url + path, json=body, headers=headers, timeout=30)
        answer.raise_for_status()
        told: dict[str, Any] = answer.json()
        return told

    def night_after(self, last: str | None, patience: float = 150) -> str:
        """The time of the first successful night after that one."""
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            now = self.ask("GET", "/api/v1/status")["last_success"]
            if now is not None and now != last:
                return str(now)
            time.sleep(2)
        raise AssertionError(f"no night after {last}:\n{self.compose('logs', '--tail', '80', 'dualwall')}")

    def hits(self, query: str) -> list[str]:
        """The paths that a question finds, best first."""
        return [hit["path"] for hit in self.ask("POST", "/api/v1/search", {"query": query})["hits"]]


def _run(
    argv: list[str], environment: Mapping[str, str] | None = None, cwd: Path | None = None, timeout: float = 300
) -> str:
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        timeout=timeout,
        env=os.environ | dict(environment or {}),
    )
    assert done.returncode == 0, f"{' '.join(argv)}\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    return done.stdout


def healthy(stack: Stack) -> dict[str, str]:
    """Each running service with its health."""
    lines = stack.compose("ps", "--format", "json").splitlines()
    return {service["Service"]: service["Health"] for service in map(json.loads, lines)}
