"""Records shipped into the store's database."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from portbook.audit.shipping.database_receiver import AuditRecords, DatabaseReceiver
from portbook.audit.shipping.receiver_and_address import CannotShip, ShippedRecord
from portbook.stores.sqlite_store import Store


def a_record(seq: int, digest: str = "ab") -> ShippedRecord:
    return ShippedRecord("execution", "a.jsonl", seq, digest, f'{{"seq":{seq},"ü":1}}'.encode(), {})


def test_a_record_that_comes_twice_is_stored_once_and_an_altered_one_beside_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "portbook.db")
    receiver = DatabaseReceiver(AuditRecords(store))

    async def scenario() -> None:
        for batch in ([a_record(1), a_record(2)], [a_record(2), a_record(3)], [a_record(2, "cd")]):
            assert await receiver.send(batch) == 0

    asyncio.run(scenario())
    stored = store.read(
        lambda connection: [
            *connection.execute("SELECT seq, hash, line FROM audit_record ORDER BY seq, hash")
        ],
        [],
    )
    assert stored == [
        (1, "ab", '{"seq":1,"ü":1}'),
        (2, "ab", '{"seq":2,"ü":1}'),
        (2, "cd", '{"seq":2,"ü":1}'),
        (3, "ab", '{"seq":3,"ü":1}'),
    ]
    store.close()


def test_a_store_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    store = Store(tmp_path / "portbook.db")
    store.close()

    async def scenario() -> None:
        with pytest.raises(CannotShip, match="closed"):
            await DatabaseReceiver(AuditRecords(store)).send([a_record(1)])

    asyncio.run(scenario())
