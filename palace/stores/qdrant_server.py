"""A Qdrant server: connected by the settings, asked again while it may come back, and its errors in our words."""

import ipaddress
import json
import math
import ssl
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import grpc
import httpx
from qdrant_client import QdrantClient
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse
from qdrant_client.http.exceptions import ResponseHandlingException, UnexpectedResponse

from palace.errors import DualwallError, StoreError, UnreachableError
from palace.settings import Qdrant

READ, WRITE = 10.0, 60.0
"""Seconds after which a server that does not answer is given up: a person waits for a read, a night for a write."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0
_NEEDED = (1, 19)
"""The server's first version that counts words within a filter: before it, BM25 told of cubes that a reader does not see."""
_CONNECTIONS = 32
_PASSING = frozenset({408, 429, 500, 502, 503, 504})
"""Answers that may be others a moment later."""
_GRPC_CODES: dict[grpc.StatusCode, int | None] = {
    grpc.StatusCode.UNAUTHENTICATED: 401,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.DEADLINE_EXCEEDED: 408,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.INTERNAL: 500,
    grpc.StatusCode.UNAVAILABLE: None,
}
_START = "Is it running, and is stores.qdrant.url right? `dualwall doctor` asks it. Then run the command again."

_Result = TypeVar("_Result")


class Refusal(Exception):  # noqa: N818 - what the server said, before it becomes an error of ours
    """An answer that is no result. `status`: as in HTTP, None when nothing came; `pause`: seconds that it asks for."""

    def __init__(self, status: int | None, said: str, pause: float = 0.0) -> None:
        super().__init__(status, said)
        self.status = status
        self.said = said
        self.pause = pause

    @property
    def full(self) -> bool:
        """Whether the server's disk is full, which no repetition mends."""
        return self.status == 507 or "No space left" in self.said

    @property
    def passing(self) -> bool:
        """Whether the same request may succeed later."""
        return not self.full and (self.status is None or self.status in _PASSING)


class Server:
    """One server, asked by several threads. Nothing that it raises holds the key."""

    def __init__(self, settings: Qdrant, *, read: float = READ, write: float = WRITE) -> None:
        self.settings = settings
        self._reader = _Asker(settings, read)
        self._writer = _Asker(settings, write)

    def read(self, doing: str, ask: Callable[[QdrantClient], _Result]) -> _Result:
        """What the server answers. Raises UnreachableError when it does not, or not to this key; StoreError when it refuses."""
        return self._asked(doing, self._reader, ask)

    def write(self, doing: str, ask: Callable[[QdrantClient], _Result]) -> _Result:
        """The same with the patience of a write, which may be repeated since every write is an upsert."""
        return self._asked(doing, self._writer, ask)

    def unless(self, status: int, doing: str, ask: Callable[[QdrantClient], _Result]) -> _Result | None:
        """The same as `write`, or None when the server answers with that status."""
        try:
            return self._writer.ask(ask)
        except Refusal as refusal:
            if refusal.status == status:
                return None
            raise _error(self.settings, doing, refusal) from refusal

    def version(self) -> str:
        """The server's version. Raises StoreError for one that is too old."""
        version = self.read("connecting", lambda client: client.info().version)
        numbers = tuple(int(part) if part.isdecimal() else 0 for part in version.split(".")[:2])
        if numbers < _NEEDED:
            raise StoreError(
                f"The Qdrant server at {self.settings.url} is of version {version}; it has to be 1.19 or newer.",
                "Update it. Older ones count the words of every cube for every reader.",
            )
        return version

    def warnings(self) -> list[str]:
        """What is risky about the address and the key, a sentence each."""
        host, found = urlsplit(self.settings.url).hostname or "", list[str]()
        if not _loopback(host) and self.settings.api_key_file is None:
            found.append("Whoever reaches that server reads every cube: give it a key (stores.qdrant.api_key_file).")
        if self.settings.url.startswith("http:") and "." in host and not _private(host):
            found.append("Notes and the key go over the network in the clear: use https.")
        return found

    def close(self) -> None:
        """Give the connections back; closing twice is no fault."""
        self._reader.close()
        self._writer.close()

    def _asked(self, doing: str, asker: "_Asker", ask: Callable[[QdrantClient], _Result]) -> _Result:
        try:
            return asker.ask(ask)
        except Refusal as refusal:
            raise _error(self.settings, doing, refusal) from refusal


class _Asker:
    """A client that gives up after some seconds, by request and over all."""

    def __init__(self, settings: Qdrant, seconds: float) -> None:
        self._seconds = seconds
        self._client: QdrantClient | None = _client(settings, math.ceil(seconds))

    def ask(self, ask: Callable[[QdrantClient], _Result]) -> _Result:
        """One call, repeated with growing pauses while its failure may pass. Raises Refusal in the end."""
        ends = time.monotonic() + self._seconds
        pause = _FIRST_PAUSE
        while True:
            try:
                return self._once(ask)
            except Refusal as refusal:
                wait = max(refusal.pause, pause)
                if not refusal.passing or time.monotonic() + wait > ends:
                    raise
            time.sleep(wait)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _once(self, ask: Callable[[QdrantClient], _Result]) -> _Result:
        if self._client is None:
            raise StoreError(
                "The vector store was closed already.", "This is a fault of the program; please report it."
            )
        try:
            return ask(self._client)
        except UnexpectedResponse as error:
            raise Refusal(error.status_code, _told(error.content)) from error
        except ResourceExhaustedResponse as error:
            raise Refusal(429, str(error), float(error.retry_after_s)) from error
        except ResponseHandlingException as error:
            raise Refusal(None, _nothing_came(error.source)) from error
        except grpc.RpcError as error:
            raise _of_grpc(error) from error


def _client(settings: Qdrant, seconds: int) -> QdrantClient:
    """A client that has not asked for anything yet. The key goes in a header, since the client's own option insists on TLS."""
    key = None if settings.api_key_file is None else _secret(settings.api_key_file)
    authority: dict[str, bytes] = {}
    trusted: ssl.SSLContext | bool = True
    if settings.ca_file is not None:
        try:
            authority["root_certificates"] = settings.ca_file.read_bytes()
            trusted = ssl.create_default_context(cafile=settings.ca_file)
        except OSError as error:
            raise UnreachableError(
                f"{settings.ca_file} cannot be used as a certificate: {error}.", "Mend stores.qdrant.ca_file."
            ) from error
    return QdrantClient(
        url=settings.url,
        grpc_port=settings.grpc_port,
        prefer_grpc=settings.grpc_port > 0,
        headers=None if key is None else {"api-key": key},
        timeout=seconds,
        grpc_options=authority,
        check_compatibility=False,
        limits=httpx.Limits(max_connections=_CONNECTIONS, max_keepalive_connections=_CONNECTIONS),
        verify=trusted,
    )


def _loopback(host: str) -> bool:
    return host == "localhost" or (_is_ip(host) and ipaddress.ip_address(host).is_loopback)


def _private(host: str) -> bool:
    return _is_ip(host) and ipaddress.ip_address(host).is_private


def _is_ip(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _secret(file: Path) -> str:
    """A key from its file. An empty one is refused: servers take it for none at all."""
    try:
        key = file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text of one line"
        raise UnreachableError(f"The key file {file} cannot be read: {reason}.", "Mend it, or name another.") from error
    if not key or not key.isprintable():
        raise UnreachableError(f"{file} holds no key.", "Write the server's key, or a JWT, into it: one line.")
    return key


def _nothing_came(source: Exception) -> str:
    """What a failed request tells; a malformed answer is not quoted, since it may hold a note's text."""
    if isinstance(source, httpx.HTTPError):
        return f"{type(source).__name__}: {source}" if str(source) else type(source).__name__
    return "its answer is none of Qdrant's"


def _of_grpc(error: grpc.RpcError) -> Refusal:
    if not isinstance(error, grpc.Call):
        return Refusal(None, type(error).__name__)
    code = error.code()
    return Refusal(_GRPC_CODES.get(code, 400), error.details() or code.name)


def _told(content: bytes) -> str:
    """The sentence in an error's body."""
    try:
        said = json.loads(content)["status"]["error"]
    except (ValueError, TypeError, KeyError):
        said = content.decode("utf-8", "replace")
    return " ".join(str(said).split())[:300]


def _error(settings: Qdrant, doing: str, refusal: Refusal) -> DualwallError:
    who, said = f"The Qdrant server at {settings.url}", refusal.said.rstrip(".")
    if refusal.full:
        return StoreError(f"{who} has a full disk: {doing} failed.", "Free some space there, then run it again.")
    if refusal.status is None or refusal.status == 408:
        return UnreachableError(f"{who} does not answer: {said}.", _START)
    if refusal.status in {401, 403}:
        return UnreachableError(f"{who} refuses {doing}: {said}.", _mend_key(settings))
    if refusal.passing:
        return UnreachableError(f"{who} failed at {doing}: {said}.", "Its log tells why. Then run the command again.")
    if refusal.status == 404:
        return StoreError(
            f"{who} failed at {doing}: {said}.",
            "Did somebody delete the collection? `dualwall ingest --rebuild` makes it again from your notes.",
        )
    return StoreError(f"{who} refuses {doing}: {said}.", "This is a fault of the program; please report it.")


def _mend_key(settings: Qdrant) -> str:
    if settings.api_key_file is None:
        return "Write its key into a file and name that in stores.qdrant.api_key_file."
    return f"Is the key in {settings.api_key_file} this server's, not expired, and may it write?"
