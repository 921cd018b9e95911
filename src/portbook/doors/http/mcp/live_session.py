"""Sessions as one process has them: what was agreed on, what is under way, and their streams."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from typing import Final

from portbook.canonical import fingerprint
from portbook.doors.http.mcp.resumable_stream import EventStream, StreamPosition
from portbook.doors.http.mcp.stream_retention import RetainedStreams, StreamBudget
from portbook.mcp.connection import Key, McpConnection
from portbook.model import Answer

__all__ = ["LiveSession", "LiveSessions"]

# Sessions in memory, of all callers and of one: those make room that were not used for the longest time.
_MAX_LIVE: Final = 10_000
_MAX_OF_CALLER: Final = 2_000

# A session that is not used for so long leaves memory; it comes back from the store.
_IDLE_S: Final = 3600.0

# How the name of the stream ends that belongs to no request.
_STANDALONE: Final = ".0"


class LiveSession:
    """One session, as long as it is in memory."""

    def __init__(self, session_id: str, key: str | None, bound: str, budget: StreamBudget) -> None:
        """Stand for the session of this name, begun with `key` by the caller that is `bound` to it."""
        self.id = session_id
        self.key = key
        self.bound = bound
        self.label = fingerprint(session_id)[:32]
        """What it is called where its name, which is a secret, must not be."""
        self.running: dict[asyncio.Task[Answer], Key | None] = {}
        self.is_over = False
        """Whether it was ended for good."""
        self.is_kept = False
        """Whether the store has it."""
        self.saved = 0
        """Which of its changes are in the store, or on their way there."""
        self.saving = 0
        self.version: object = None
        """What the store's version was when it was last looked at."""
        self.used = self.touched = 0.0
        # Streams of another process, or of this one before it forgot the session, have other names.
        self._epoch = secrets.token_hex(4)
        self._count = 0
        self._retained = RetainedStreams(budget)
        self.standalone = EventStream(self._epoch + _STANDALONE, is_deduplicated=True)
        self._retained.put(self.standalone)
        self._connection: McpConnection | None = None

    @property
    def connection(self) -> McpConnection:
        """Return what is said in it."""
        assert self._connection is not None
        return self._connection

    @connection.setter
    def connection(self, connection: McpConnection) -> None:
        self._connection = connection

    @property
    def revision_name(self) -> str:
        """Return the revision that was agreed on."""
        revision = self.connection.session.revision
        return "" if revision is None else revision.name

    @property
    def primes_streams(self) -> bool:
        """Return whether its streams begin with an id to come back with."""
        revision = self.connection.session.revision
        return revision is not None and revision.primes_streams

    @property
    def is_idle(self) -> bool:
        """Return whether nothing is under way, and nobody listens."""
        return not self.running and not self.standalone.is_read

    def open_stream(self) -> EventStream:
        """Return a stream for one request."""
        self._count += 1
        return EventStream(f"{self._epoch}.{self._count}", is_primed=self.primes_streams)

    def keep_stream(self, stream: EventStream) -> None:
        """Keep a stream that somebody may come back to."""
        if not self.is_over:
            self._retained.put(stream)

    def position_after(self, last_event: str | None) -> StreamPosition:
        """Return where to read on, for somebody who has read up to `last_event`.

        1. No event: the stream of what belongs to no request, after what was read of it.
        2. An event of a stream that is there: that stream, after the event.
        3. An event of the stream of what belongs to no request, in an earlier process: as without one.
        4. Any other: that stream too, as a guest, for its own reader may be there and must not be pushed out.
        """
        fresh = StreamPosition(self.standalone, None, is_primed=self.primes_streams)
        if last_event is None:
            return fresh
        name, _, number = last_event.rpartition("-")
        stream = self._retained.find(name)
        if stream is not None and number.isascii() and number.isdigit() and len(number) <= 12:
            return StreamPosition(stream, min(int(number), stream.end_position))
        if name.endswith(_STANDALONE):
            return fresh
        return StreamPosition(self.standalone, None, is_guest=True)

    def cancel(self, key: Key) -> None:
        """Take back a request that is under way."""
        for task, its_key in self.running.items():
            if its_key == key:
                task.cancel()

    def close(self) -> None:
        """End what would wait for ever."""
        self._retained.clear()
        self.standalone.end(None)
        self.connection.close()


class LiveSessions:
    """The sessions in memory, in the order in which they were last used."""

    def __init__(self) -> None:
        self._live: dict[str, LiveSession] = {}
        self._of_caller: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._live)

    def find(self, session_id: str) -> LiveSession | None:
        """Return the session of this name."""
        return self._live.get(session_id)

    def use(self, live: LiveSession, now: float) -> None:
        """Note that a session is used."""
        if self._live.pop(live.id, None) is not None:
            self._live[live.id] = live
            live.used = now

    def admit(self, live: LiveSession, now: float) -> None:
        """Take a session in; others make room."""
        self._let_out_idle(now)
        if self._of_caller[live.bound] >= _MAX_OF_CALLER:
            self._make_room(live.bound)
        if len(self._live) >= _MAX_LIVE:
            self._make_room(None)
        live.used = now
        self._live[live.id] = live
        self._of_caller[live.bound] += 1

    def let_out(self, live: LiveSession) -> None:
        """Let a session leave memory."""
        if self._live.pop(live.id, None) is not None:
            self._of_caller -= Counter((live.bound,))
        live.close()

    def close(self) -> None:
        """End what would wait for ever."""
        for live in tuple(self._live.values()):
            live.close()

    def _let_out_idle(self, now: float) -> None:
        while self._live:
            oldest = next(iter(self._live.values()))
            if now - oldest.used < _IDLE_S:
                return
            if oldest.is_idle and oldest.is_kept:
                self.let_out(oldest)
            else:
                self.use(oldest, now)  # by whoever listens

    def _make_room(self, bound: str | None) -> None:
        """Let the session leave that was not used for the longest time, of one caller or of all."""
        for live in self._live.values():
            if live.is_idle and bound in (None, live.bound):
                self.let_out(live)
                return
