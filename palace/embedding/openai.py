"""Dense vectors from an OpenAI-compatible `/v1/embeddings` address. The key is sent and never shown.

Each text is judged by the server's tokenizer; texts here are chunks of at most 480 tokens of the default model's.
"""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any

import httpx
import numpy as np

from palace.embedding.dense import Prefixes, fingerprint, unit
from palace.errors import SettingsError, UnreachableError
from palace.settings import Embedding
from palace.stores.ports import Vector

KEY_VARIABLE = "DUALWALL_EMBEDDING_KEY"
"""Holds the key where the settings name no file."""

_TEXTS_AT_ONCE = 32
_AGAIN = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
"""Statuses that another try may mend."""
_FIRST_PAUSE = 0.5


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds: for one answer, and for all tries of one request."""

    answer: float = 30.0
    passages: float = 120.0
    query: float = 10.0


class OpenAIEmbedder:
    """The port over an address. Thread-safe. Unless the settings tell the dimensions, one question finds them out.

    Raises:
        SettingsError: the address or the key is missing.
        UnreachableError: the address doesn't answer, refuses, or answers something else.
    """

    max_tokens = 512

    def __init__(self, embedding: Embedding, patience: Patience | None = None) -> None:
        self._patience = patience or Patience()
        self._model = embedding.model
        self._asked = embedding.dimensions
        self._prefixes = Prefixes.of(embedding)
        self._address = address(embedding.url)
        self._client = httpx.Client(headers=_headers(embedding), timeout=self._patience.answer)
        self._workers = ThreadPoolExecutor(embedding.workers, thread_name_prefix="embed")
        self.dimensions = embedding.dimensions or len(self.query("dimensions"))
        identity = f"openai\x00{embedding.model}\x00{self.dimensions}"
        self.fingerprint = fingerprint(embedding.model, identity, self._prefixes)

    def passages(self, texts: Sequence[str]) -> Iterator[Vector]:
        """One vector a text, in order; several requests at once."""
        prefixed = [self._prefixes.passage + text for text in texts]
        groups = [prefixed[low : low + _TEXTS_AT_ONCE] for low in range(0, len(prefixed), _TEXTS_AT_ONCE)]
        return chain.from_iterable(
            self._workers.map(lambda group: self._vectors(group, self._patience.passages), groups)
        )

    def query(self, text: str) -> Vector:
        """The vector of a question."""
        return self._vectors([self._prefixes.query + text], self._patience.query)[0]

    def close(self) -> None:
        """Give workers and connections back."""
        self._workers.shutdown(wait=True, cancel_futures=True)
        self._client.close()

    def _vectors(self, texts: Sequence[str], seconds: float) -> list[Vector]:
        body: dict[str, object] = {"model": self._model, "input": list(texts), "encoding_format": "float"}
        if self._asked:
            body["dimensions"] = self._asked
        answer = self._ask(body, time.monotonic() + seconds)
        try:
            entries = sorted(answer.json()["data"], key=lambda entry: entry["index"])
            vectors = [unit(np.asarray(entry["embedding"], np.float32)) for entry in entries]
        except (ValueError, KeyError, TypeError) as error:
            raise self._refused(f"its answer holds no embeddings ({type(error).__name__})") from error
        wanted = getattr(self, "dimensions", len(vectors[0]) if vectors else 0)
        if len(vectors) != len(texts) or any(len(vector) != wanted for vector in vectors):
            raise self._refused(f"it gave {len(vectors)} vectors, not {len(texts)} of {wanted} dimensions")
        return vectors

    def _ask(self, body: Mapping[str, Any], deadline: float) -> httpx.Response:
        """Post until an answer is good, final, or the deadline would pass."""
        pause = _FIRST_PAUSE
        while True:
            after = pause
            try:
                answer = self._client.post(self._address, json=body)
                if answer.is_success:
                    return answer
                reason = f"status {answer.status_code}"
                if answer.status_code not in _AGAIN:
                    raise self._refused(reason)
                after = max(after, _seconds(answer.headers.get("retry-after")))
            except httpx.HTTPError as error:
                reason = str(error) or type(error).__name__
            if time.monotonic() + after > deadline:
                raise self._refused(reason)
            time.sleep(after)
            pause *= 2

    def _refused(self, reason: str) -> UnreachableError:
        return UnreachableError(
            f"The embedding server {self._address} can't be used: {reason}",
            f"Check [embedding] url, model and api_key_file (or {KEY_VARIABLE}).",
        )


def address(url: str | None) -> str:
    """Where to post: the settings may end in the host, in `/v1` or in `/v1/embeddings`."""
    try:
        given = httpx.URL(url or "")
    except httpx.InvalidURL:
        given = httpx.URL("")
    if given.scheme not in {"http", "https"} or not given.host or given.userinfo:
        raise SettingsError(
            "[embedding] url is no address", 'Write url = "http://127.0.0.1:11434/v1"; a key stands in api_key_file.'
        )
    path = given.path.rstrip("/")
    if not path.endswith("/embeddings"):
        path = f"{path}/embeddings" if path else "/v1/embeddings"
    return str(given.copy_with(path=path))


def _headers(embedding: Embedding) -> dict[str, str]:
    key = os.environ.get(KEY_VARIABLE, "")
    if embedding.api_key_file:
        try:
            key = embedding.api_key_file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(
                f"[embedding] api_key_file can't be read: {embedding.api_key_file}", type(error).__name__
            ) from error
    return {"Authorization": f"Bearer {key.strip()}"} if key.strip() else {}


def _seconds(header: str | None) -> float:
    """What a `Retry-After` of seconds asks for; one with a date is left to the usual pause."""
    return float(header) if header and header.isdecimal() else 0.0
