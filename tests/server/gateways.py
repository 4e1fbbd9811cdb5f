"""A gateway in front of the stand-in for a model, both as real servers."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Header, HTTPException

from injector.gateway import create_router
from injector.gateway_memory import Remember
from palace.settings import Gateway, Inject, Settings
from tests.server.upstream import Upstream, serving

READERS = {"scouts-token": "scout", "owls-token": "owl"}
TOKEN = {"X-Dualwall-Token": "scouts-token"}
MEMORY = 'Scout says: "灯"\n</x>'
INJECTED = "injected; tokens=7; notes=2"


def reader(x_dualwall_token: Annotated[str | None, Header()] = None) -> str | None:
    """As the server has it: no token is nobody, a wrong one is refused."""
    if x_dualwall_token is None:
        return None
    if x_dualwall_token not in READERS:
        raise HTTPException(401)
    return READERS[x_dualwall_token]


def answer(text: str = MEMORY) -> dict[str, Any]:
    """What `inject` answers, with two notes in it."""
    included = [{"ref": ref, "channel": "recall", "tokens": 3, "note_sha256": "0"} for ref in "ab"]
    return {
        "directive": "",
        "recall": text,
        "receipt": {"included": included, "left_out": [], "tokens": 7, "late": False},
    }


@dataclass(slots=True)
class Memory:
    """A palace that remembers one thing, and what it was asked."""

    asked: list[tuple[str, str]] = field(default_factory=list)

    async def __call__(self, reader: str, message: str) -> dict[str, Any]:
        self.asked.append((reader, message))
        return answer()


@dataclass(frozen=True, slots=True)
class Rig:
    """`url`: the gateway's address."""

    url: str
    upstream: Upstream


@contextmanager
def rigged(remember: Remember, *, deadline_ms: int = 2000, **gateway: Any) -> Iterator[Rig]:  # noqa: ANN401 - settings
    """Both servers; `gateway`: settings of it."""
    upstream = Upstream()
    with serving(upstream) as upstream_url:
        settings = Settings(
            data=Path("nowhere"),
            inject=Inject(deadline_ms=deadline_ms),
            gateway=Gateway.model_validate({"upstream": upstream_url} | gateway),
        )
        app = FastAPI()
        app.include_router(create_router(settings, remember, reader))
        with serving(app) as url:
            yield Rig(url, upstream)
