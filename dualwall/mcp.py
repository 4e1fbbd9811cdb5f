"""`dualwall mcp`: the tools over standard input and output, for clients that start their servers as commands.

Light: the answers come from whoever owns the store, over its socket, and the engine is never imported here.
"""

from dataclasses import dataclass
from pathlib import Path

import click

from dualwall.asking import as_option, reader_of
from dualwall.background import Owner
from dualwall.common import Json, common
from dualwall.questions import tool
from palace.configuration import find, load
from palace.settings import Settings


@dataclass(frozen=True, slots=True)
class SocketDesk:
    """The tools of whoever owns the store (`dualwall.mcp_server.Desk`)."""

    owner: Owner

    @property
    def settings(self) -> Settings:
        """As they were when the process began."""
        return self.owner.settings

    def call(self, reader: str, name: str, arguments: Json) -> Json:
        """Ask the owner."""
        return self.owner.ask(tool(name, arguments), reader)


@click.command()
@as_option
@common
def command(*, reader: str | None, config: Path | None, as_json: bool) -> None:  # noqa: ARG001 - the protocol is JSON
    """Speak MCP over standard input and output, for a client that starts its servers as commands.

    The answers come from whoever owns the store; when nobody does, a `dualwall serve` is started in the background, and
    ends by itself when it has not been asked for a while.
    """
    file = find(config)
    settings = load(file)
    asker = reader_of(settings, reader)
    owner = Owner(settings, file)
    owner.wake()  # it starts while the SDK is imported
    from dualwall.mcp_server import run_stdio  # noqa: PLC0415 - takes a second

    run_stdio(SocketDesk(owner), asker)
