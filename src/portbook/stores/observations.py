"""`ObservationStore`: what MCP servers behind Portbook offered when they were last asked.

For people who review a change: what is approved stands in `portbook.lock` alone.
"""

from __future__ import annotations

import json
from concurrent.futures import Future
from typing import TYPE_CHECKING, NamedTuple

from portbook.canonical import json_bytes
from portbook.clock import Clock
from portbook.model import JSONObject
from portbook.stores.connection_types import Connection

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort

__all__ = ["Observation", "ObservationStore"]


class Observation(NamedTuple):
    """What one server offered, and when that was first seen."""

    definitions: JSONObject
    seen_at: str


class ObservationStore:
    """The observations of a store."""

    def __init__(self, store: StorePort, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def remember(self, server: str, definitions: JSONObject) -> Future[None]:
        """Store what a server offers, in place of what it offered before.

        Raises `StoreError` where the store cannot be opened.
        """
        row = (server, json_bytes(definitions).decode(), self._clock.now())

        def write(connection: Connection) -> None:
            connection.execute(
                "INSERT INTO observation (server, definitions, seen_at) VALUES (?, ?, ?) "
                "ON CONFLICT (server) DO UPDATE "
                "SET definitions = excluded.definitions, seen_at = excluded.seen_at "
                "WHERE observation.definitions <> excluded.definitions",
                row,
            )

        return self._store.submit(write)

    def of(self, server: str) -> Observation | None:
        """Return what a server offered last, or None where it was never asked.

        Raises `StoreError` where that cannot be read.
        """

        def query(connection: Connection) -> Observation | None:
            found = connection.execute(
                "SELECT definitions, seen_at FROM observation WHERE server = ?", (server,)
            ).fetchone()
            return None if found is None else Observation(json.loads(str(found[0])), str(found[1]))

        return self._store.read(query, None)
