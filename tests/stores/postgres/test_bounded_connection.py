"""Statements in the words of PostgreSQL, and a server that does not answer."""

from __future__ import annotations

import re
import time

import psycopg
import pytest

from portbook.stores.postgres import bounded_connection as module
from portbook.stores.postgres.bounded_connection import BoundedConnection, in_postgresql
from support.postgres_nodes import StallingProxy


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("SELECT a FROM t WHERE b = ?", b"SELECT a FROM t WHERE b = %s"),
        ("CREATE TABLE t (\n    a INTEGER\n) STRICT, WITHOUT ROWID;", b"CREATE TABLE t (\n    a BIGINT\n) ;"),
        (
            "CREATE TABLE t (\n    a BLOB\n) STRICT;",
            b"CREATE TABLE t (\n    a BYTEA,\n    rowid BIGINT GENERATED ALWAYS AS IDENTITY\n);",
        ),
        ("a TEXT", b'a TEXT COLLATE "C"'),
    ],
)
def test_few_words_are_different(written: str, read: bytes) -> None:
    assert in_postgresql(written) == read


def test_rows_come_in_their_simplest_form(postgres_server: str) -> None:
    connection = BoundedConnection(postgres_server)
    assert connection.execute("SELECT 1 WHERE 1 = ?", (2,)).get is None
    assert connection.execute("SELECT 1").get == 1
    assert connection.execute("SELECT 1, 2").get == (1, 2)
    assert connection.execute("SELECT unnest(ARRAY[1, 2])").get == [1, 2]
    assert connection.execute("SELECT ?::text", ("a\0b",)).get == "a\ufffdb"
    assert connection.execute("SET extra_float_digits = 1").fetchone() is None
    connection.close()


def test_a_server_that_takes_everything_and_says_nothing_is_given_up(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CLIENT_S", 0.3)
    proxy = StallingProxy(postgres_database)
    connection = BoundedConnection(proxy.url)
    assert connection.execute("SELECT 1").get == 1
    proxy.stall()
    began = time.monotonic()
    with pytest.raises(psycopg.OperationalError):
        connection.execute("SELECT 1")
    assert time.monotonic() - began < 60
    assert connection.is_lost
    proxy.close()


def test_a_server_that_can_only_be_read_is_not_connected_to(postgres_schema: str) -> None:
    url = re.sub(r"options=", "options=-cdefault_transaction_read_only%3Don%20", postgres_schema)
    with pytest.raises(psycopg.OperationalError, match="read-only"):
        BoundedConnection(url)
    BoundedConnection(f"{url}&target_session_attrs=any").close()  # where an address says so
