"""NDJSON framing: bytes in, lines out, in bounded memory. Pure: no I/O.

Only LF ends a line. A trailing CR is white space, which JSON ignores. Lines of only white space are not
frames. A line over the limit is reported once, as soon as the limit is exceeded, and the rest of it is
dropped as it arrives. Bytes after the last LF become a frame only when the stream ends.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

__all__ = ["MAX_FRAME_BYTES", "OVERSIZE", "Frame", "LineSplitter", "Oversize"]

# The largest message that is read, at every door. The asset specification's size guard: exactly this many
# bytes pass, one more is refused.
MAX_FRAME_BYTES: Final = 1_048_576


class Oversize(Enum):
    """Replaces a line that exceeds the limit."""

    OVERSIZE = "oversize"


OVERSIZE: Final = Oversize.OVERSIZE
Frame: TypeAlias = "bytes | Oversize"

# Pieces of a line that are kept as they are; below this, an object weighs too much beside its bytes.
_SMALL: Final = 4096


class LineSplitter:
    """Splits a stream of bytes into frames. Buffers at most one line, of at most `limit` bytes."""

    __slots__ = ("_held", "_held_bytes", "_limit", "_skipping", "_small")

    def __init__(self, limit: int = MAX_FRAME_BYTES) -> None:
        self._limit = limit
        self._held: list[bytes | memoryview] = []
        """The pieces of the line that has not ended: joined at its end, so that they are copied once."""
        self._small = bytearray()
        """Small pieces after those: many objects would take many times the memory of their bytes."""
        self._held_bytes = 0
        self._skipping = False

    def feed(self, chunk: bytes) -> list[Frame]:
        """Add bytes; return the frames that are now complete."""
        frames: list[Frame] = []
        if self._held_bytes or self._skipping:
            at = chunk.find(b"\n")
            if at < 0:
                self._hold(chunk, frames)
                return frames
            self._hold(memoryview(chunk)[:at], frames)
            self._end_line(frames)
            chunk = chunk[at + 1 :]
        elif chunk[:1] == b"{" and chunk.find(b"\n") == len(chunk) - 1 <= self._limit:
            return [chunk[:-1]]  # a client that waits for each answer sends one line at a time
        # Splitting takes twenty times as long as a search, so the part of a large line is not split.
        at = chunk.rfind(b"\n") + 1
        if at:
            *ended, _ = chunk[:at].split(b"\n")
            # One look at all instead of one at each: nearly every line is an object, and short enough.
            if at <= self._limit and chunk[:1] == b"{" and chunk.count(b"\n{", 0, at) == len(ended) - 1:
                frames += ended
                ended = ()
            for piece in ended:
                if len(piece) > self._limit:
                    frames.append(OVERSIZE)
                elif piece[:1] == b"{" or piece.strip(b" \t\r"):
                    frames.append(piece)
        if at < len(chunk):
            self._hold(chunk[at:], frames)
        return frames

    def close(self) -> list[Frame]:
        """End the stream; return the last frame, if its line break is missing."""
        frames: list[Frame] = []
        self._end_line(frames)
        return frames

    def _hold(self, piece: bytes | memoryview, frames: list[Frame]) -> None:
        if self._skipping:
            return
        self._held_bytes += len(piece)
        if self._held_bytes > self._limit:
            frames.append(OVERSIZE)
            self._drop()
            self._skipping = True
        elif len(piece) < _SMALL:
            self._small += piece
        else:
            self._gather()
            self._held.append(piece)

    def _gather(self) -> None:
        if self._small:
            self._held.append(bytes(self._small))
            self._small.clear()

    def _end_line(self, frames: list[Frame]) -> None:
        self._gather()
        line = b"".join(self._held)
        self._drop()
        self._skipping = False
        if line.strip(b" \t\r"):
            frames.append(line)

    def _drop(self) -> None:
        self._held.clear()
        self._small.clear()
        self._held_bytes = 0
