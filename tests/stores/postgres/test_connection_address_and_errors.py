"""Errors of PostgreSQL in sentences, and addresses without passwords."""

from __future__ import annotations

import re
import time

import psycopg
import pytest
from psycopg import errors

from portbook.stores.connection_clock_and_errors import StoreError
from portbook.stores.postgres import connection_address_and_errors as module
from portbook.stores.postgres.connection_address_and_errors import (
    BoundedConnection,
    database_problem,
    in_postgresql,
    is_certainly_undone,
    is_connection_lost,
    passwords_in,
    place_of_database,
)
from support.postgres_nodes import StallingProxy


@pytest.mark.parametrize(
    ("url", "place"),
    [
        (
            "postgresql://ada:canary@db.example:5433/portbook?sslmode=require",
            "postgresql://db.example:5433/portbook",
        ),
        ("postgresql:///portbook?host=/run/pg&password=canary", "postgresql:///run/pg/portbook"),
        ("postgresql://", "postgresql:///"),
    ],
)
def test_the_place_of_a_database_has_no_password(url: str, place: str) -> None:
    assert place_of_database(url) == place


def test_what_is_no_address_is_refused_without_repeating_it() -> None:
    with pytest.raises(StoreError, match=r"^store.url: is not the address") as caught:
        place_of_database("postgresql://ada:canary@[")
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:4711/canary@db.example/portbook",
        "postgresql://ada:canary/4711@db.example/portbook",
        "postgresql://ada:canary@4711@db.example/portbook",
        "postgresql://ada:4711@canary@db.example/portbook",
        "postgresql://ada:4711?a@canary@db.example/portbook",
    ],
)
def test_a_password_that_is_not_encoded_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(StoreError, match="percent-encode the password") as caught:
        place_of_database(url)
    assert "canary" not in str(caught.value)
    assert "4711" not in str(caught.value)


def test_an_encoded_password_is_known_as_the_server_sees_it() -> None:
    assert passwords_in("postgresql://ada:a%2Fb%40c#d@h,i:1,2/x?sslpassword=e&user=ada@h") == ["a/b@c#d", "e"]
    assert place_of_database("postgresql://ada:a%2Fb%40c#d@h:1,i:2/x") == "postgresql://h,i:1,2/x"
    assert passwords_in("postgresql:///x?password=canary") == ["canary"]
    assert passwords_in("postgresql://ada:canary@[") == []


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (errors.LockNotAvailable("canary"), "locked by a different process"),
        (errors.InsufficientPrivilege("canary"), "lacks a privilege"),
        (errors.SyntaxError("canary"), r"cannot be used: SyntaxError \(42601\)"),
        (
            psycopg.OperationalError("password authentication failed for canary"),
            "password or the role is wrong",
        ),
        (psycopg.OperationalError('database "canary" does not exist'), "no such database or role"),
        (psycopg.OperationalError("canary: session is read-only"), "name the primary server"),
        (psycopg.OperationalError("canary"), "cannot be reached"),
    ],
)
def test_an_error_is_a_sentence_without_values(error: Exception, sentence: str) -> None:
    problem = database_problem("place", error)
    assert isinstance(problem, StoreError)
    with pytest.raises(StoreError, match=sentence):
        raise problem
    assert "canary" not in str(problem)


def test_only_an_error_without_an_answer_leaves_open_what_became_of_a_statement() -> None:
    assert is_connection_lost(psycopg.OperationalError("lost"))
    assert is_connection_lost(errors.AdminShutdown())
    assert is_connection_lost(errors.ProtocolViolation())  # PgBouncer's word for a server that is gone
    assert not is_connection_lost(errors.LockNotAvailable())
    assert not is_connection_lost(KeyError("x"))


@pytest.mark.parametrize(
    ("error", "is_certain"),
    [
        (errors.UniqueViolation(), True),
        (errors.SerializationFailure(), True),
        (errors.InFailedSqlTransaction(), True),
        (errors.IdleInTransactionSessionTimeout(), True),
        (errors.StatementCompletionUnknown(), False),
        (errors.ProtocolViolation(), False),
        (errors.QueryCanceled(), False),
        (errors.AdminShutdown(), False),
        (psycopg.OperationalError("lost"), False),
    ],
)
def test_only_some_answers_to_commit_say_that_it_was_not_done(
    error: psycopg.Error, *, is_certain: bool
) -> None:
    assert is_certainly_undone(error) is is_certain


# Statements in the words of PostgreSQL, and a server that does not answer.


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
