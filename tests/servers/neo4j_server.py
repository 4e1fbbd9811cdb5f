"""A real Neo4j Community server for tests and benches, from the jars that Maven Central serves.

The jars (120 MB) are gathered once into the user's cache folder. The server listens on one port of localhost, asks for a
password, sends no usage report, and can be killed and started again on the same data.
"""

import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import neo4j
from neo4j.exceptions import DriverError, Neo4jError
from platformdirs import user_cache_path

from palace.settings import Neo4j

POM = Path(__file__).with_name("neo4j-pom.xml")
PASSWORD = "a password of the tests"  # noqa: S105 - of a server that lives for one run
_ENTRY = "META-INF/services/org.neo4j.server.startup.EntryPoint"
_OPENED = ("java.nio", "java.io", "sun.nio.ch", "java.util.concurrent")
_PATIENCE = 120.0  # seconds for a start
_LEAST_JAVA = 17


def lacking() -> str | None:
    """Why no server can be started here, in one line, or None."""
    java = shutil.which("java")
    if java is None:
        return "needs java (a JDK 17 or 21): a real Neo4j server is started"
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(\d+)', told)
    if version is None or int(version[1]) < _LEAST_JAVA:
        return f"needs Java 17 or 21 for a real Neo4j server; {java} is another"
    if not _jars().is_dir() and shutil.which("mvn") is None:
        return "needs mvn (Maven) to gather the jars of a real Neo4j server, once"
    return None


class Neo4jServer:
    """One server with its data below `home`. `settings`: how Dualwall reaches it."""

    def __init__(self, home: Path, heap: str = "512m") -> None:
        self._home = home
        self._heap = heap
        self._process: subprocess.Popen[bytes] | None = None
        self._port = _free_port()
        password = home / "password"
        (home / "conf").mkdir(parents=True, exist_ok=True)
        password.write_text(f"{PASSWORD}\n")
        self.settings = Neo4j(url=f"bolt://127.0.0.1:{self._port}", password_file=password)
        (home / "conf" / "neo4j.conf").write_text("".join(f"{k}={v}\n" for k, v in self._configuration().items()))

    def start(self) -> None:
        """Start it on the data that is there; returns when it answers."""
        jars = gathered()
        argv = ["java", f"-Xms{self._heap}", f"-Xmx{self._heap}", "-XX:+UseG1GC", "-Dfile.encoding=UTF-8",
                "-Dio.netty.tryReflectionSetAccessible=true", "-Dlog4j2.disable.jmx=true",
                *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED),
                "-cp", f"{jars}/*", _entry_point(jars),
                f"--home-dir={self._home}", f"--config-dir={self._home / 'conf'}", "--console-mode"]  # fmt: skip
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(argv, stdout=log, stderr=subprocess.STDOUT, cwd=self._home)
        self._await()

    def stop(self) -> None:
        """Stop it in good order."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def kill(self) -> None:
        """End it as kill -9 and a power cut do."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def limit_files(self, size: int) -> None:
        """Let it write no file beyond so many bytes, as on a disk that is full, until it is started again."""
        assert self._process is not None
        resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    @contextmanager
    def session(self) -> Iterator[neo4j.Session]:
        """A session of the driver itself, past the adapter."""
        with (
            neo4j.GraphDatabase.driver(self.settings.url, auth=("neo4j", PASSWORD)) as driver,
            driver.session(notifications_min_severity="OFF") as session,
        ):
            yield session

    def wipe(self) -> None:
        """Delete every node; constraints stay."""
        with self.session() as session:
            session.run("MATCH (n) CALL (n) { DETACH DELETE n } IN TRANSACTIONS OF 5000 ROWS").consume()

    @property
    def _log(self) -> Path:
        return self._home / "console.log"

    def _configuration(self) -> dict[str, str]:
        return {
            "server.default_listen_address": "127.0.0.1",
            "server.bolt.listen_address": f"127.0.0.1:{self._port}",
            "server.bolt.advertised_address": f"127.0.0.1:{self._port}",
            "server.http.enabled": "false",
            "server.https.enabled": "false",
            "dbms.security.auth_enabled": "true",
            "dbms.usage_report.enabled": "false",
            "server.memory.pagecache.size": "128m",
            "db.tx_log.preallocate": "false",
            "db.tx_log.rotation.retention_policy": "keep_none",
        }

    def _await(self) -> None:
        deadline = time.monotonic() + _PATIENCE
        while not self._answers():
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"Neo4j did not start:\n{self._log.read_text()[-4000:]}")
            time.sleep(0.2)

    def _answers(self) -> bool:
        """Whether it can be logged in; a new server's password is set on the way."""
        try:
            with socket.create_connection(("127.0.0.1", self._port), 1):
                pass
            if not (self._home / "named").exists():
                with neo4j.GraphDatabase.driver(self.settings.url, auth=("neo4j", "neo4j")) as driver:
                    change = "ALTER CURRENT USER SET PASSWORD FROM 'neo4j' TO $new"
                    driver.execute_query(change, new=PASSWORD, database_="system")
                (self._home / "named").touch()
            with self.session() as session:
                session.run("RETURN 1").consume()
        except (OSError, DriverError, Neo4jError):
            return False
        return True


def gathered() -> Path:
    """The folder of the jars, gathered by Maven the first time."""
    folder = _jars()
    if not folder.is_dir():
        part = folder.with_name(f"{folder.name}.{os.getpid()}")
        out = [f"-DoutputDirectory={part}", "-DincludeScope=runtime"]
        subprocess.run(
            ["mvn", "-q", "-B", "-Dstyle.color=never", "-f", str(POM), "dependency:copy-dependencies", *out], check=True
        )
        try:
            part.rename(folder)
        except OSError:  # another run was first
            shutil.rmtree(part)
    return folder


def _jars() -> Path:
    version = re.search(r"<version>(\d+\.\d+\.\d+)</version>\s*</dependency>", POM.read_text(encoding="utf-8"))
    assert version
    return user_cache_path("dualwall-tests") / f"neo4j-{version[1]}"


def _entry_point(jars: Path) -> str:
    for jar in sorted(jars.glob("neo4j-*.jar")):
        with zipfile.ZipFile(jar) as archive:
            if _ENTRY in archive.namelist():
                return archive.read(_ENTRY).decode().split()[0]
    raise FileNotFoundError(f"no jar of {jars} starts a server; delete that folder, it is gathered again")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
