"""Streams that clients read at any of the nodes that share a store.

`StoredStream` is a stream as the store has it, read by a client that resumes, at whichever node. It goes on
while the node lives that fills it. If that node is gone, the outcome of its calls is unknown, and the stream
ends with that.

`position_at_any_node` finds the stream, and the place in it, at which a client resumes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from portbook.doors.http.mcp.kept_events_and_stream_limits import KEEP_ALIVE, RETRY_MS, SILENCE_S
from portbook.doors.http.mcp.resumable_streams import STANDALONE, EventStream, StreamPosition, Write
from portbook.errors import Failed, Reason
from portbook.mcp.connection import McpConnection
from portbook.mcp.list_and_resource_changes import ChangeNotification
from portbook.mcp.node_mail_and_relay import CHANGE, NOTICE, Node, change_of
from portbook.stores.connection_clock_and_errors import StoreError, UnknownOutcome
from portbook.stores.mailbox import DraftMail, Mail
from portbook.stores.stream_rows import OWN_STREAM, OwnStreamRow, StreamChange, StreamRow, StreamRows
from portbook.wire.jsonrpc import mcp_refusal_frame
from portbook.wire.sse import event, priming

if TYPE_CHECKING:
    from portbook.doors.http.mcp.sessions_in_memory import LiveSession

__all__ = [
    "LISTENING",
    "READ",
    "OwnStream",
    "OwnStreams",
    "StoredStream",
    "StreamCopies",
    "position_at_any_node",
]

# A stream of a node is read elsewhere.
READ: Final = "read"

# How often it is checked whether the node that fills a stream lives.
_LOOK_S: Final = 1.0


class StoredStream:
    """One stream of a session, in the store."""

    def __init__(self, rows: StreamRows, node: Node, session: str, name: str, revision: str) -> None:
        """Read the stream with this name, of the session with this digest, which speaks `revision`."""
        self._rows = rows
        self._node = node
        self._session = session
        self._name = name
        self._revision = revision
        self._reader = os.urandom(8).hex()

    @property
    def is_read(self) -> bool:
        """Return False: a new reader takes the place of one that it may have."""
        return False

    async def enter(self, row: StreamRow) -> None:
        """Become its only reader, at all nodes; `row` is the stream's.

        Raises `StoreError` where that cannot be written.
        """
        told = () if row.is_ended else (DraftMail(READ, self._name, self._session, row.node),)
        await self._rows.read_by(self._session, self._name, self._reader, told)
        self._node.wake()

    async def copy_to(
        self, write: Write, position: StreamPosition, may_read: Callable[[], bool] = lambda: True
    ) -> None:
        """Write events from `position` on, until the stream ends or gets a new reader."""
        try:
            await self._copy(write, position.after or 0, may_read)
        except StoreError:
            return  # the client resumes, and the store may be back by then

    async def _copy(self, write: Write, at: int, may_read: Callable[[], bool]) -> None:
        loop = asyncio.get_running_loop()
        spoke, is_alive = loop.time(), True
        while may_read() and not self._node.is_closing:
            turn = self._node.store_bell.turn
            found = await self._rows.after(self._session, self._name, at)
            if found is None or found.row.reader != self._reader:
                return
            for at, message in found.events:
                await write(event(message.encode(), f"{self._name}-{at}"))
                spoke = loop.time()
            if found.events:
                continue
            if found.row.is_ended:
                return
            if not is_alive:  # and what it wrote last was seen since that is known
                await self._rows.end(self._session, self._name, self._lost(found.row), at)
                continue
            is_alive = await self._node.lives(found.row.node)
            if (
                is_alive
                and not await self._node.store_bell.wait(turn, _LOOK_S)
                and loop.time() - spoke >= SILENCE_S
            ):
                await write(KEEP_ALIVE)
                spoke = loop.time()

    def _lost(self, row: StreamRow) -> str:
        """Return the answer to a request whose node is gone."""
        lost = Failed(Reason.OUTCOME_UNKNOWN)
        return mcp_refusal_frame(lost, row.request.encode(), self._revision).decode()


# `StreamCopies`: writes the streams of this node's calls to the store, where other nodes read them.
#
# Reports are written together, a few times a second; questions and answers at once. One transaction has what
# all streams have to write. Nobody waits for it: the client that is connected here reads from memory.

# How long reports wait for each other, and a failed write for the next attempt.
_GATHER_S: Final = 0.05
_RETRY_S: Final = 1.0

# How long a stream waits to be stored before its first event; then it can be resumed at this node alone.
_PATIENCE_S: Final = 2.0


class _Copy:
    """What is still to be written of one stream."""

    def __init__(self, copies: StreamCopies, session: str, name: str) -> None:
        self._copies = copies
        self._session = session
        self._name = name
        self._added: dict[int, str] = {}
        self._dropped: list[int] = []
        self._is_ended = self._is_expired = False

    def add(self, position: int, message: bytes, *, is_vital: bool) -> None:
        """Add a message."""
        self._added[position] = message.decode()
        self._copies.schedule(self, 0.0 if is_vital else _GATHER_S)

    def drop(self, position: int) -> None:
        """Drop a message, which may not have been written yet."""
        if self._added.pop(position, None) is None:
            self._dropped.append(position)
        self._copies.schedule(self, _GATHER_S)

    def end(self, *, is_answered: bool) -> None:
        """End it. Where this process ends before there is an answer, other nodes see to its end."""
        if is_answered or not self._copies.is_closing:
            self._is_ended = True
            self._copies.schedule(self, 0.0)

    def expire(self) -> None:
        """Delete it: no client can resume it."""
        self._is_expired = True
        self._added, self._dropped = {}, []
        self._copies.schedule(self, _GATHER_S)

    def take(self) -> StreamChange:
        """Return what is to be written, and begin anew."""
        change = StreamChange(
            self._session,
            self._name,
            tuple(self._added.items()),
            tuple(self._dropped),
            self._is_ended,
            self._is_expired,
        )
        self._added, self._dropped = {}, []
        return change

    def put_back(self, change: StreamChange) -> None:
        """Take back what could not be written."""
        self._added = dict(change.added) | self._added
        self._dropped = [*change.dropped, *self._dropped]


class StreamCopies:
    """The streams of this node that other nodes can read."""

    def __init__(self, rows: StreamRows, node: Node) -> None:
        """Write to `rows` in the name of `node`."""
        self._rows = rows
        self._node = node
        self._changed: dict[_Copy, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._writing: asyncio.Task[None] | None = None
        self._keeping: set[asyncio.Task[None]] = set()
        self.is_closing = False
        """Whether this process is about to end."""

    def keep(self, session: str, stream: EventStream, request: str) -> asyncio.Task[None]:
        """Store a stream of a session, by its digest; `request` is the id that it answers, as JSON.

        Return the task that ends when it is stored, or has waited long enough; then it is stored later.
        """
        loop = asyncio.get_running_loop()
        keeping = loop.create_task(self._keep(session, stream, request))
        self._keeping.add(keeping)
        keeping.add_done_callback(self._keeping.discard)
        return loop.create_task(_wait_for(keeping))

    async def _keep(self, session: str, stream: EventStream, request: str) -> None:
        try:
            await self._rows.begin(session, stream.name, self._node.name, request)
        except UnknownOutcome:
            pass  # if its row is there, it has to be filled
        except StoreError:
            return
        stream.copy_into(_Copy(self, session, stream.name))

    def schedule(self, copy: _Copy, delay_s: float) -> None:
        """Write what has changed in a copy, within a time."""
        self._changed[copy] = None
        if self._writing is not None:
            return  # which goes on until nothing is left
        loop = asyncio.get_running_loop()
        due = loop.time() + delay_s
        if self._timer is not None and self._due <= due:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._due, self._timer = due, loop.call_later(delay_s, self._begin)

    async def flush(self) -> None:
        """Write what is left: this process ends."""
        if self._keeping:
            await asyncio.wait(self._keeping, timeout=_PATIENCE_S)
        if self._timer is not None:
            self._begin()
        if self._writing is not None:
            await asyncio.wait((self._writing,), timeout=_PATIENCE_S)

    def _begin(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._writing = asyncio.get_running_loop().create_task(self._write())
        self._writing.add_done_callback(self._ended)

    def _ended(self, _: asyncio.Task[None]) -> None:
        self._writing = None
        if self._changed:
            self.schedule(next(iter(self._changed)), _GATHER_S)

    async def _write(self) -> None:
        while self._changed:
            copies, self._changed = list(self._changed), {}
            changes = [copy.take() for copy in copies]
            try:
                await self._rows.change(changes)
            except StoreError:
                for copy, change in zip(copies, changes, strict=True):
                    copy.put_back(change)
                self._changed = dict.fromkeys(copies) | self._changed
                await asyncio.sleep(_RETRY_S)
            else:
                self._node.wake()
                if self._changed:
                    await asyncio.sleep(_GATHER_S)  # others may have more to write by then


async def _wait_for(keeping: asyncio.Task[None]) -> None:
    await asyncio.wait((keeping,), timeout=_PATIENCE_S)


# `OwnStream`: what belongs to no request of a session, where several nodes share the store.
#
# It is what all nodes are told, as far as it is for this session: the id of an event is the number of the
# message. So nothing is kept for sessions to which nobody listens, and a client resumes at any node.

# A client listens to the own stream of its session at a node.
LISTENING: Final = "listening"

# The changes of which notifications are kept.
_MAX_KEPT: Final = 256


class OwnStreams:
    """The own streams of all sessions, as this node sees them."""

    def __init__(self, rows: StreamRows, node: Node) -> None:
        self._rows = rows
        self._node = node
        self._readers: dict[str, tuple[str, int]] = {}
        """The reader at this node, and since which message, by the digest of the session."""
        self._changes: dict[int, ChangeNotification] = {}
        node.on(LISTENING, self._give_way)

    @property
    def node(self) -> Node:
        """Return this node."""
        return self._node

    @property
    def rows(self) -> StreamRows:
        """Return the streams in the store."""
        return self._rows

    def is_read(self, session: str) -> bool:
        """Return whether a client reads the stream of a session at this node."""
        return session in self._readers

    def is_reader(self, session: str, reader: str) -> bool:
        """Return whether this is the reader of a session's stream."""
        return self._readers.get(session, ("", 0))[0] == reader

    async def enter(self, session: str, reader: str) -> OwnStreamRow:
        """Make this the only reader of a session's stream, at all nodes.

        Raises `StoreError` where that cannot be stored.
        """
        told = DraftMail(LISTENING, reader, session)
        before = await self._rows.open_own(session, reader, self._node.name, told)
        mine = before.last + 1
        if self._node.at > mine:  # a newer reader may have been told of before this one is known here
            found = await self._rows.after(session, OWN_STREAM, 0)
            if found is None or found.row.reader != reader:
                return before
        self._readers[session] = reader, mine
        self._node.wake()
        return before

    def leave(self, session: str, reader: str, position: int) -> None:
        """Note that a reader has left, and up to where it has read."""
        if self.is_reader(session, reader):
            del self._readers[session]
        with contextlib.suppress(StoreError):  # the next reader then begins earlier than it need to
            self._rows.leave_own(session, reader, position)

    def change(self, mail: Mail) -> ChangeNotification:
        """Return the notification of a change, made once for all sessions."""
        found = self._changes.get(mail.sequence)
        if found is None:
            found = self._changes[mail.sequence] = ChangeNotification(change_of(mail))
            if len(self._changes) > _MAX_KEPT:
                del self._changes[next(iter(self._changes))]
        return found

    def close(self) -> None:
        """Send all readers away: this process ends, and they can resume at a different one."""
        self._readers.clear()
        self._node.mail_bell.ring()

    async def _give_way(self, mail: Mail) -> None:
        """Send a reader away that a newer one has replaced."""
        reader = self._readers.get(mail.session)
        if reader is not None and mail.body != reader[0] and mail.sequence > reader[1]:
            del self._readers[mail.session]


class OwnStream:
    """The own stream of one session."""

    def __init__(self, streams: OwnStreams, session: str, connection: McpConnection) -> None:
        """Read the stream of the session with this digest."""
        self._streams = streams
        self._session = session
        self._connection = connection
        self._at = 0
        self.is_taken = False
        """Whether it is known to have a reader at a different node."""

    @property
    def is_read(self) -> bool:
        """Return whether it has a reader now."""
        return self.is_taken or self._streams.is_read(self._session)

    async def copy_to(
        self, write: Write, position: StreamPosition, may_read: Callable[[], bool] = lambda: True
    ) -> None:
        """Write events from `position` on, until the stream gets a new reader."""
        if not may_read():
            return
        mine = os.urandom(8).hex()
        try:
            before = await self._streams.enter(self._session, mine)
        except StoreError:
            return  # the client comes back, and the store may be back by then
        # Without an event, after what a reader is known to have: rather once more than never.
        self._at = before.position if position.after is None else min(position.after, before.last)
        try:
            await self._copy(write, position, lambda: self._streams.is_reader(self._session, mine), may_read)
        except StoreError:
            return
        finally:
            self._streams.leave(self._session, mine, self._at)

    async def _copy(
        self,
        write: Write,
        position: StreamPosition,
        is_reader: Callable[[], bool],
        may_read: Callable[[], bool],
    ) -> None:
        node = self._streams.node
        if position.is_primed:
            await write(priming(f"{OWN_STREAM}-{self._at}", RETRY_MS))
        while is_reader() and may_read():
            turn = node.mail_bell.turn
            mails = await node.told_all(self._at)
            for at, message in self._messages(mails):
                if not is_reader():
                    return
                await write(event(message, None if position.is_guest else f"{OWN_STREAM}-{at}"))
                self._at = at
            if mails:
                self._at = mails[-1].sequence
            elif not await node.mail_bell.wait(turn, SILENCE_S):
                await write(KEEP_ALIVE)

    def _messages(self, mails: Iterable[Mail]) -> Iterable[tuple[int, bytes]]:
        """Yield what is for this session, without repetitions."""
        told: set[bytes] = set()
        for mail in mails:
            message = self._message(mail)
            if message is not None and message not in told:
                told.add(message)
                yield mail.sequence, message

    def _message(self, mail: Mail) -> bytes | None:
        if mail.kind == NOTICE:
            return mail.body.encode() if mail.session == self._session else None
        return self._connection.told_of(self._streams.change(mail)) if mail.kind == CHANGE else None


async def position_at_any_node(
    streams: OwnStreams, live: LiveSession, last_event: str | None
) -> StreamPosition:
    """Return where a client resumes that has read up to `last_event` (Last-Event-ID), at any node.

    1. No event: the session's own stream, after what was delivered of it.
    2. An event of that stream: after the event.
    3. An event of a stream that only this node has, because the store was away or slow: that stream.
    4. An event of a stream in the store: that stream, after the event.
    5. An event of an expired stream: the session's own stream, as a guest, which does not replace a
       current reader.
    """
    own = OwnStream(streams, live.digest, live.connection)
    fresh = StreamPosition(own, None, is_primed=live.primes_streams)
    if last_event is None:
        return fresh
    name, _, number = last_event.rpartition("-")
    if not (number.isascii() and number.isdigit() and len(number) <= 12) or name.endswith(STANDALONE):
        return fresh
    if name == OWN_STREAM:
        return StreamPosition(own, int(number))
    if live.has_alone(name):
        return live.position_after(last_event)
    try:
        stored = await streams.rows.after(live.digest, name, int(number))
        if stored is not None:
            live.send_reader_away(name)
            stream = StoredStream(streams.rows, streams.node, live.digest, name, live.revision_name)
            await stream.enter(stored.row)
            return StreamPosition(stream, int(number))
        row = await streams.rows.after(live.digest, OWN_STREAM, 0)
        if row is not None and row.row.reader:
            own.is_taken = await streams.node.lives(row.row.node)
    except StoreError:
        pass  # what this node has is better than nothing
    local = live.position_after(last_event)  # the store is away, and this node has the stream, too
    return StreamPosition(own, None, is_guest=True) if local.is_guest else local
