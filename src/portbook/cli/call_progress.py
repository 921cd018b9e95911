"""The person at the terminal as the client of a call: sees a tool's progress and log messages as they come.

Both go to standard error. Progress stays on one line, which the next message or the result replaces. A tool
may report from any thread. Nobody is asked: a terminal declares no capabilities.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import threading
from collections.abc import Callable, Mapping
from typing import Final, TextIO

from portbook.errors import Failed, Reason
from portbook.escaping import escaped, escaped_json
from portbook.model import JSON, Draft, JSONObject
from portbook.protocol.negotiation import LEVELS

__all__ = ["TerminalClient"]

# What a person wants to read; debug messages are for the author, who has other ways.
_LEAST: Final = "info"
_CLEAR: Final = "\r\033[K"
_MOST: Final = 2000


class TerminalClient:
    """Prints what a tool reports to `out`, which is a terminal."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._writing = threading.Lock()
        self._has_line = False
        """Whether a line of progress stands there, which the next text replaces."""

    @property
    def capabilities(self) -> JSONObject:
        """Return none."""
        return {}

    @property
    def is_waiting(self) -> bool:
        """Return False: no question is asked."""
        return False

    def progress(self, progress: float, total: float | None, message: Draft[str] | None) -> None:
        """Show progress in place of the one before it."""
        words = "" if message is None else f" {message.finish()}"
        share = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
        width = shutil.get_terminal_size().columns - 1
        self._write(f"{_CLEAR}{escaped(f'portbook: {share}{words}', width)}", has_line=True)

    def hears(self, level: str) -> bool:
        """Return whether a person wants to see messages of that level."""
        return LEVELS.index(level) >= LEVELS.index(_LEAST)

    def log(self, level: str, data: Draft[JSON], logger: str | None) -> None:
        """Print a log message on a line of its own."""
        said = data.finish()
        words = escaped(said, _MOST) if isinstance(said, str) else escaped_json(json.dumps(said))[:_MOST]
        source = "" if logger is None else f" {escaped(logger)}:"
        self._write(f"{_CLEAR if self._has_line else ''}portbook: {level}:{source} {words}\n", has_line=False)

    def flush(self) -> None:
        """Remove a line of progress: what follows is the result."""
        if self._has_line:
            self._write(_CLEAR, has_line=False)

    async def room(self) -> None:
        """Let other tasks run."""
        await asyncio.sleep(0)

    def lacks(self, request: JSONObject) -> JSONObject | None:
        """Return that it cannot be asked at all."""
        return {}

    async def ask(
        self, requests: Mapping[str, JSONObject], is_usable: Callable[[str, JSONObject], bool]
    ) -> dict[str, JSONObject]:
        """Fail: nobody is asked here."""
        raise Failed(Reason.NO_ANSWER, note="asked where no client can answer")

    @property
    def answers_later(self) -> bool:
        """Return False."""
        return False

    async def end_round(self, requests: Mapping[str, JSONObject], memo: JSON) -> None:
        """Fail: there are no rounds."""
        raise Failed(Reason.NO_ANSWER, note="asked where no client can answer")

    def detach(self, message: str | None = None) -> bool:
        """Do nothing: the command waits for the result."""
        return False

    def let_go(self) -> None:
        """Do nothing: there is no stream to close."""

    def complete_elicitation(self, identifier: str) -> None:
        """Do nothing: no page is shown here."""

    def _write(self, text: str, *, has_line: bool) -> None:
        with self._writing:
            self._out.write(text)
            self._out.flush()
            self._has_line = has_line
