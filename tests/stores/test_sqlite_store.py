"""The file: who may read it, what it must be, and that several processes share it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.sqlite_store import Store
from support.store_rows import names, put

MEMORY = Path(":memory:")


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "portbook.db" if request.param == "file" else MEMORY)
    yield made
    made.close()


def test_what_is_written_can_be_read(store: Store) -> None:
    store.submit(put("a")).result()
    assert store.read(names, []) == ["a", "hmac"]


def test_what_is_written_outlives_the_store(tmp_path: Path) -> None:
    first = Store(tmp_path / "portbook.db")
    key = first.key
    first.submit(put("a")).result()
    first.close()
    second = Store(tmp_path / "portbook.db")
    assert second.read(names, []) == ["a", "hmac"]
    assert second.key == key
    second.close()


def test_a_store_in_memory_ends_with_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one, other = Store(MEMORY), Store(tmp_path / ":memory:")
    one.submit(put("a")).result()
    assert other.read(names, []) == ["hmac"]
    one.close()
    other.close()
    assert [*tmp_path.iterdir()] == []


def test_every_store_has_a_key_of_its_own(tmp_path: Path) -> None:
    stores = [Store(tmp_path / name) for name in ("a", "b")]
    keys = [store.key for store in stores]
    assert keys[0] != keys[1]
    assert {len(key) for key in keys} == {32}
    for store in stores:
        store.close()


def test_the_key_is_drawn_from_what_is_given(tmp_path: Path) -> None:
    store = Store(tmp_path / "portbook.db", draw=lambda count: b"7" * count)
    assert store.key == b"7" * 32
    store.close()


def test_reading_makes_no_file(tmp_path: Path) -> None:
    store = Store(tmp_path / "portbook.db")
    assert store.read(names, ["absent"]) == ["absent"]
    assert store.version() == store.version() == (0, 0)
    asyncio.run(store.check())
    store.close()
    assert [*tmp_path.iterdir()] == []


def test_where_there_is_no_file_the_database_library_is_not_loaded(tmp_path: Path) -> None:
    script = f"""
import sys
from pathlib import Path
from portbook.clock import SystemClock
from portbook.stores.caller_keys import Keys
from portbook.stores.sqlite_store import Store
from portbook.stores.approvals_asked_and_redeemed import ApprovalStore

store = Store(Path({str(tmp_path)!r}) / "portbook.db")
assert Keys(store, SystemClock()).allowed() == ()
assert ApprovalStore(store, SystemClock()).tickets() == []
store.close()
assert "apsw" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_a_reader_notices_a_file_that_somebody_else_makes(tmp_path: Path) -> None:
    reader, writer = Store(tmp_path / "portbook.db"), Store(tmp_path / "portbook.db")
    before = reader.version()
    writer.submit(put("a")).result()
    assert reader.version() != before
    assert reader.read(names, []) == ["a", "hmac"]
    reader.close()
    writer.close()


def test_the_version_is_another_after_every_write(store: Store) -> None:
    seen = {store.version()}
    for number in range(5):
        store.submit(put(str(number))).result()
        assert store.version() not in seen
        seen.add(store.version())


def test_the_version_tells_of_writes_by_others_and_not_of_reads(tmp_path: Path) -> None:
    store, other = Store(tmp_path / "portbook.db"), Store(tmp_path / "portbook.db")
    store.submit(put("a")).result()
    before = store.version()
    assert other.read(names, []) == store.read(names, [])
    assert store.version() == before
    other.submit(put("b")).result()
    assert store.version() != before
    store.close()
    other.close()


def test_a_closed_store_says_so(store: Store) -> None:
    store.submit(put("a")).result()
    store.close()
    for use in (lambda: store.read(names, []), lambda: store.submit(put("b")), store.version):
        with pytest.raises(StoreError, match="closed"):
            use()
    store.close()  # once more does no harm


def test_what_was_submitted_is_written_before_it_closes(tmp_path: Path) -> None:
    store = Store(tmp_path / "portbook.db")
    futures = [store.submit(put(f"{number:03}")) for number in range(300)]
    store.close()
    assert all(future.done() and future.exception() is None for future in futures)
    again = Store(tmp_path / "portbook.db")
    assert len(again.read(names, [])) == 301
    again.close()


# -- files that cannot be it


def test_a_check_tells_what_is_wrong(tmp_path: Path) -> None:
    store = Store(tmp_path / "portbook.db")
    store.submit(put("a")).result()
    asyncio.run(store.check())
    store.submit(lambda connection: connection.execute("PRAGMA busy_timeout = 0") and None).result()
    other = apsw.Connection(str(tmp_path / "portbook.db"))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked by a different process"):
        asyncio.run(store.check())
    other.close()
    asyncio.run(store.check())
    store.close()
