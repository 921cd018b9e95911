"""The clock of the database: the only one that all processes of a store share."""

from __future__ import annotations

from typing import Final

from portbook.stores.connection_types import Connection

__all__ = ["database_time"]

_NOW: Final = "SELECT CAST(unixepoch('subsec') * 1000000 AS INTEGER)"


def database_time(connection: Connection) -> int:
    """Return the time of the database, in microseconds since 1970."""
    return int(connection.execute(_NOW).get)
