"""Ships records into the table `audit_record` of the store's database, beside the files that they come from.

A record is stored once: the same file, number and hash is the same record. One that was altered since has a
different hash, and is stored beside the first.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Final

from portbook.audit.shipping.receiver_and_address import CannotShip, ShippedRecord
from portbook.stores.connection_clock_and_errors import Connection, StoreError
from portbook.stores.store_port import StorePort
from portbook.text.named_tuple import NamedTuple

__all__ = ["AuditRecordRow", "AuditRecords", "DatabaseReceiver"]


class AuditRecordRow(NamedTuple):
    """A record, as it is stored."""

    host: str
    """The machine that wrote it."""
    stream: str
    file: str
    seq: int
    hash: str
    line: str
    """The record as it is on disk: what the hash is of."""


_COLUMNS: Final = ", ".join(AuditRecordRow._fields)
_ADD: Final = (
    f"INSERT INTO audit_record ({_COLUMNS}) "  # noqa: S608 - constant names
    "VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (stream, file, seq, hash) DO NOTHING"
)


class AuditRecords:
    """The shipped records of a store."""

    def __init__(self, store: StorePort) -> None:
        self._store = store

    def add(self, rows: Sequence[AuditRecordRow]) -> Future[None]:
        """Store records that are not stored yet.

        Raises `StoreError` where the store cannot be opened; the future raises it where it cannot be written.
        """

        def write(connection: Connection) -> None:
            for row in rows:
                connection.execute(_ADD, tuple(row))

        return self._store.submit(write)


class DatabaseReceiver:
    """Stores records; a batch has arrived when its transaction is committed."""

    def __init__(self, records: AuditRecords) -> None:
        self._records = records
        self._host = socket.gethostname()

    async def send(self, records: Sequence[ShippedRecord]) -> int:
        """Store records. The database refuses none.

        Raises `CannotShip` where it is not known that all were stored.
        """
        rows = [
            AuditRecordRow(
                self._host, record.stream, record.file, record.seq, record.hash, record.line.decode()
            )
            for record in records
        ]
        try:
            await asyncio.wrap_future(self._records.add(rows))
        except StoreError as error:
            raise CannotShip(str(error)) from None
        return 0

    async def close(self) -> None:
        """Do nothing: the store outlives the shipping."""
