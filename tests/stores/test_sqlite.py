"""The file: who may read it, what it must be, and that several processes share it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from portbook.stores.connections import Connection
from portbook.stores.errors import StoreError
from portbook.stores.sqlite import Store
from support.portbook_process import child

MEMORY = Path(":memory:")


@pytest.fixture(params=["file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    made = Store(tmp_path / "portbook.db" if request.param == "file" else MEMORY)
    yield made
    made.close()


def put(name: str) -> Any:
    return lambda connection: connection.execute("INSERT INTO secret VALUES (?, x'00')", (name,)) and None


def names(connection: Connection) -> list[str]:
    return [name for (name,) in connection.execute("SELECT name FROM secret ORDER BY name")]


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
from portbook.stores.keys import Keys
from portbook.stores.sqlite import Store
from portbook.stores.approvals import ApprovalStore

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


def test_nobody_else_may_read_the_files(tmp_path: Path) -> None:
    store = Store(tmp_path / "kept" / "portbook.db")
    store.submit(put("a")).result()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "kept").iterdir()}
    assert modes == {"portbook.db": 0o600, "portbook.db-wal": 0o600, "portbook.db-shm": 0o600}
    store.close()


def test_a_file_that_is_there_is_opened_by_the_library_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Closing a file drops every lock that its process has on it, those of open connections too.
    store = Store(tmp_path / "portbook.db")
    store.submit(put("a")).result()
    monkeypatch.setattr(os, "open", lambda *_: pytest.fail("opened it"))
    other = Store(tmp_path / "portbook.db")
    other.submit(put("b")).result()
    store.close()
    other.close()


def test_writes_go_ahead_and_to_the_disk(tmp_path: Path) -> None:
    store = Store(tmp_path / "portbook.db")

    def modes(connection: Connection) -> tuple[Any, Any]:
        return connection.execute("PRAGMA journal_mode").get, connection.execute("PRAGMA synchronous").get

    assert store.submit(modes).result() == ("wal", 2)  # 2 is FULL
    store.close()


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


def newer(path: Path) -> None:
    store = Store(path)
    store.submit(put("a")).result()
    store.close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()


def foreign(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()


def torn(path: Path) -> None:
    store = Store(path)
    store.submit(put("a")).result()
    store.close()
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        pytest.param(newer, "newer version of Portbook .*update Portbook", id="of a newer version"),
        pytest.param(foreign, "database of a different program; choose a different", id="another program's"),
        pytest.param(lambda path: path.write_bytes(b"no database " * 100), "damaged", id="no database"),
        pytest.param(torn, "damaged", id="overwritten"),
        pytest.param(Path.mkdir, "cannot be opened", id="a folder"),
    ],
)
def test_a_file_that_cannot_be_it_is_refused_in_a_sentence(make: Any, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "portbook.db"
    make(path)
    store = Store(path)
    with pytest.raises(StoreError, match=sentence) as caught:
        store.submit(put("b")).result()
    assert str(caught.value).startswith(f"{path}: ")
    assert isinstance(caught.value, OSError)
    store.close()


def test_another_programs_database_is_left_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    foreign(path)
    before = path.read_bytes()
    store = Store(path)
    with pytest.raises(StoreError):
        store.read(names, [])
    store.close()
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]


def test_a_folder_that_cannot_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    store = Store(tmp_path / "file" / "portbook.db")
    with pytest.raises(StoreError, match="cannot be opened: Not a directory"):
        store.submit(put("a"))
    store.close()


def test_a_file_of_an_older_version_is_brought_up_to_date_with_all_that_is_in_it(tmp_path: Path) -> None:
    path = tmp_path / "portbook.db"
    store = Store(path)
    store.submit(put("a")).result()
    store.close()
    with sqlite3.connect(path) as connection:
        connection.executescript("DROP TABLE session; PRAGMA user_version = 1")
    connection.close()
    store, other = Store(path), Store(path)
    assert store.read(names, []) == other.read(names, []) == ["a", "hmac"]
    for each in (store, other):
        assert each.read(lambda connection: connection.execute("SELECT count(*) FROM session").get, 1) == 0
        each.close()


def test_a_file_that_its_maker_left_empty_is_made_whole(tmp_path: Path) -> None:
    (tmp_path / "portbook.db").touch()
    store = Store(tmp_path / "portbook.db")
    assert store.read(names, []) == ["hmac"]
    store.close()


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


_MAKER = """
import sys
from pathlib import Path
from portbook.stores.sqlite import Store

sys.stdin.readline()
store = Store(Path(sys.argv[1]))
store.submit(lambda c: c.execute("INSERT INTO secret VALUES (?, x'00')", (sys.argv[2],)) and None).result()
print(store.key.hex())
store.close()
"""


def test_processes_that_make_it_at_once_make_one(tmp_path: Path) -> None:
    path = tmp_path / "portbook.db"
    with contextlib.ExitStack() as started:
        makers = [
            started.enter_context(
                child(
                    [sys.executable, "-c", _MAKER, str(path), f"maker-{number}"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for number in range(6)
        ]
        for maker in makers:  # they wait for a word, so that none is done before another begins
            assert maker.stdin is not None
            maker.stdin.write("go\n")
            maker.stdin.flush()
        keys = {maker.communicate(timeout=60)[0].strip() for maker in makers}
    assert [maker.returncode for maker in makers] == [0] * 6
    store = Store(path)
    assert keys == {store.key.hex()}
    assert json.dumps(store.read(names, [])).count("maker-") == 6
    store.close()
