"""The time of the database."""

from __future__ import annotations

import time
from pathlib import Path

from portbook.stores.connection_and_clock import database_time
from portbook.stores.sqlite_store import Store


def test_the_time_of_a_file_is_that_of_the_machine_in_microseconds(tmp_path: Path) -> None:
    store = Store(tmp_path / "portbook.db")
    before = time.time()
    found = store.submit(database_time).result()
    store.close()
    assert before - 0.01 <= found / 1e6 <= time.time() + 0.01
