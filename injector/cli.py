"""`dualwall hook`: what agents' own programs call before a response."""

import click

from injector import hooks


@click.group("hook")
def group() -> None:
    """Put memory before a response, for programs that call a command at that moment."""


@group.command("claude-code", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.option("--as", "reader", help="Who asks (else the first reader of the settings).")
@click.option("--config", help="The settings file.")
@click.option("--json", "as_json", is_flag=True, help="It prints JSON always.")
@click.pass_context
def claude_code(context: click.Context, *, reader: str | None, config: str | None, as_json: bool) -> int:  # noqa: ARG001 - it prints JSON always
    """Answer a UserPromptSubmit or SessionStart hook of Claude Code, given on standard input.

    It asks the running server (`dualwall serve`) over its socket and needs one second at most. Without a server, or when
    something goes wrong, the context is empty, standard error says why, and the exit code is 0, so that no prompt is blocked.
    """
    options = [word for name, value in (("--as", reader), ("--config", config)) if value for word in (name, value)]
    return hooks.main([*options, *context.args])
