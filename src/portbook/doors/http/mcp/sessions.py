"""Sessions of the handshake era: live ones in memory, all of them in the store, to survive a restart.

The store decides: a session that a different process has ended is ended here too, within a second.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from portbook.boundary import Boundary
from portbook.canonical import fingerprint
from portbook.doors.http.mcp.resumable_streams import StreamBudget, StreamPosition
from portbook.doors.http.mcp.sessions_in_memory import LiveSession, LiveSessions, label_of
from portbook.errors import Refused
from portbook.mcp.report_queue import Emit
from portbook.model import Answer, Arrival, JSONObject
from portbook.protocol.negotiation import Session
from portbook.stores.caller_keys import ANONYMOUS

if TYPE_CHECKING:
    from portbook.doors.http.mcp.session_mail_of_nodes import SharedSessions
    from portbook.stores.mailbox import DraftMail

__all__ = ["KeptSessions", "Sessions"]

# How often a session in use is marked as such in the store, and how often the store is checked for changes;
# as often it is marked in memory.
_TOUCH_S: Final = 3600.0
_LOOK_S: Final = 1.0

# How often the row of a session is read where other nodes tell of what they change.
_SHARED_LOOK_S: Final = 60.0

# The longest time that a cancelled call may take until it is recorded.
_RECORDED_S: Final = 1.0

# The form of a session id: anything else is refused without reading the store.
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)

# The binding of sessions that were opened without a key, or where keys are not checked.
_UNKEYED: Final = fingerprint(None)


class _StoredSession(Protocol):
    @property
    def bound(self) -> str: ...
    @property
    def state(self) -> JSONObject: ...


class KeptSessions(Protocol):
    """The store of sessions."""

    async def begin(self, session_id: str, bound: str, state: JSONObject) -> None:
        """Store a new session."""
        ...

    async def save(
        self, session_id: str, change: Callable[[JSONObject], JSONObject], mail: Sequence[DraftMail] = ()
    ) -> JSONObject | None:
        """Change what is stored of a session, and send messages to other nodes.

        Return what is stored then; None where the session has ended.
        """
        ...

    def touch(self, session_id: str) -> None:
        """Mark a session as in use."""
        ...

    def load(self, session_id: str) -> _StoredSession | None:
        """Return a stored session, None if there is none."""
        ...

    async def fetch(self, session_id: str) -> _StoredSession | None:
        """Return what `load` returns, without waiting for a network in the event loop."""
        ...

    async def forget(self, session_id: str, mail: Sequence[DraftMail] = ()) -> None:
        """Delete a session, and send messages to other nodes."""
        ...

    def version(self) -> object:
        """Return a value that differs after every change, by any process."""
        ...


class Sessions:
    """Every session that this process can serve."""

    def __init__(
        self,
        boundary: Boundary,
        kept: KeptSessions,
        warn: Callable[[str], None],
        tick: Callable[[], float] = time.monotonic,
        shared: SharedSessions | None = None,
    ) -> None:
        """Store sessions in `kept`; `tick` returns seconds; other nodes take part through `shared`."""
        self._boundary = boundary
        self._kept = kept
        self._warn = warn
        self._tick = tick
        self._live = LiveSessions()
        self._budget = StreamBudget()
        self._version: object = None
        self._looked = float("-inf")
        self._has_warned = False
        self._awaits_answers = False
        self._running_elsewhere: Callable[[], list[asyncio.Task[Answer]]] = list
        self._shared = shared
        if shared is not None:
            shared.serve(self)

    def make(self, arrival: Arrival) -> LiveSession:
        """Return a session for a message that may open one; the client learns its id with the answer."""
        return self._made(secrets.token_urlsafe(32), arrival, self._bound(arrival.key), None)

    def find(self, session_id: str, arrival: Arrival) -> LiveSession | None:
        """Return the session with this id, if it is the caller's: from memory, or from the store.

        Where several nodes share a store, from memory alone: the rest is for `fetch`.
        """
        live, now = self._live.find(session_id), self._tick()
        if live is not None and now < live.checked_until and live.key is arrival.key:
            return live  # nearly always: the same caller has used it a moment ago
        if live is None:
            live = None if self._shared is not None else self._revived(session_id, arrival)
            if live is None:
                return None
        elif not self._is_callers(live, arrival.key) or not self._is_current(live, now):
            return None
        elif now - live.used < _LOOK_S:
            self._note_checked(live)
            return live
        self._use(live, now)
        self._note_checked(live)
        return live

    async def fetch(self, session_id: str, arrival: Arrival) -> LiveSession | None:
        """Return the session with this id, if it is the caller's, from the store that several nodes share."""
        if self._shared is None or not _NAME.fullmatch(session_id) or not self.is_known(arrival.key):
            return None
        if self._live.find(session_id) is None:
            try:
                kept = await self._kept.fetch(session_id)
            except OSError as error:
                self._complain(error)
                return None
            if self._live.find(session_id) is None:  # a request beside this one may have been quicker
                self._revive(session_id, arrival, kept)
        return self.find(session_id, arrival)

    def _note_checked(self, live: LiveSession) -> None:
        """Note until when a session need not be checked, nor marked as used, again."""
        if self._shared is not None:
            live.checked_until = live.used + _LOOK_S
        elif live.is_kept and live.version == self._version:
            live.checked_until = min(live.used, self._looked) + _LOOK_S

    def may_listen(self, live: LiveSession, key: str | None) -> bool:
        """Return whether the caller with `key` may still read the stream of a session."""
        now = self._tick()
        if live.is_over or not self.is_known(key) or not self._is_current(live, now):
            return False
        self._use(live, now)
        return True

    def is_known(self, key: str | None) -> bool:
        """Return whether `key` is valid now."""
        try:
            self._boundary.identify(key)
        except (Refused, OSError):  # a key that cannot be checked is not valid
            return False
        return True

    async def begin(self, live: LiveSession) -> None:
        """Store a session that `initialize` has opened."""
        self._live.admit(live, self._tick())
        live.saved = live.connection.session.changes
        await self._write(live)
        if self._shared is not None:
            try:
                await self._shared.begin(live)
            except OSError as error:
                self._complain(error)

    async def position_after(self, live: LiveSession, last_event: str | None) -> StreamPosition:
        """Return where a client resumes that has read up to `last_event` (Last-Event-ID)."""
        if self._shared is None:
            return live.position_after(last_event)
        return await self._shared.position_after(live, last_event)

    async def keep(self, live: LiveSession) -> None:
        """Store a session if it has changed and has not ended."""
        session = live.connection.session
        if session.changes != live.saved and not live.is_over:
            live.saved = session.changes
            await self._write(live)

    async def forget(self, live: LiveSession) -> None:
        """End a session, and delete it from the store."""
        self.end(live)
        try:
            await self._kept.forget(live.id, () if self._shared is None else self._shared.says_ended(live))
        except OSError as error:
            self._complain(error)

    def find_by_digest(self, digest: str) -> LiveSession | None:
        """Return the session in memory whose id has this digest."""
        return self._live.find_by_digest(digest)

    async def renew(self, live: LiveSession) -> None:
        """Take over what a different node has stored of a session; end it where it has ended."""
        live.looked = self._tick()
        if live.is_over or not live.is_kept:
            return
        try:
            kept = await self._kept.fetch(live.id)
        except OSError as error:
            self._complain(error)
            return
        if live.saving:  # which returns what is stored; if that is older than this, it is read once more
            live.looked -= _SHARED_LOOK_S
        else:
            self._take_over(live, kept)

    def await_also(self, running: Callable[[], list[asyncio.Task[Answer]]]) -> None:
        """Let `calls_ended` wait for the calls of a door that has sessions of its own, too."""
        self._running_elsewhere = running

    def await_answers(self) -> None:
        """Let `close` leave questions open: where a different node goes on, clients answer there."""
        self._awaits_answers = self._shared is not None

    def close(self) -> None:
        """Disconnect every client; the sessions stay in the store."""
        if self._shared is not None:
            self._shared.close()
        self._live.close_streams()
        if not self._awaits_answers:
            self._live.fail_questions()

    def fail_questions(self) -> None:
        """Give up what was asked of clients and is not answered: no node is left where they could."""
        self._awaits_answers = False
        self._live.fail_questions()

    def give_up_waiting(self) -> None:
        """Give up what only waits: all clients have left.

        A client that can fetch the answer from a different node still gets it.
        """
        if not self._awaits_answers:
            self._live.cancel_waiting()

    async def calls_ended(self, seconds: float) -> None:
        """Return when no call of a session runs, or after `seconds`. What only waits is not waited for."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while (running := self._running()) and (left := until - loop.time()) > 0:
            await asyncio.wait(running, timeout=left)

    async def cancel_calls(self) -> None:
        """Cancel the calls that still run, and return when they are recorded."""
        running = self._running()
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=_RECORDED_S)

    def _running(self) -> list[asyncio.Task[Answer]]:
        return [*self._live.running(are_waiting_too=self._awaits_answers), *self._running_elsewhere()]

    async def _write(self, live: LiveSession) -> None:
        session, stored = live.connection.session, None
        state, wishes = session.as_data(), session.take_wishes()
        live.saving += 1
        try:
            if live.is_kept:
                mail = () if self._shared is None else self._shared.says_changed(live)
                stored = await self._kept.save(live.id, wishes.applied_to, mail)
            else:
                await self._kept.begin(live.id, live.bound, state)
                live.is_kept = True
        except OSError as error:
            session.put_back(wishes)
            self._complain(error)
        finally:
            live.saving -= 1
        if stored is not None and not live.saving and not live.is_over:
            live.connection.adopt(stored)

    def _revived(self, session_id: str, arrival: Arrival) -> LiveSession | None:
        if not _NAME.fullmatch(session_id) or not self.is_known(arrival.key):
            return None
        try:
            kept = self._kept.load(session_id)
        except OSError as error:
            self._complain(error)
            return None
        return self._revive(session_id, arrival, kept)

    def _revive(self, session_id: str, arrival: Arrival, kept: _StoredSession | None) -> LiveSession | None:
        """Bring a stored session into memory, if it is the caller's."""
        bound = self._bound(arrival.key)
        if kept is None or kept.bound != bound:
            return None
        live = self._made(session_id, arrival, bound, Session.from_data(kept.state))
        live.saved = live.connection.session.changes
        live.is_kept = True
        live.touched = float("-inf")
        # Read once more in a second: it may have ended between the look and this.
        live.looked = self._tick() - _SHARED_LOOK_S + _LOOK_S
        self._live.admit(live, self._tick())
        return live

    def _made(self, session_id: str, arrival: Arrival, bound: str, session: Session | None) -> LiveSession:
        live = LiveSession(session_id, arrival.key, bound, self._budget)
        live.touched = live.looked = self._tick()
        emit: Emit = live.standalone.emit
        relay = None if self._shared is None else self._shared.relay_of(session_id)
        if self._shared is not None and relay is not None:
            live.copies, live.digest, emit = self._shared.copies, relay.session, relay.emit
            live.is_listened_to = partial(self._shared.is_read, live)
        live.connection = self._boundary.connect(
            arrival, emit, is_official=True, session=session, cancel=live.cancel, relay=relay
        )
        live.connection.session.is_stored = True
        return live

    def _bound(self, key: str | None) -> str:
        """Return what a session is bound to that is opened with `key`.

        Where keys are not checked, all of them count as one caller: else a client could get new limits by
        making up keys.
        """
        if key is None:
            return _UNKEYED
        try:
            is_checked = self._boundary.identify(key) != ANONYMOUS
        except (Refused, OSError):
            is_checked = True
        return fingerprint(key) if is_checked else _UNKEYED

    def _is_callers(self, live: LiveSession, key: str | None) -> bool:
        if live.key is None or key is None:
            is_same = live.key is key
        else:
            is_same = secrets.compare_digest(live.key.encode(), key.encode())
            if is_same:
                live.key = key  # the same text from now on is the same object, of a head that is remembered
        return is_same or live.bound == self._bound(key)

    def _is_current(self, live: LiveSession, now: float) -> bool:
        """Return whether a session has not ended, after taking over changes by different processes."""
        if self._shared is not None:
            # Other nodes tell of what they change. Rows that were deleted for their age are looked for.
            if live.is_kept and not live.is_over and now - live.looked >= _SHARED_LOOK_S:
                live.looked = now
                self._shared.start(self.renew(live))
            return not live.is_over
        if live.is_over or not live.is_kept or live.saving:
            return not live.is_over
        try:
            if now - self._looked >= _LOOK_S:
                self._looked = now
                self._version = self._kept.version()
            if live.version == self._version:
                return True
            version, kept = self._version, self._kept.load(live.id)
        except OSError as error:
            self._complain(error)
            return True
        live.version = version
        return self._take_over(live, kept)

    def _take_over(self, live: LiveSession, kept: _StoredSession | None) -> bool:
        """Take over what is stored of a session; end it, and return False, where nothing is."""
        if kept is None:
            self.end(live)
            return False
        if live.connection.session.changes == live.saved:
            live.connection.adopt(kept.state)
        return True

    def _use(self, live: LiveSession, now: float) -> None:
        """Mark a session as used, here and in the store."""
        self._live.use(live, now)
        if live.is_kept and now - live.touched >= _TOUCH_S:
            live.touched = now
            try:
                self._kept.touch(live.id)
            except OSError as error:
                self._complain(error)

    def end(self, live: LiveSession) -> None:
        """End a session in memory, and what it runs here."""
        live.is_over = True
        self._live.let_out(live)
        for task in tuple(live.running):
            task.cancel()
        self._boundary.end_session(label_of(live.id))

    def _complain(self, error: OSError) -> None:
        if not self._has_warned:
            self._has_warned = True
            self._warn(f"sessions cannot be kept, and end with this process: {error}")
