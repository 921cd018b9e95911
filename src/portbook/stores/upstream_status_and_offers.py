"""How the MCP servers of every running process are doing, which are to be restarted, and what they offered.

A process writes what it knows every few seconds. What it has not confirmed for a while is no longer true: the
process has ended.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, NamedTuple

from portbook.canonical import json_bytes
from portbook.clock import Clock, later
from portbook.model import JSONObject
from portbook.stores.connection_clock_and_errors import Connection

if TYPE_CHECKING:
    from portbook.stores.store_port import StorePort

__all__ = ["CONFIRMED_S", "Observation", "ObservationStore", "UpstreamStore"]

# How often a process confirms what it said, and when that is no longer believed.
CONFIRMED_S: Final = 10
_BELIEVED_S: Final = 3 * CONFIRMED_S


class UpstreamStore:
    """What the processes of a store say of their MCP servers."""

    def __init__(self, store: StorePort, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def report(self, process: str, statuses: Iterable[JSONObject]) -> None:
        """Store how the servers of a process are doing, and delete what is no longer true.

        Raises `StoreError` where that cannot be written.
        """
        now = self._clock.now()
        rows = [(process, str(each["name"]), json_bytes(each).decode(), now) for each in statuses]

        def write(connection: Connection) -> None:
            connection.execute(
                "DELETE FROM upstream WHERE process = ? OR seen_at < ?", (process, later(now, -_BELIEVED_S))
            )
            for row in rows:
                connection.execute(
                    "INSERT INTO upstream (process, alias, status, seen_at) VALUES (?, ?, ?, ?)", row
                )

        await asyncio.wrap_future(self._store.submit(write))

    def statuses(self) -> list[JSONObject]:
        """Return how each server of each running process is doing, ordered by name.

        Raises `StoreError` where the store cannot be read.
        """
        since = later(self._clock.now(), -_BELIEVED_S)

        def find(connection: Connection) -> list[JSONObject]:
            found = connection.execute(
                "SELECT process, status FROM upstream WHERE seen_at >= ? ORDER BY alias, process", (since,)
            )
            return [{**json.loads(str(status)), "process": str(process)} for process, status in found]

        nothing: list[JSONObject] = []
        return self._store.read(find, nothing)

    async def ask_restart(self, alias: str) -> None:
        """Ask every process to restart a server.

        Raises `StoreError` where that cannot be written.
        """
        row = (alias, self._clock.now())
        work = self._store.submit(
            lambda connection: connection.execute(
                "INSERT INTO upstream_restart (alias, asked_at) VALUES (?, ?) "
                "ON CONFLICT (alias) DO UPDATE SET asked_at = excluded.asked_at",
                row,
            )
        )
        await asyncio.wrap_future(work)

    def restarts_since(self, moment: str) -> dict[str, str]:
        """Return the servers that were to be restarted after a moment, each with the time of that.

        Raises `StoreError` where the store cannot be read.
        """

        def find(connection: Connection) -> dict[str, str]:
            found = connection.execute(
                "SELECT alias, asked_at FROM upstream_restart WHERE asked_at > ?", (moment,)
            )
            return {str(alias): str(asked_at) for alias, asked_at in found}

        nothing: dict[str, str] = {}
        return self._store.read(find, nothing)


# `ObservationStore`: what MCP servers behind Portbook offered when they were last asked.
#
# For people who review a change: what is approved stands in `portbook.lock` alone.


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
