"""NDJSON framing without I/O: bytes in, lines out, in bounded memory.

Only LF ends a line. A trailing CR is white space, which JSON ignores. Lines of nothing but white space are
no frames. A line over the limit is reported once, as soon as it is known to be too long, and the rest of it
is thrown away as it arrives. What stands after the last LF is a frame only when the stream ends.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

__all__ = ["MAX_FRAME_BYTES", "OVERSIZE", "Frame", "LineSplitter", "Oversize"]

# The asset specification's size guard: exactly this many bytes pass, one more is refused.
MAX_FRAME_BYTES: Final = 1_048_576


class Oversize(Enum):
    """Stands in the place of a line that was too long to keep."""

    OVERSIZE = "oversize"


OVERSIZE: Final = Oversize.OVERSIZE
Frame: TypeAlias = "bytes | Oversize"


class LineSplitter:
    """Cuts a stream of bytes into frames. Holds at most one line, of at most `limit` bytes."""

    __slots__ = ("_held", "_limit", "_parts", "_skipping")

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._limit = limit
        self._parts: list[bytes] = []  # joined once: appending to bytes would copy them each time
        self._held = 0
        self._skipping = False

    def feed(self, chunk: bytes) -> list[Frame]:
        """Take the next bytes; return the frames that are complete now."""
        *ended, tail = chunk.split(b"\n")
        frames: list[Frame] = []
        for piece in ended:
            if self._parts or self._skipping:
                self._hold(piece, frames)
                self._end_line(frames)
            elif len(piece) > self._limit:
                frames.append(OVERSIZE)
            elif piece[:1] == b"{" or piece.strip(b" \t\r"):
                frames.append(piece)
        if tail:
            self._hold(tail, frames)
        return frames

    def close(self) -> list[Frame]:
        """Return what the stream ended on, if that is a frame."""
        frames: list[Frame] = []
        self._end_line(frames)
        return frames

    def _hold(self, piece: bytes, frames: list[Frame]) -> None:
        if self._skipping:
            return
        self._held += len(piece)
        if self._held > self._limit:
            frames.append(OVERSIZE)
            self._skipping = True
            self._parts.clear()
        else:
            self._parts.append(piece)

    def _end_line(self, frames: list[Frame]) -> None:
        line = b"".join(self._parts)
        self._parts.clear()
        self._held = 0
        self._skipping = False
        if line.strip(b" \t\r"):
            frames.append(line)
