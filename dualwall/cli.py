"""The command line: groups loaded when used, one border where errors become words and exit codes."""

import importlib
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from palace.errors import DualwallError, Exit

if TYPE_CHECKING:
    from palace.library import Library
    from palace.settings import Settings

PROGRAM = "dualwall"


@dataclass(frozen=True, slots=True)
class Entry:
    """A command by the place it is imported from, so that `--help` pays for none of them."""

    module: str
    name: str
    help: str
    exits: tuple[int, ...]
    hidden: bool = False


COMMANDS = {
    "init": Entry("dualwall.init", "command", "Write a commented settings file for a vault.", (0, 1, 2)),
    "doctor": Entry("dualwall.doctor", "command", "Check everything, and say how to mend it.", (0, 1, 2, 6)),
    "sync": Entry("sync.cli", "command", "Mirror the vaults.", (0, 1, 2, 3, 4, 5, 6)),
    "librarian": Entry("librarian.cli", "group", "Place the notes into rooms; prove the palace.", (0, 1, 2, 3, 5)),
    "ingest": Entry("ingest.cli", "command", "Bring what changed into the stores.", (0, 1, 2, 3, 5, 6)),
    "nightly": Entry(
        "dualwall.nightly", "command", "sync, librarian, ingest and verify in one run.", (0, 1, 2, 3, 4, 5, 6)
    ),
    "search": Entry("dualwall.asking", "search", "Ask a question; every answer has a receipt.", (0, 1, 2, 5, 6)),
    "rooms": Entry("dualwall.asking", "rooms", "List the rooms, or those that suit a question.", (0, 1, 2, 5, 6)),
    "read": Entry("dualwall.asking", "read", "Show a note.", (0, 1, 2, 5, 6)),
    "neighbors": Entry("dualwall.asking", "neighbors", "Show what links to a note, and from it.", (0, 1, 2, 5, 6)),
    "inject": Entry("dualwall.asking", "inject", "Show what goes before an agent's response.", (0, 1, 2, 5, 6)),
    "status": Entry("dualwall.asking", "status", "Show what is indexed, and what is not and why.", (0, 1, 2, 5, 6)),
    "verify": Entry("dualwall.asking", "verify", "Compare palace, vectors, graph and catalogue.", (0, 1, 2, 5, 6)),
    "migrate": Entry("dualwall.migrate", "command", "Move the palace to servers, or back.", (0, 1, 2, 5, 6)),
    "serve": Entry(
        "dualwall.serve", "command", "Answer agents: MCP, REST, health; and run the nights.", (0, 1, 2, 5, 6)
    ),
    "mcp": Entry("dualwall.mcp", "command", "Speak MCP over standard input and output.", (0, 1, 2)),
    "token": Entry("dualwall.tokens", "command", "Make a reader's token for the server.", (0, 1, 2)),
    "tools": Entry("dualwall.tools", "command", "Show the agents' tools, or their schemas.", (0, 1, 2)),
    "hook": Entry("injector.cli", "group", "Put memory before a response of Claude Code.", (0,), hidden=True),
    "parse": Entry("dualwall.parse", "command", "Show what Obsidian would see in a file.", (0, 1, 2, 3)),
    "tour": Entry(
        "dualwall.tour", "command", "A newcomer's first quarter of an hour.", (0, 1, 2, 4, 5, 6), hidden=True
    ),
}

MEANINGS = {
    Exit.DONE: "done",
    Exit.FAILED: "failed; the message says what, where and what next",
    Exit.USAGE: "wrong usage or settings, nothing was touched",
    Exit.PROBLEMS: "done, with Problems (bad notes are listed and kept out)",
    Exit.GUARD: "stopped by the deletion guard, nothing was deleted",
    Exit.BUSY: "another process holds the data folder (who, since when)",
    Exit.UNREACHABLE: "a store, the model or the source cannot be reached",
}
INTERRUPTED = 130
"""What a shell gives a command that was stopped by ctrl-c."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order in which a newcomer meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        """Import a command; its help ends with its exit codes."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = getattr(importlib.import_module(entry.module), entry.name)
        if not isinstance(command, click.Command):
            raise TypeError(f"{entry.module}.{entry.name} is no command")
        for one in [command, *getattr(command, "commands", {}).values()]:
            one.epilog = _epilog(entry.exits)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the command that was meant in the message."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from rapidfuzz import process  # noqa: PLC0415 - only a wrong word pays for it

            near = process.extractOne(args[0], list(COMMANDS), score_cutoff=60)
            hint = f" Did you mean {near[0]}?" if near else ""
            raise click.UsageError(f"There is no command {args[0]!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        """List the commands without importing one."""
        rows = [(name, entry.help) for name, entry in COMMANDS.items() if not entry.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120})
@click.version_option(package_name=PROGRAM)
def cli() -> None:
    """Memory for AI agents, kept in your own Obsidian vault, behind two walls: who may see, and where to look.

    Start with: dualwall init ~/Notes, dualwall nightly, dualwall search "a question"
    """


def main() -> None:
    """Run the command line and leave with its exit code."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command; every error becomes a message on standard error and an exit code, here and nowhere else."""
    try:
        result = cli.main(list(arguments), prog_name=PROGRAM, standalone_mode=False, obj=_owning)
    except DualwallError as error:
        _complain(error.message, error.hint)
        return error.exit_code
    except click.ClickException as error:
        error.show()
        return Exit.USAGE
    except (click.Abort, KeyboardInterrupt):
        _complain("Stopped.", "Nothing is lost: run the same command again, and it goes on from there.")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.DONE
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        _complain(f"{error.strerror or error}{where}.", "Mend that, then run the same command again.")
        return Exit.FAILED
    return result if isinstance(result, int) else Exit.DONE


def _owning(settings: "Settings", command: str) -> "AbstractContextManager[Library]":
    """How commands of lower floors own the store: others' questions are answered meanwhile."""
    from dualwall.client import owning  # noqa: PLC0415 - only where a store is opened

    return owning(settings, command)


def _complain(message: str, hint: str) -> None:
    click.echo(click.style("dualwall: ", fg="red") + message, err=True)
    if hint:
        click.echo("  " + hint.replace("\n", "\n  "), err=True)


def _epilog(exits: tuple[int, ...]) -> str:
    lines = [f"  {code}  {meaning}" for code, meaning in MEANINGS.items() if code in exits]
    return "\b\nExit codes:\n" + "\n".join(lines)


if __name__ == "__main__":
    main()
