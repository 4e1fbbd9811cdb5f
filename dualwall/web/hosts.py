"""Which names a request may come by: a page of another site must not reach the server through a person's browser. Pure.

An IP address cannot be rebound by DNS, so any is fine as Host; a name has to be known.
"""

import ipaddress
from collections.abc import Collection
from urllib.parse import urlsplit

from palace.errors import UsageError

_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


def address(listen: str) -> tuple[str, int]:
    """(host, port) of `HOST:PORT` or `[HOST]:PORT`. Raises UsageError."""
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f'"{listen}" is no HOST:PORT.', "Write it as 127.0.0.1:8377.")
    return host.removeprefix("[").removesuffix("]"), int(port)


def is_local(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def known_host(header: str | None, names: Collection[str]) -> bool:
    """Whether a Host header names this machine."""
    name = _name(f"//{header}") if header else None
    return name is not None and (name in _LOCAL or name in names or _is_ip(name))


def known_origin(origin: str | None, host: str | None, names: Collection[str]) -> bool:
    """Whether an Origin header is absent, the server's own, or a page of this machine."""
    if origin is None:
        return True
    name = _name(origin)
    if name is None or not origin.startswith(("http://", "https://")):
        return False
    return name in _LOCAL or name in names or origin.partition("//")[2] == host


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _is_ip(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
