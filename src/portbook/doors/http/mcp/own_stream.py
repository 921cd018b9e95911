"""`OwnStream`: what belongs to no request of a session, where several nodes share the store.

It is what all nodes are told, as far as it is for this session: the id of an event is the number of the
message. So nothing is kept for sessions to which nobody listens, and a client resumes at any node.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable
from typing import Final

from portbook.doors.http.mcp.keep_alive import KEEP_ALIVE, RETRY_MS, SILENCE_S
from portbook.doors.http.mcp.resumable_stream import StreamPosition, Write
from portbook.mcp.change_relay import change_of
from portbook.mcp.connection import McpConnection
from portbook.mcp.list_and_resource_changes import ChangeNotification
from portbook.mcp.node import CHANGE, NOTICE, Node
from portbook.stores.mailbox import DraftMail, Mail
from portbook.stores.store_errors import StoreError
from portbook.stores.stream_rows import OWN_STREAM, OwnStreamRow, StreamRows
from portbook.wire.sse import event, priming

__all__ = ["LISTENING", "OwnStream", "OwnStreams"]

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
