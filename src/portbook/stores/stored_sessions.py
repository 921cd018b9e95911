"""`SessionStore`: sessions of MCP's handshake era, stored so that a different process can resume them.

A session's id works like a password while the session lasts, so only its digest is stored.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from portbook.canonical import json_bytes
from portbook.clock import Clock, later
from portbook.model import JSONObject
from portbook.stores.connection_clock_and_errors import Connection, prune_rows
from portbook.text.named_tuple import NamedTuple
from portbook.text.sha256 import sha256

if TYPE_CHECKING:
    from portbook.stores.mailbox import DraftMail
    from portbook.stores.store_port import StorePort, Version

__all__ = ["KeptSession", "SessionStore", "digest_of"]

# A session that has not been used for this long has expired.
_KEEP_S: Final = 7 * 86400

# The most sessions of one caller; beyond that, the least recently used ones are deleted.
_MAX_OF_CALLER: Final = 10_000

# Few: it is done by a request that begins a session.
_PRUNED_AT_ONCE: Final = 100


class KeptSession(NamedTuple):
    """A stored session."""

    bound: str
    """The digest of the key that it was started with."""
    state: JSONObject


class SessionStore:
    """The sessions of a store."""

    def __init__(self, store: StorePort, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def begin(self, session_id: str, bound: str, state: JSONObject) -> None:
        """Store a new session, and delete expired sessions and those beyond the limit.

        Raises `StoreError` where that cannot be written.
        """
        now = self._clock.now()
        row = (digest_of(session_id), bound, json_bytes(state).decode(), now)

        def write(connection: Connection) -> None:
            connection.execute("INSERT INTO session (digest, bound, state, seen_at) VALUES (?, ?, ?, ?)", row)
            old, of_caller = "seen_at < ?", "bound = ? ORDER BY seen_at DESC"
            prune_rows(connection, "session", "digest", old, (later(now, -_KEEP_S),), limit=_PRUNED_AT_ONCE)
            prune_rows(
                connection,
                "session",
                "digest",
                of_caller,
                (bound,),
                limit=_PRUNED_AT_ONCE,
                kept=_MAX_OF_CALLER,
            )

        await asyncio.wrap_future(self._store.submit(write))

    async def save(
        self, session_id: str, change: Callable[[JSONObject], JSONObject], mail: Sequence[DraftMail] = ()
    ) -> JSONObject | None:
        """Change the stored state of a session, whoever stored it, and tell that with `mail`.

        Return the state after it; None where the session has ended, which it stays.

        Raises `StoreError` where that cannot be written.
        """
        now, digest = self._clock.now(), digest_of(session_id)

        def write(connection: Connection) -> JSONObject | None:
            # Writing first locks the row: no other process changes what is read here before the commit.
            found = connection.execute(
                "UPDATE session SET seen_at = ? WHERE digest = ? RETURNING state", (now, digest)
            ).fetchone()
            if found is None:
                return None
            state = change(json.loads(found[0]))
            connection.execute(
                "UPDATE session SET state = ? WHERE digest = ?", (json_bytes(state).decode(), digest)
            )
            _put(connection, now, mail)
            return state

        return await asyncio.wrap_future(self._store.submit(write))

    def touch(self, session_id: str) -> None:
        """Mark a session as used, without waiting for the write; a lost write is acceptable.

        Raises `StoreError` where the store cannot be opened.
        """
        row = (self._clock.now(), digest_of(session_id))
        self._store.submit(
            lambda connection: connection.execute("UPDATE session SET seen_at = ? WHERE digest = ?", row)
        )

    def load(self, session_id: str) -> KeptSession | None:
        """Return a stored session; None where there is none. May wait for a network: see `fetch`.

        Raises `StoreError` where the store cannot be read.
        """
        return self._store.read(self._finding(session_id), None)

    async def fetch(self, session_id: str) -> KeptSession | None:
        """Return a stored session; None where there is none.

        Raises `StoreError` where the store cannot be read.
        """
        return await self._store.fetch(self._finding(session_id), None)

    def _finding(self, session_id: str) -> Callable[[Connection], KeptSession | None]:
        row = (digest_of(session_id), later(self._clock.now(), -_KEEP_S))

        def find(connection: Connection) -> KeptSession | None:
            found = connection.execute(
                "SELECT bound, state FROM session WHERE digest = ? AND seen_at >= ?", row
            ).fetchone()
            return None if found is None else KeptSession(str(found[0]), json.loads(found[1]))

        return find

    def version(self) -> Version:
        """Return a value that differs after every change by any process.

        Raises `StoreError` where the store cannot be read.
        """
        return self._store.version()

    async def forget(self, session_id: str, mail: Sequence[DraftMail] = ()) -> None:
        """Delete a session and its streams, and tell that with `mail`.

        Raises `StoreError` where that cannot be written.
        """
        row, now = (digest_of(session_id),), self._clock.now()

        def delete(connection: Connection) -> None:
            connection.execute("DELETE FROM session WHERE digest = ?", row)
            connection.execute("DELETE FROM stream_event WHERE session = ?", row)
            connection.execute("DELETE FROM stream WHERE session = ?", row)
            _put(connection, now, mail)

        await asyncio.wrap_future(self._store.submit(delete))


def _put(connection: Connection, now: str, mail: Sequence[DraftMail]) -> None:
    if mail:
        from portbook.stores.mailbox import put_mail  # late: most servers are alone

        put_mail(connection, now, mail)


def digest_of(session_id: str) -> str:
    """Return the digest of a session's id, which stands for it in the store."""
    return sha256(session_id.encode()).hexdigest()
