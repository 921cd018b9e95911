"""`SharedSessions`: sessions whose requests come to several nodes. What they tell each other of them.

The rows of a session stay the authority; a message only says that a row has changed, so that a stream that is
open here heeds it at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol, cast

from portbook.doors.http.mcp.resumable_streams import StreamPosition
from portbook.doors.http.mcp.sessions_in_memory import LiveSession
from portbook.doors.http.mcp.shared_streams import READ, OwnStreams, StreamCopies, position_at_any_node
from portbook.mcp.messages_from_client import Key
from portbook.mcp.node_mail_and_relay import ANSWER, CANCEL, Node, SessionRelay
from portbook.model import JSONObject
from portbook.stores.mailbox import DraftMail, Mail
from portbook.stores.stored_sessions import digest_of
from portbook.stores.stream_rows import StreamRows
from portbook.wire.parsing import parse

__all__ = ["SharedSessions"]

# The row of a session has changed; a session has ended.
_CHANGED: Final = "session"
_ENDED: Final = "ended"


class LocalSessions(Protocol):
    """The sessions in the memory of this node."""

    def find_by_digest(self, digest: str) -> LiveSession | None:
        """Return the session whose id has this digest."""
        ...

    async def renew(self, live: LiveSession) -> None:
        """Take over what a different node has stored of a session."""
        ...

    def end(self, live: LiveSession) -> None:
        """End a session that a different node has ended."""
        ...


class SharedSessions:
    """What makes the sessions of this node those of all nodes."""

    def __init__(self, node: Node, rows: StreamRows) -> None:
        self._node = node
        self._rows = rows
        self._own = OwnStreams(rows, node)
        self._running: set[asyncio.Task[None]] = set()
        self.copies = StreamCopies(rows, node)
        """The streams of this node that other nodes can read."""

    def serve(self, sessions: LocalSessions) -> None:
        """Do what other nodes say of these sessions."""

        def on(kind: str, act: Callable[[LiveSession, Mail], object]) -> None:
            async def handle(mail: Mail) -> None:
                live = sessions.find_by_digest(mail.session)
                if live is not None:
                    act(live, mail)

            self._node.on(kind, handle)

        async def renew(mail: Mail) -> None:
            live = sessions.find_by_digest(mail.session)
            if live is not None:
                await sessions.renew(live)

        async def settle(mail: Mail) -> None:
            live = sessions.find_by_digest(mail.session)
            if live is not None:
                await live.connection.settle(_object_of(mail))

        self._node.on(_CHANGED, renew)
        self._node.on(ANSWER, settle)
        on(_ENDED, lambda live, _: sessions.end(live))
        on(CANCEL, lambda live, mail: live.connection.cancel(cast("Key", parse(mail.body.encode()))))
        on(READ, lambda live, mail: live.send_reader_away(mail.body))

    def close(self) -> None:
        """Send all readers away: this process ends."""
        self.copies.is_closing = self._node.is_closing = True
        self._own.close()
        self._node.store_bell.ring()

    def relay_of(self, session_id: str) -> SessionRelay:
        """Return how the connection of a session reaches the other nodes."""
        return SessionRelay(self._node, digest_of(session_id))

    def is_read(self, live: LiveSession) -> bool:
        """Return whether a client reads the session's own stream at this node."""
        return self._own.is_read(live.digest)

    async def begin(self, live: LiveSession) -> None:
        """Note that a session has begun: its own stream begins here.

        Raises `StoreError` where that cannot be written.
        """
        await self._rows.begin_own(live.digest)

    def says_changed(self, live: LiveSession) -> tuple[DraftMail, ...]:
        """Return what tells other nodes that the row of a session has changed."""
        return (DraftMail(_CHANGED, session=live.digest),)

    def says_ended(self, live: LiveSession) -> tuple[DraftMail, ...]:
        """Return what tells other nodes that a session has ended."""
        return (DraftMail(_ENDED, session=live.digest),)

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Run `work` beside the requests."""
        running = asyncio.get_running_loop().create_task(work)
        self._running.add(running)
        running.add_done_callback(self._running.discard)

    async def position_after(self, live: LiveSession, last_event: str | None) -> StreamPosition:
        """Return where a client resumes that has read up to `last_event`."""
        return await position_at_any_node(self._own, live, last_event)


def _object_of(mail: Mail) -> JSONObject:
    return cast("JSONObject", parse(mail.body.encode()))
