"""Records of every process in the store: the same record is the same row."""

from __future__ import annotations

from pathlib import Path

from portbook.audit.shipping.database_receiver import AuditRecordRow, AuditRecords
from portbook.stores.sqlite_store import Store

ROW = AuditRecordRow("node-1", "intent", "a.jsonl", 9_007_199_254_740_993, "ab" * 32, "{}")


def test_rows_are_added_once_whoever_adds_them(tmp_path: Path) -> None:
    stores = [Store(tmp_path / "portbook.db") for _ in range(2)]
    for store in stores:
        AuditRecords(store).add([ROW, ROW]).result()
    found = stores[0].read(lambda connection: [*connection.execute("SELECT * FROM audit_record")], [])
    assert found == [tuple(ROW)]
    for store in stores:
        store.close()
