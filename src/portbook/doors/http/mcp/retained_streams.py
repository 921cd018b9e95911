"""How long streams are retained for clients that resume, and how many bytes they may hold."""

from __future__ import annotations

import asyncio

from portbook.doors.http.mcp.resumable_stream import EventStream
from portbook.doors.http.mcp.stream_limits import (
    KEPT_READ_S,
    KEPT_UNREAD_S,
    MAX_BYTES_OF_ALL,
    MAX_BYTES_OF_SESSION,
    MAX_STREAMS,
)

__all__ = ["RetainedStreams", "StreamBudget"]


class StreamBudget:
    """The bytes that streams of all sessions hold. Over the limit, those that ended first are dropped."""

    def __init__(self) -> None:
        self.bytes = 0
        self.ended: dict[EventStream, RetainedStreams] = {}

    @property
    def is_full(self) -> bool:
        """Return whether they are over the limit."""
        return self.bytes > MAX_BYTES_OF_ALL

    def clear(self) -> None:
        """Drop ended streams until the rest is within the limit, or none is left."""
        while self.is_full and self.ended:
            stream, retained = next(iter(self.ended.items()))
            retained.drop(stream)


class RetainedStreams:
    """The retained streams of one session."""

    def __init__(self, budget: StreamBudget) -> None:
        self._budget = budget
        self._streams: dict[str, EventStream] = {}
        self._timers: dict[EventStream, asyncio.TimerHandle] = {}
        self.bytes = 0

    @property
    def is_full(self) -> bool:
        """Return whether the streams of this session, or of all, are over their limit."""
        return self.bytes > MAX_BYTES_OF_SESSION or self._budget.is_full

    def find(self, name: str) -> EventStream | None:
        """Return the stream of this name, if it is still retained."""
        return self._streams.get(name)

    def put(self, stream: EventStream) -> None:
        """Retain a stream. If there are too many, the oldest ended one is dropped, or else the oldest."""
        if stream.name in self._streams:
            return
        if len(self._streams) >= MAX_STREAMS:
            self.drop(next((each for each in self._streams.values() if each.is_ended), self._oldest()))
        self._streams[stream.name] = stream
        stream.entrust(self)
        if stream.is_ended:
            self.finish(stream)

    def weigh(self, more: int) -> None:
        """Add to the count of bytes, and drop ended streams if it is over the limit."""
        self.bytes += more
        self._budget.bytes += more
        if more > 0 and self.is_full:
            self._budget.clear()
            for stream in [each for each in self._streams.values() if each.is_ended]:
                if self.bytes > MAX_BYTES_OF_SESSION:
                    self.drop(stream)

    def finish(self, stream: EventStream) -> None:
        """Start to expire a stream that has ended: sooner once its end was read."""
        if self._streams.get(stream.name) is not stream:
            return
        self._budget.ended[stream] = self
        if (timer := self._timers.pop(stream, None)) is not None:
            timer.cancel()
        left_s = KEPT_READ_S if stream.is_delivered else KEPT_UNREAD_S
        self._timers[stream] = stream.loop.call_later(left_s, self.drop, stream)

    def drop(self, stream: EventStream) -> None:
        """Drop a stream. Its current reader continues; no client can resume it."""
        if self._streams.get(stream.name) is stream:
            stream.expire()
            self._let_out(stream)

    def _let_out(self, stream: EventStream) -> None:
        del self._streams[stream.name]
        self._budget.ended.pop(stream, None)
        if (timer := self._timers.pop(stream, None)) is not None:
            timer.cancel()
        stream.release()

    def clear(self) -> None:
        """Drop all streams from memory; other nodes can read what they have a copy of."""
        for stream in tuple(self._streams.values()):
            self._let_out(stream)

    def _oldest(self) -> EventStream:
        # The first is the session's own, which belongs to no request and stays.
        return list(self._streams.values())[1]
