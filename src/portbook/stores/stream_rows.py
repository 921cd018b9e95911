"""`StreamRows`: streams of MCP sessions and their events, for clients that resume at a different process.

A stream belongs to the node that fills it. Its row says who reads it now: the latest reader is the only one.
A session's own stream, named "0", has no events here: its events are messages to all nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from portbook.clock import Clock, later
from portbook.stores.connection_clock_and_errors import Connection, in_turns, prune_all
from portbook.stores.mailbox import DraftMail, put_mail
from portbook.text.named_tuple import NamedTuple

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort

__all__ = ["OWN_STREAM", "OwnStreamRow", "StreamChange", "StreamEvents", "StreamRow", "StreamRows"]

# The name of the stream of a session that belongs to no request.
OWN_STREAM: Final = "0"

# How long a stream is kept after its last change: as in memory, one that nobody has read.
_KEEP_S: Final = 600
_PAGE: Final = 64
_PRUNED_AT_ONCE: Final = 1000


class StreamRow(NamedTuple):
    """What is known of a stream."""

    node: str
    request: str
    """The id of the request that it answers, as JSON."""
    reader: str
    is_ended: bool


class StreamEvents(NamedTuple):
    """A stream, and the events that come next."""

    row: StreamRow
    events: list[tuple[int, str]]
    is_more: bool


class OwnStreamRow(NamedTuple):
    """How far a session's own stream was read before it got a new reader."""

    position: int
    """The number up to which a reader that has left had read it."""
    last: int
    """The number of the newest message to all."""


class StreamChange(NamedTuple):
    """What has changed in a stream since it was written last."""

    session: str
    name: str
    added: Sequence[tuple[int, str]]
    dropped: Sequence[int]
    is_ended: bool
    is_expired: bool = False


class StreamRows:
    """The streams of a store."""

    def __init__(self, store: StorePort, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def begin(self, session: str, name: str, node: str, request: str) -> None:
        """Store a new stream without events.

        Raises `StoreError` where that cannot be written.
        """
        row = (session, name, node, request, self._clock.now())
        work = self._store.submit(
            lambda connection: connection.execute(
                "INSERT INTO stream (session, name, node, request, reader, position, changed_at) "
                "VALUES (?, ?, ?, ?, '', 0, ?) ON CONFLICT (session, name) DO NOTHING",
                row,
            )
        )
        await asyncio.wrap_future(work)

    async def change(self, changes: Sequence[StreamChange]) -> None:
        """Store what has changed in streams, all in one transaction.

        Raises `StoreError` where that cannot be written.
        """
        now = self._clock.now()

        def write(connection: Connection) -> None:
            for each in changes:
                _write_change(connection, each, now)

        await asyncio.wrap_future(self._store.submit(write))

    async def after(self, session: str, name: str, position: int) -> StreamEvents | None:
        """Return a stream and its events after a position; None where it is not stored.

        Raises `StoreError` where the store cannot be read.
        """

        def find(connection: Connection) -> StreamEvents | None:
            # The row first: events that are added between the two are read with the next page.
            found = connection.execute(
                "SELECT node, request, reader, ended_at FROM stream WHERE session = ? AND name = ?",
                (session, name),
            ).fetchone()
            if found is None:
                return None
            events = connection.execute(
                "SELECT position, message FROM stream_event "
                "WHERE session = ? AND stream = ? AND position > ? ORDER BY position LIMIT ?",
                (session, name, position, _PAGE),
            )
            rows = [(int(each[0]), str(each[1])) for each in events]
            row = StreamRow(str(found[0]), str(found[1]), str(found[2]), found[3] is not None)
            return StreamEvents(row, rows, len(rows) == _PAGE)

        return await self._store.fetch(find, None)

    async def read_by(self, session: str, name: str, reader: str, mail: Sequence[DraftMail] = ()) -> None:
        """Make `reader` the only reader of a stream, and tell that with `mail`.

        Raises `StoreError` where that cannot be written.
        """
        row, now = (reader, session, name), self._clock.now()

        def write(connection: Connection) -> None:
            connection.execute("UPDATE stream SET reader = ? WHERE session = ? AND name = ?", row)
            if mail:
                put_mail(connection, now, mail)

        await asyncio.wrap_future(self._store.submit(write))

    async def end(self, session: str, name: str, message: str, after: int) -> None:
        """End a stream with a last message, beyond the position `after`, unless it has ended.

        Raises `StoreError` where that cannot be written.
        """
        now = self._clock.now()

        def write(connection: Connection) -> None:
            ended = connection.execute(
                "UPDATE stream SET ended_at = ?, changed_at = ? "
                "WHERE session = ? AND name = ? AND ended_at IS NULL RETURNING name",
                (now, now, session, name),
            ).fetchone()
            if ended is None:
                return
            last = connection.execute(
                "SELECT max(position) FROM stream_event WHERE session = ? AND stream = ?", (session, name)
            ).fetchone()
            position = max(after, 0 if last is None or last[0] is None else int(last[0])) + 1
            connection.execute(
                "INSERT INTO stream_event (session, stream, position, message) VALUES (?, ?, ?, ?)",
                (session, name, position, message),
            )

        await asyncio.wrap_future(self._store.submit(write))

    async def open_own(self, session: str, reader: str, node: str, mail: DraftMail) -> OwnStreamRow:
        """Make `reader` at `node` the only reader of a session's own stream; tell all nodes with `mail`.

        Return how far it was read before. Raises `StoreError` where that cannot be written.
        """
        now = self._clock.now()

        def write(connection: Connection) -> OwnStreamRow:
            # First, for that keeps other readers waiting that come at the same time.
            last = put_mail(connection, now, (mail,)) - 1
            found = connection.execute(
                "SELECT position FROM stream WHERE session = ? AND name = ?",
                (session, OWN_STREAM),
            ).fetchone()
            connection.execute(
                "INSERT INTO stream (session, name, node, request, reader, position, changed_at) "
                "VALUES (?, ?, ?, '', ?, ?, ?) ON CONFLICT (session, name) DO UPDATE "
                "SET node = excluded.node, reader = excluded.reader, changed_at = excluded.changed_at",
                (session, OWN_STREAM, node, reader, last, now),
            )
            if found is None:
                return OwnStreamRow(last, last)
            return OwnStreamRow(int(found[0]), last)

        return await asyncio.wrap_future(self._store.submit(write))

    async def begin_own(self, session: str) -> None:
        """Note where a session's own stream begins: what happened before it is not in it.

        Raises `StoreError` where that cannot be written.
        """
        now = self._clock.now()

        def write(connection: Connection) -> None:
            counted = connection.execute("SELECT value FROM mail_counter WHERE name = 'mail'").fetchone()
            connection.execute(
                "INSERT INTO stream (session, name, node, request, reader, position, changed_at) "
                "VALUES (?, ?, '', '', '', ?, ?) ON CONFLICT (session, name) DO NOTHING",
                (session, OWN_STREAM, 0 if counted is None else int(counted[0]), now),
            )

        await asyncio.wrap_future(self._store.submit(write))

    def leave_own(self, session: str, reader: str, position: int) -> None:
        """Note up to where a reader has read a session's own stream, unless it has a new reader.

        Without waiting for the write; a lost write is acceptable.

        Raises `StoreError` where the store cannot be opened.
        """
        row = (position, self._clock.now(), session, OWN_STREAM, reader)
        self._store.submit(
            lambda connection: connection.execute(
                "UPDATE stream SET reader = '', position = ?, changed_at = ? "
                "WHERE session = ? AND name = ? AND reader = ?",
                row,
            )
        )

    async def nodes(self) -> set[str]:
        """Return the nodes that fill streams which have not ended.

        Raises `StoreError` where the store cannot be read.
        """

        def find(connection: Connection) -> set[str]:
            found = connection.execute("SELECT DISTINCT node FROM stream WHERE ended_at IS NULL")
            return {str(each[0]) for each in found}

        nothing: set[str] = set()
        return await self._store.fetch(find, nothing)

    async def prune(self, gone: Sequence[str]) -> None:
        """Delete streams that ended a while ago, or that a node did not end that is `gone`.

        Raises `StoreError` where that cannot be written.
        """
        since = later(self._clock.now(), -_KEEP_S)

        def write(connection: Connection) -> int:
            # Long calls of nodes that live are not among those that are counted.
            marks = ", ".join("?" * len(gone))
            is_left = f"(ended_at IS NOT NULL OR node IN ({marks}))" if gone else "ended_at IS NOT NULL"
            old = connection.execute(
                f"SELECT session, name FROM stream WHERE changed_at < ? AND name <> ? AND {is_left} "  # noqa: S608 - marks
                "ORDER BY changed_at LIMIT ?",
                (since, OWN_STREAM, *gone, _PRUNED_AT_ONCE),
            )
            found = list(old)
            for session, name in found:
                _delete(connection, str(session), str(name))
            return len(found)

        await in_turns(self._store, write, _PRUNED_AT_ONCE)
        # A session's own stream lasts as long as the session.
        is_ended = "NOT EXISTS (SELECT 1 FROM session WHERE digest = stream.session)"
        ended = f"name = ? AND changed_at < ? AND {is_ended}"
        await prune_all(self._store, "stream", "session, name", ended, (OWN_STREAM, since))


def _write_change(connection: Connection, change: StreamChange, now: str) -> None:
    session, name = change.session, change.name
    if change.is_expired:
        _delete(connection, session, name)
        return
    if change.is_ended:
        is_open = connection.execute(
            "UPDATE stream SET changed_at = ?, ended_at = ? "
            "WHERE session = ? AND name = ? AND ended_at IS NULL RETURNING name",
            (now, now, session, name),
        ).fetchone()
    else:
        is_open = connection.execute(
            "UPDATE stream SET changed_at = ? WHERE session = ? AND name = ? AND ended_at IS NULL "
            "RETURNING name",
            (now, session, name),
        ).fetchone()
    if is_open is None:  # its session has ended, or a different node has ended it
        return
    for position, message in change.added:
        connection.execute(
            "INSERT INTO stream_event (session, stream, position, message) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (session, stream, position) DO NOTHING",
            (session, name, position, message),
        )
    for position in change.dropped:
        connection.execute(
            "DELETE FROM stream_event WHERE session = ? AND stream = ? AND position = ?",
            (session, name, position),
        )


def _delete(connection: Connection, session: str, name: str) -> None:
    connection.execute("DELETE FROM stream_event WHERE session = ? AND stream = ?", (session, name))
    connection.execute("DELETE FROM stream WHERE session = ? AND name = ?", (session, name))
