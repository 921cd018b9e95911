"""What a file must be to be the store: made whole, brought up to date, or refused in a sentence."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import stat
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from portbook.stores.connection_clock_and_errors import Connection, StoreError
from portbook.stores.sqlite_store import Store
from support.portbook_process import child
from support.store_rows import names, put


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


_PROOFS = ("commit_proof",)
_NODES = ("mail_counter", "mail", "stream", "stream_event", "task", *_PROOFS)
_NEW = (
    "upstream",
    "upstream_restart",
    "observation",
    "audit_checkpoint",
    "audit_segment",
    "rate_bucket",
    "lease",
    "restoration",
    "audit_record",
    *_NODES,
)


@pytest.mark.parametrize(
    ("version", "missing"), [(1, ("session", *_NEW)), (2, _NEW), (3, _NEW[2:]), (8, _NODES), (9, _PROOFS)]
)
def test_a_file_of_an_older_version_is_brought_up_to_date_with_all_that_is_in_it(
    tmp_path: Path, version: int, missing: tuple[str, ...]
) -> None:
    path = tmp_path / "portbook.db"
    store = Store(path)
    store.submit(put("a")).result()
    store.close()
    with sqlite3.connect(path) as connection:
        connection.executescript("".join(f"DROP TABLE {table};" for table in missing))
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    store, other = Store(path), Store(path)
    assert store.read(names, []) == other.read(names, []) == ["a", "hmac"]
    for each in (store, other):
        for table in missing:
            assert each.read(partial(_count, table), 1) == 0
        each.close()


def _count(table: str, connection: Connection) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").get)


def test_a_file_that_its_maker_left_empty_is_made_whole(tmp_path: Path) -> None:
    (tmp_path / "portbook.db").touch()
    store = Store(tmp_path / "portbook.db")
    assert store.read(names, []) == ["hmac"]
    store.close()


_MAKER = """
import sys
from pathlib import Path
from portbook.stores.sqlite_store import Store

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
