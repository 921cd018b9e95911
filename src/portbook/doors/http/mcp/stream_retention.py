"""Where streams of a session stay for those who come back: for a while, and within limits of bytes."""

from __future__ import annotations

import asyncio
from typing import Final

from portbook.doors.http.mcp.resumable_stream import EventStream

__all__ = ["RetainedStreams", "StreamBudget"]

# What the streams of one session hold together, those of all sessions, and how many one session has.
_MAX_BYTES: Final = 8 * 1024 * 1024
_MAX_BYTES_OF_ALL: Final = 256 * 1024 * 1024
_MAX_STREAMS: Final = 64

# How long a stream stays that has ended: one that was read to its end, and one that nobody has read so far.
_READ_S: Final = 60.0
_UNREAD_S: Final = 600.0


class StreamBudget:
    """What streams of all sessions hold together. Where that is too much, those that ended first go first."""

    def __init__(self) -> None:
        self.bytes = 0
        self.ended: dict[EventStream, RetainedStreams] = {}

    @property
    def is_full(self) -> bool:
        """Return whether it is too much."""
        return self.bytes > _MAX_BYTES_OF_ALL

    def clear(self) -> None:
        """Let go of streams that have ended until there is room, or none is left."""
        while self.is_full and self.ended:
            stream, retained = next(iter(self.ended.items()))
            retained.drop(stream)


class RetainedStreams:
    """The streams of one session."""

    def __init__(self, budget: StreamBudget) -> None:
        self._budget = budget
        self._streams: dict[str, EventStream] = {}
        self._timers: dict[EventStream, asyncio.TimerHandle] = {}
        self.bytes = 0

    @property
    def is_full(self) -> bool:
        """Return whether streams hold more than they may together."""
        return self.bytes > _MAX_BYTES or self._budget.is_full

    def find(self, name: str) -> EventStream | None:
        """Return the stream of this name, if it is still there."""
        return self._streams.get(name)

    def put(self, stream: EventStream) -> None:
        """Keep a stream. The oldest makes room where there are too many, an ended one before any other."""
        if stream.name in self._streams:
            return
        if len(self._streams) >= _MAX_STREAMS:
            self.drop(next((each for each in self._streams.values() if each.is_ended), self._oldest()))
        self._streams[stream.name] = stream
        stream.entrust(self)
        if stream.is_ended:
            self.finish(stream)

    def weigh(self, more: int) -> None:
        """Count bytes that a stream holds now, or holds no longer."""
        self.bytes += more
        self._budget.bytes += more
        if more > 0 and self.is_full:
            self._budget.clear()
            for stream in [each for each in self._streams.values() if each.is_ended]:
                if self.bytes > _MAX_BYTES:
                    self.drop(stream)

    def finish(self, stream: EventStream) -> None:
        """Keep a stream that has ended for a while: a shorter one from when its end was read."""
        if self._streams.get(stream.name) is not stream:
            return
        self._budget.ended[stream] = self
        if (timer := self._timers.pop(stream, None)) is not None:
            timer.cancel()
        left_s = _READ_S if stream.is_delivered else _UNREAD_S
        self._timers[stream] = stream.loop.call_later(left_s, self.drop, stream)

    def drop(self, stream: EventStream) -> None:
        """Let go of a stream. Whoever still reads it reads what comes; nobody comes back to it."""
        if self._streams.get(stream.name) is not stream:
            return
        del self._streams[stream.name]
        self._budget.ended.pop(stream, None)
        if (timer := self._timers.pop(stream, None)) is not None:
            timer.cancel()
        stream.release()

    def clear(self) -> None:
        """Let go of all streams."""
        for stream in tuple(self._streams.values()):
            self.drop(stream)

    def _oldest(self) -> EventStream:
        # The first is the session's own, which belongs to no request: it stays.
        return list(self._streams.values())[1]
