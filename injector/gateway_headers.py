"""Which headers go on, both ways, and which address a request goes to. Pure."""

from collections.abc import Iterable

Headers = list[tuple[bytes, bytes]]
OWN = b"x-dualwall"
"""What begins so is between the client and this gateway, both ways."""
_HOP_BY_HOP = frozenset({
    b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"proxy-connection", b"te", b"trailer",
    b"transfer-encoding", b"upgrade",
})  # fmt: skip
_OURS_TO_SEND = frozenset({b"host", b"content-length", b"expect"})
_OURS_TO_ANSWER = frozenset({b"server", b"date", b"x-accel-buffering"})


def to_upstream(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """What a client's headers become: the upstream's own `Host` and the new length are the HTTP client's to add."""
    return _kept(raw, _OURS_TO_SEND)


def to_client(raw: Iterable[tuple[bytes, bytes]], memory: str, reason: str) -> Headers:
    """What an upstream's headers become, with what was done about memory; its encoding and length stay."""
    return _kept(raw, _OURS_TO_ANSWER) + about(memory, reason)


def about(memory: str, reason: str) -> Headers:
    """What each answer of the gateway says; `X-Accel-Buffering` is for a proxy in front, which may hold streams back."""
    told = [(b"x-dualwall-reason", reason.encode("ascii", "replace"))] if reason else []
    return [(OWN, memory.encode()), *told, (b"x-accel-buffering", b"no")]


def address(base: str, raw_path: bytes, query: bytes) -> bytes | None:
    """The path and query at the upstream; `base`: the path of its own address. None: it would leave that path.

    Both `https://host` and `https://host/v1` mean the same upstream.
    """
    path = raw_path.lower().replace(b"%2e", b".").replace(b"%2f", b"/").replace(b"%5c", b"/").replace(b"\\", b"/")
    if b".." in path.split(b"/"):
        return None
    kept = base.rstrip("/").removesuffix("/v1").encode()
    return kept + raw_path + (b"?" + query if query else b"")


def _kept(raw: Iterable[tuple[bytes, bytes]], ours: frozenset[bytes]) -> Headers:
    headers = [(name.lower(), value) for name, value in raw]
    named = (value.lower().split(b",") for name, value in headers if name == b"connection")
    dropped = _HOP_BY_HOP | ours | {name.strip() for names in named for name in names}
    return [(name, value) for name, value in headers if name not in dropped and not name.startswith(OWN)]
