"""What stops a run. Each error says what happened and what to do next, and carries its exit code.

DualwallError                1   failed
├── UsageError               2   wrong usage or settings; nothing was touched
│   └── SettingsError        2   faults of the settings file, all at once
├── GuardError               4   stopped by the deletion guard; nothing was deleted
├── BusyError                5   another process holds the data folder
├── UnreachableError         6   a store, the model or the source cannot be reached
│   └── ModelMismatchError   6   vectors of another model are stored
├── WallError                1   a query without a cube, a room outside its reader: a bug or an attack
├── NotFoundError            1   no such note for this reader
└── StoreError               1   a store refused an operation

A fault of one note is no exception but a `palace.vocabulary.Problem`, returned beside the result.
"""

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of every command."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    PROBLEMS = 3
    GUARD = 4
    BUSY = 5
    UNREACHABLE = 6


class DualwallError(Exception):
    """The root. `message`: what happened and where; `hint`: what to do next."""

    exit_code: Exit = Exit.FAILED

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class UsageError(DualwallError):
    """Wrong usage; nothing was touched."""

    exit_code = Exit.USAGE


class SettingsError(UsageError):
    """Faults of the settings, all at once, each with its line."""


class GuardError(DualwallError):
    """The source lost more than the guard allows; nothing was deleted."""

    exit_code = Exit.GUARD


class BusyError(DualwallError):
    """Another process holds the data folder."""

    exit_code = Exit.BUSY


class UnreachableError(DualwallError):
    """A store, the model or the source cannot be reached."""

    exit_code = Exit.UNREACHABLE


class ModelMismatchError(UnreachableError):
    """The stored vectors came from another model; mixing is refused."""


class WallError(DualwallError):
    """A query that would cross a wall was refused."""


class StoreError(DualwallError):
    """A store refused an operation."""


class NotFoundError(DualwallError):
    """There is no such note for this reader: the same words whether it is absent or of another cube."""
