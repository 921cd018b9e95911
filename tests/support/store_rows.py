"""Rows that are written to a store and read from it, where any will do."""

from __future__ import annotations

from typing import Any

from portbook.stores.connection_clock_and_errors import Connection


def put(name: str) -> Any:
    return lambda connection: connection.execute("INSERT INTO secret VALUES (?, x'00')", (name,)) and None


def names(connection: Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM secret ORDER BY name")]
