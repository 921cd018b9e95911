"""`RepeatedWarnings`: of a warning that every worker has, the operator reads one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

__all__ = ["RepeatedWarnings"]

# Workers that find the same thing find it within this time.
_TOGETHER_S: Final = 60.0

# How many texts are remembered; the one that was heard longest ago is forgotten first.
_MAX_TEXTS: Final = 1000


class RepeatedWarnings:
    """The warnings of the last minute, and which worker gave each of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._heard: dict[str, tuple[int, float]] = {}

    def is_new(self, text: str, worker: int) -> bool:
        """Return whether a warning is to be told: no different worker has just given the same one."""
        now = self._clock()
        first = self._heard.get(text)
        if first is not None and first[0] != worker and now - first[1] < _TOGETHER_S:
            return False
        self._heard.pop(text, None)
        self._heard[text] = (worker, now)
        if len(self._heard) > _MAX_TEXTS:
            del self._heard[next(iter(self._heard))]
        return True
