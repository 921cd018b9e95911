"""Who hears of changes: lists that are others now, and resources that hold something else."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from portbook.model import Kind
from portbook.tools.toolset import Changed

__all__ = ["METHODS", "Notices"]

# The notification that tells of a changed list.
METHODS: Final[dict[Kind, str]] = {
    "tool": "notifications/tools/list_changed",
    "prompt": "notifications/prompts/list_changed",
    "resource": "notifications/resources/list_changed",
}


class Notices:
    """Passes changes on to everybody who listens. Safe to use from any thread."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[Changed], None]] = []
        self._closers: list[Callable[[], None]] = []
        self._changing = threading.Lock()
        self.is_closed = False

    def listen(self, hear: Callable[[Changed], None]) -> Callable[[], None]:
        """Have `hear` told of every change; return what ends that."""
        with self._changing:
            self._listeners.append(hear)
        return lambda: self._forget(hear)

    def on_close(self, close: Callable[[], None]) -> Callable[[], None]:
        """Have `close` called when the server ends; return what takes that back."""
        if self.is_closed:
            close()
        self._closers.append(close)
        return lambda: self._closers.remove(close) if close in self._closers else None

    def publish(self, changed: Changed) -> None:
        """Tell everybody."""
        for hear in tuple(self._listeners):
            hear(changed)

    def close(self) -> None:
        """Let everybody who listens go."""
        self.is_closed = True
        for close in tuple(self._closers):
            close()

    def _forget(self, hear: Callable[[Changed], None]) -> None:
        with self._changing:
            if hear in self._listeners:
                self._listeners.remove(hear)
