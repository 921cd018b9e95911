"""`ReportsBetweenRounds`: what a server reports while nobody listens, because its caller is asked something.

A client that answers with its next request hears nothing until that request. The newest reports are kept for
it, within limits: of progress the newest says all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from portbook.canonical import json_bytes
from portbook.model import JSONObject

__all__ = ["ReportsBetweenRounds"]

# As much as waits for a client that reads slowly.
_MAX_REPORTS: Final = 256
_MAX_BYTES: Final = 64 * 1024


class ReportsBetweenRounds:
    """The reports of one call, oldest first."""

    __slots__ = ("_bytes", "_waiting")

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, Callable[[JSONObject], None], JSONObject]] = deque()
        self._bytes = 0

    def put(self, tell: Callable[[JSONObject], None], params: JSONObject) -> None:
        """Keep `params` for `tell`, and drop the oldest reports if there are too many."""
        size = len(json_bytes(params))
        self._waiting.append((size, tell, params))
        self._bytes += size
        while len(self._waiting) > _MAX_REPORTS or self._bytes > _MAX_BYTES:
            self._bytes -= self._waiting.popleft()[0]

    def tell(self) -> None:
        """Pass all of them on."""
        while self._waiting:
            _, tell, params = self._waiting.popleft()
            tell(params)
