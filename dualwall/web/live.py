"""The palace while it is served: warm, and with the readers that the settings have now."""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dualwall import tool_answers
from dualwall.common import Json
from dualwall.tokens import reader_of_token
from dualwall.web.logs import event
from palace.configuration import load
from palace.errors import DualwallError, SettingsError
from palace.settings import Settings

if TYPE_CHECKING:
    from palace.library import Library

_LOOK_EVERY = 1.0
_WARM_AGAIN = 15.0
_FIXED = frozenset({"data", "stores", "embedding", "search", "serve", "gateway"})
"""Parts of the settings that are read once, at the start."""


class Live:
    """What the server's parts share. The settings' file is looked at every second; one at fault closes the doors.

    `faulty`: the file cannot be read, so nobody can be let in; `ready`: a question can be answered.
    """

    def __init__(self, library: "Library", config: Path) -> None:
        self._library = library
        self._config = config
        self._stamp = self._look()
        self.faulty = False
        self.ready = False
        self.asked = time.monotonic()

    @property
    def settings(self) -> Settings:
        """The settings as they are now."""
        return self._library.settings

    def library(self) -> "Library":
        """The palace, for one question."""
        self.asked = time.monotonic()
        return self._library

    def call(self, reader: str, name: str, arguments: Json) -> Json:
        """The answer of a tool (`dualwall.mcp_server.Desk`)."""
        return tool_answers.call(self.library(), reader, name, arguments)

    def reader_of(self, token: str) -> str | None:
        """Whose token it is."""
        return reader_of_token(self.settings.readers, token)

    def status(self) -> Json | None:
        """What is indexed, or None while that cannot be told."""
        try:
            return self._library.status() if self.ready else None
        except DualwallError as error:
            event("status failed", logging.ERROR, error=type(error).__name__)
            return None

    def watch(self, stop: threading.Event) -> None:
        """Warm up, then look at the settings until the server stops."""
        tried = 0.0
        while True:
            if not self.ready and time.monotonic() - tried > _WARM_AGAIN:
                self._warm(stop)
                tried = time.monotonic()
            self.refresh()
            if stop.wait(_LOOK_EVERY):
                return

    def refresh(self) -> None:
        """Take over what may change while the server runs, if the file did."""
        stamp = self._look()
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            new = load(self._config)
        except (SettingsError, OSError) as error:
            self.faulty = True
            event("settings at fault: nobody is let in until they are mended", logging.ERROR, fault=str(error))
            return
        self.faulty = False
        old = self.settings
        kept = {name: getattr(old, name) for name in _FIXED}
        self._library.settings = new.model_copy(update=kept)
        later = sorted(name for name in _FIXED if getattr(new, name) != kept[name])
        event("settings read", restart_for=later)

    def _warm_vectors(self) -> None:
        self._library.vectors.warm()

    def _warm(self, stop: threading.Event) -> None:
        """Open everything that a first question would wait for."""
        began = time.monotonic()
        steps: tuple[Callable[[], object], ...] = (
            lambda: self._library.vectors,
            lambda: self._library.searcher,
            lambda: self._library.embedder.query("warm"),
            self._warm_vectors,
            lambda: tool_answers.Asked(self._library, "").tokens.count("warm"),
        )
        for number, step in enumerate(steps):
            if stop.is_set():
                return
            try:
                step()
            except DualwallError as error:
                event("not warm", logging.WARNING, error=type(error).__name__, message=error.message, hint=error.hint)
                if number < 2:  # without the stores there is no answer; without the model there is one, by words
                    return
        self.ready = True
        event("ready", seconds=round(time.monotonic() - began, 3))

    def _look(self) -> tuple[int, int, int]:
        """Differs when the file did; zeros when there is none."""
        try:
            found = self._config.stat()
        except OSError:
            return (0, 0, 0)
        return (found.st_mtime_ns, found.st_size, found.st_ino)
