"""Tells the operator that changed files take long to load, so that nobody waits in vain."""

from __future__ import annotations

import time
from typing import Final

from portbook.cli.terminal import say

__all__ = ["SlowReload"]

# After this, an author wonders why the change is not there.
_SLOW_S: Final = 3.0


class SlowReload:
    """The reload that has just begun."""

    def __init__(self) -> None:
        self._tell_at: float | None = time.monotonic() + _SLOW_S

    def tell_once(self) -> None:
        """Tell it if it is time."""
        if self._tell_at is not None and time.monotonic() >= self._tell_at:
            self._tell_at = None
            say("the changed files are still loading; what was served before stays in force until then")
