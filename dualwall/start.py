"""Where the program starts: a hook goes straight to its module, all else to the command line.

A hook runs before each of a person's prompts and has 80 ms from its start to its answer; click alone takes more than half.
"""

import sys

_HOOK = ["hook", "claude-code"]


def main() -> None:
    """Run what the arguments say, and leave with its exit code."""
    arguments = sys.argv[1:]
    if arguments[:2] == _HOOK and not {"-h", "--help"}.intersection(arguments):
        from injector.hooks import main as hook  # noqa: PLC0415

        sys.exit(hook(arguments[2:]))
    from dualwall.cli import main as command_line  # noqa: PLC0415

    command_line()


if __name__ == "__main__":
    main()
