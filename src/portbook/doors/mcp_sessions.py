"""Sessions of the handshake era: live ones in memory, all in the store, so that a restart ends none."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Final, Protocol

from portbook.boundary import Boundary
from portbook.canonical import fingerprint
from portbook.conversation import Conversation, Key
from portbook.doors.mcp_streams import Stream
from portbook.model import Answer, Arrival, JSONObject
from portbook.protocol.session import Session

__all__ = ["KeptSessions", "LiveSession", "Sessions"]

# Sessions in memory at once, and streams of one that can be come back to; the oldest make room.
_MAX_LIVE: Final = 10_000
_MAX_STREAMS: Final = 64

# The stream of what belongs to no request.
_STANDALONE: Final = "0"


class _Kept(Protocol):
    @property
    def bound(self) -> str: ...
    @property
    def state(self) -> JSONObject: ...


class KeptSessions(Protocol):
    """Where sessions outlive the process."""

    async def save(self, session_id: str, bound: str, state: JSONObject) -> None:
        """Keep a session as it is now."""
        ...

    def load(self, session_id: str) -> _Kept | None:
        """Return what is kept of a session."""
        ...

    async def forget(self, session_id: str) -> None:
        """Let go of a session for good."""
        ...


class LiveSession:
    """One session: what was agreed on, what is under way, and the streams that can be come back to."""

    def __init__(self, session_id: str, bound: str) -> None:
        self.id = session_id
        self.bound = bound
        """The digest of the key that it was begun with: nobody else may use it."""
        self.standalone = Stream(_STANDALONE)
        self.running: dict[asyncio.Task[Answer], Key | None] = {}
        self.saved = 0
        self._streams: dict[str, Stream] = {_STANDALONE: self.standalone}
        self._count = 0
        self._conversation: Conversation | None = None

    @property
    def conversation(self) -> Conversation:
        """Return what is said in it."""
        assert self._conversation is not None
        return self._conversation

    @conversation.setter
    def conversation(self, conversation: Conversation) -> None:
        self._conversation = conversation

    @property
    def revision_name(self) -> str:
        """Return the revision that was agreed on."""
        revision = self.conversation.session.revision
        return "" if revision is None else revision.name

    def open_stream(self) -> Stream:
        """Return a stream for one request."""
        self._count += 1
        revision = self.conversation.session.revision
        return Stream(str(self._count), is_primed=revision is not None and revision.has_icons)

    def keep_stream(self, name: str, stream: Stream) -> None:
        """Keep a stream that somebody may come back to."""
        self._streams[name] = stream
        while len(self._streams) > _MAX_STREAMS:
            self._streams.pop(next(each for each in self._streams if each != _STANDALONE))

    def resume(self, last_event: str) -> tuple[Stream, int] | None:
        """Return the stream that an event was of, and the position after it."""
        name, dash, number = last_event.rpartition("-")
        if not dash or not number.isascii() or not number.isdigit() or len(number) > 9:
            return None
        stream = self._streams.get(name)
        return None if stream is None else (stream, int(number))

    def cancel(self, key: Key) -> None:
        """Take back a request that is under way."""
        for task, its_key in self.running.items():
            if its_key == key:
                task.cancel()

    def close(self) -> None:
        """End what would wait for ever."""
        self.standalone.end(None)
        self.conversation.close()


class Sessions:
    """Every session that this process knows of."""

    def __init__(self, boundary: Boundary, kept: KeptSessions, warn: Callable[[str], None]) -> None:
        self._boundary = boundary
        self._kept = kept
        self._warn = warn
        self._live: dict[str, LiveSession] = {}
        self._has_warned = False

    def begin(self, arrival: Arrival) -> LiveSession:
        """Return a session for a message that may open one; it has a name, and nobody knows it yet."""
        return self._made(secrets.token_urlsafe(32), arrival, None)

    def find(self, session_id: str, arrival: Arrival) -> LiveSession | None:
        """Return the session of this name, if it is the caller's: from memory, or from the store."""
        live = self._live.get(session_id)
        if live is None:
            live = self._revived(session_id, arrival)
        return live if live is not None and live.bound == fingerprint(arrival.key) else None

    async def keep(self, live: LiveSession) -> None:
        """Keep a session as it is now, if that is another than before."""
        session = live.conversation.session
        if session.changes == live.saved:
            return
        if live.id not in self._live:
            self._make_room()
            self._live[live.id] = live
        live.saved = session.changes
        try:
            await self._kept.save(live.id, live.bound, session.as_data())
        except OSError as error:
            self._complain(error)

    async def forget(self, live: LiveSession) -> None:
        """End a session for good."""
        self._live.pop(live.id, None)
        live.close()
        for task in tuple(live.running):
            task.cancel()
        try:
            await self._kept.forget(live.id)
        except OSError as error:
            self._complain(error)

    def close(self) -> None:
        """Let go of everybody; the sessions stay in the store."""
        for live in tuple(self._live.values()):
            live.close()

    def _revived(self, session_id: str, arrival: Arrival) -> LiveSession | None:
        try:
            kept = self._kept.load(session_id)
        except OSError as error:
            self._complain(error)
            return None
        if kept is None or kept.bound != fingerprint(arrival.key):
            return None
        live = self._made(session_id, arrival, Session.from_data(kept.state))
        live.saved = live.conversation.session.changes
        self._make_room()
        self._live[session_id] = live
        return live

    def _made(self, session_id: str, arrival: Arrival, session: Session | None) -> LiveSession:
        live = LiveSession(session_id, fingerprint(arrival.key))
        live.conversation = self._boundary.converse(
            arrival, live.standalone.emit, is_official=True, session=session
        )
        return live

    def _make_room(self) -> None:
        while len(self._live) >= _MAX_LIVE:
            idle = next((live for live in self._live.values() if not live.running), None)
            if idle is None:
                return
            del self._live[idle.id]
            idle.close()

    def _complain(self, error: OSError) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._warn(f"sessions cannot be kept, and end with this process: {error}")
