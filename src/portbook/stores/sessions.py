"""Sessions of MCP's handshake era as they are kept, so that another process can go on with them.

A session's id is as good as a password while it lasts: only its digest is kept.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Final, NamedTuple

from portbook.approvals import later
from portbook.canonical import json_bytes
from portbook.clock import Clock
from portbook.model import JSONObject
from portbook.stores.connections import Connection
from portbook.stores.sqlite import Store

__all__ = ["KeptSession", "SessionStore"]

# A session that nobody has changed for so long is over.
_KEEP_S: Final = 7 * 86400
_PRUNED_AT_ONCE: Final = 100


class KeptSession(NamedTuple):
    """What is kept of a session."""

    bound: str
    """The digest of the key that it was begun with."""
    state: JSONObject


class SessionStore:
    """The sessions of a store."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def save(self, session_id: str, bound: str, state: JSONObject) -> None:
        """Keep a session as it is now.

        Raises `StoreError` where that cannot be written.
        """
        now = self._clock.now()
        row = (_digest(session_id), bound, json_bytes(state).decode(), now)

        def write(connection: Connection) -> None:
            connection.execute("INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?)", row)
            connection.execute(
                "DELETE FROM session WHERE digest IN (SELECT digest FROM session WHERE seen_at < ? LIMIT ?)",
                (later(now, -_KEEP_S), _PRUNED_AT_ONCE),
            )

        await asyncio.wrap_future(self._store.submit(write))

    def load(self, session_id: str) -> KeptSession | None:
        """Return what is kept of a session; None where there is none.

        Raises `StoreError` where the store cannot be read.
        """

        def find(connection: Connection) -> KeptSession | None:
            row = connection.execute(
                "SELECT bound, state FROM session WHERE digest = ?", (_digest(session_id),)
            ).fetchone()
            return None if row is None else KeptSession(str(row[0]), json.loads(row[1]))

        return self._store.read(find, None)

    async def forget(self, session_id: str) -> None:
        """Let go of a session for good.

        Raises `StoreError` where that cannot be written.
        """
        digest = _digest(session_id)
        work = self._store.submit(
            lambda connection: connection.execute("DELETE FROM session WHERE digest = ?", (digest,))
        )
        await asyncio.wrap_future(work)


def _digest(session_id: str) -> str:
    return hashlib.sha256(session_id.encode()).hexdigest()
