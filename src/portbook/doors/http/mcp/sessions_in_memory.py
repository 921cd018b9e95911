"""Sessions in the memory of this process: what was agreed on, running requests, and streams."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable
from typing import Final, Protocol

from portbook.canonical import fingerprint, json_bytes
from portbook.doors.http.mcp.resumable_streams import (
    STANDALONE,
    EventStream,
    RetainedStreams,
    StreamBudget,
    StreamPosition,
    resume_position,
)
from portbook.mcp.connection import McpConnection
from portbook.mcp.messages_from_client import Key
from portbook.model import Answer

__all__ = ["LiveSession", "LiveSessions", "label_of"]

# Sessions in memory, of all callers and of one; the one that was idle longest leaves first.
_MAX_LIVE: Final = 10_000
_MAX_OF_CALLER: Final = 2_000

# A session that is idle this long leaves memory; it is loaded from the store when it is used again.
_IDLE_S: Final = 3600.0


class StreamKeeper(Protocol):
    """Stores streams, where several nodes share the store."""

    def keep(self, session: str, stream: EventStream, request: str) -> asyncio.Task[None]:
        """Store a stream of a session, by its digest; `request` is the id that it answers, as JSON.

        Return the task that ends when it is stored, or has waited long enough.
        """
        ...


class LiveSession:
    """One session, while it is in memory."""

    connection: McpConnection
    """Its MCP connection, which is made for the session and so after it."""

    def __init__(self, session_id: str, key: str | None, bound: str, budget: StreamBudget) -> None:
        """Make the session with this id, opened with `key`; `bound` identifies its caller."""
        self.id = session_id
        self.key = key
        self.bound = bound
        self.running: dict[asyncio.Task[Answer], Key | None] = {}
        self.only_waiting: set[asyncio.Task[Answer]] = set()
        """Those of them that wait for what runs without them."""
        self.is_over = False
        """Whether it has ended, and cannot be used again."""
        self.is_kept = False
        """Whether it is in the store."""
        self.saved = 0
        """The number of its last change that is stored, or being stored."""
        self.saving = 0
        self.version: object = None
        """The store's version when this session was last compared with it."""
        self.copies: StreamKeeper | None = None
        """Lets other nodes read its streams, where several share the store."""
        self.is_listened_to: Callable[[], bool] = lambda: False
        """Whether a client reads its own stream where that is no stream of this node."""
        self.digest = ""
        """The digest of its id, by which other nodes speak of it."""
        self.used = self.touched = self.looked = 0.0
        self.checked_until = float("-inf")
        """Until when it is known to be current, and the caller with `key` to be its own."""
        # Unique, so that event ids of an earlier process never match streams of this one.
        self._epoch = secrets.token_hex(4)
        self._count = 0
        self._retained = RetainedStreams(budget)
        self.standalone = EventStream(self._epoch + STANDALONE, is_deduplicated=True)
        self._retained.put(self.standalone)

    @property
    def revision_name(self) -> str:
        """Return the name of the revision that was agreed on."""
        revision = self.connection.session.revision
        return "" if revision is None else revision.name

    @property
    def primes_streams(self) -> bool:
        """Return whether its streams start with an event id, for clients to resume from."""
        revision = self.connection.session.revision
        return revision is not None and revision.primes_streams

    @property
    def is_idle(self) -> bool:
        """Return whether no request is running and no client reads its own stream."""
        return not self.running and not self.standalone.is_read and not self.is_listened_to()

    def open_stream(self) -> EventStream:
        """Return a new stream for one request."""
        self._count += 1
        return EventStream(f"{self._epoch}.{self._count}", is_primed=self.primes_streams)

    def keep_stream(self, stream: EventStream, request: Key | None) -> asyncio.Task[None] | None:
        """Retain a stream that answers `request`, for the client to resume.

        Return the task that has to end before its first event, if any: then other nodes have it, too.
        """
        if self.is_over:
            return None
        self._retained.put(stream)
        if self.copies is None:
            return None
        return self.copies.keep(self.digest, stream, json_bytes(request).decode())

    def has_alone(self, name: str) -> bool:
        """Return whether this node has a stream that others cannot read, or not yet."""
        stream = self._retained.find(name)
        return stream is not None and not stream.is_copied

    def send_reader_away(self, name: str) -> None:
        """Disconnect the reader of a stream, which is read anew at this node or a different one."""
        stream = self._retained.find(name)
        if stream is not None:
            stream.send_reader_away()

    def position_after(self, last_event: str | None) -> StreamPosition:
        """Return where a client resumes that has read up to `last_event`."""
        return resume_position(
            last_event, self.standalone, self._retained.find, is_primed=self.primes_streams
        )

    def cancel(self, key: Key) -> bool:
        """Cancel the request with this key; return whether it is running."""
        found = [task for task, its_key in self.running.items() if its_key == key]
        for task in found:
            task.cancel()
        return bool(found)

    def close_streams(self) -> None:
        """Disconnect the reader of its own stream; calls, and what they have asked the client, go on."""
        self._retained.clear()
        self.standalone.end(None)
        self.connection.unsubscribe()

    def close(self) -> None:
        """End what would wait for ever."""
        self.close_streams()
        self.connection.fail_questions()


def label_of(session_id: str) -> str:
    """Return the name of a session in records, where its id, a secret, must not appear."""
    return fingerprint(session_id)[:32]


class LiveSessions:
    """The sessions in memory, the least recently used first."""

    def __init__(self) -> None:
        self._live: dict[str, LiveSession] = {}
        self._by_digest: dict[str, LiveSession] = {}
        self._of_caller: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._live)

    def find(self, session_id: str) -> LiveSession | None:
        """Return the session with this id."""
        return self._live.get(session_id)

    def find_by_digest(self, digest: str) -> LiveSession | None:
        """Return the session whose id has this digest, where sessions are shared."""
        return self._by_digest.get(digest)

    def use(self, live: LiveSession, now: float) -> None:
        """Mark a session as used now."""
        if self._live.pop(live.id, None) is not None:
            self._live[live.id] = live
            live.used = now

    def admit(self, live: LiveSession, now: float) -> None:
        """Add a session; idle ones leave if there are too many."""
        self._let_out_idle(now)
        if self._of_caller[live.bound] >= _MAX_OF_CALLER:
            self._make_room(live.bound)
        if len(self._live) >= _MAX_LIVE:
            self._make_room(None)
        live.used = now
        self._live[live.id] = live
        if live.digest:
            self._by_digest[live.digest] = live
        self._of_caller[live.bound] += 1

    def let_out(self, live: LiveSession) -> None:
        """Remove a session from memory."""
        if self._live.pop(live.id, None) is not None:
            self._of_caller -= Counter((live.bound,))
            self._by_digest.pop(live.digest, None)
        live.close()

    def close_streams(self) -> None:
        """Disconnect the readers of the sessions' own streams."""
        for live in tuple(self._live.values()):
            live.close_streams()

    def fail_questions(self) -> None:
        """Give up what was asked of clients and is not answered."""
        for live in tuple(self._live.values()):
            live.connection.fail_questions()

    def running(self, *, are_waiting_too: bool) -> list[asyncio.Task[Answer]]:
        """Return the calls that run, whether or not their clients are connected."""
        return [
            task
            for live in self._live.values()
            for task in live.running
            if not task.done() and (are_waiting_too or task not in live.only_waiting)
        ]

    def cancel_waiting(self) -> None:
        """Cancel the calls that wait for what runs without them: their clients have left."""
        for live in tuple(self._live.values()):
            for task in tuple(live.only_waiting):
                task.cancel()

    def _let_out_idle(self, now: float) -> None:
        while self._live:
            oldest = next(iter(self._live.values()))
            if now - oldest.used < _IDLE_S:
                return
            if oldest.is_idle and oldest.is_kept:
                self.let_out(oldest)
            else:
                self.use(oldest, now)  # a client reads its stream, or it is not stored

    def _make_room(self, bound: str | None) -> None:
        """Remove the session that was idle longest, of one caller or of all."""
        for live in self._live.values():
            if live.is_idle and bound in (None, live.bound):
                self.let_out(live)
                return
