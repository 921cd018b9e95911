"""What a server writes to standard error, as lines for the operator, bounded. Pure: no I/O."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from portbook.escaping import escaped

__all__ = ["StderrLines"]

_MAX_LINE: Final = 1000
# A start writes a few dozen lines; beyond that a server that complains without end says the same.
_MAX_PER_SECOND: Final = 50
_REMEMBERED: Final = 5


class StderrLines:
    """Passes lines on, counts those that are too many, and remembers the last few."""

    def __init__(
        self, tell: Callable[[str], None], now: Callable[[], float], redact: Callable[[str], str]
    ) -> None:
        """Pass lines on to `tell`; a line is redacted before it is kept anywhere."""
        self._tell = tell
        self._redact = redact
        self._now = now
        self._held = b""
        self._is_cut = False
        self._second = 0
        self._told = 0
        self._left_out = 0
        self._last: deque[str] = deque(maxlen=_REMEMBERED)

    @property
    def last(self) -> str | None:
        """Return the latest line that is not empty."""
        return self._last[-1] if self._last else None

    def feed(self, data: bytes) -> None:
        """Add what was written."""
        *lines, tail = (self._held + data).split(b"\n")
        for line in lines:
            if not self._is_cut:
                self._pass_on(line)
            self._is_cut = False
        self._held = b"" if self._is_cut else tail
        if len(self._held) > _MAX_LINE:  # of a longer line the rest is dropped
            self._pass_on(self._held)
            self._held, self._is_cut = b"", True

    def close(self) -> None:
        """End the last line."""
        if self._held and not self._is_cut:
            self._pass_on(self._held)
        self._held = b""
        self._confess()

    def _pass_on(self, line: bytes) -> None:
        text = escaped(self._redact(line.decode("utf-8", "replace").strip()), _MAX_LINE)
        if not text:
            return
        self._last.append(text)
        second = int(self._now())
        if second != self._second:
            self._confess()
            self._second, self._told = second, 0
        self._told += 1
        if self._told <= _MAX_PER_SECOND:
            self._tell(text)
        else:
            self._left_out += 1

    def _confess(self) -> None:
        if self._left_out:
            self._tell(f"[{self._left_out} lines were left out]")
            self._left_out = 0
