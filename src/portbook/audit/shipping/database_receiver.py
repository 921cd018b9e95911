"""Ships records into the table `audit_record` of the store's database."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

from portbook.audit.shipping.shipment import CannotShip, ShippedRecord
from portbook.stores.audit_records import AuditRecordRow, AuditRecords
from portbook.stores.store_errors import StoreError

__all__ = ["DatabaseReceiver"]


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
