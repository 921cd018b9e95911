"""Notifications of a client: a cancellation cancels, and what has no effect is recorded with its reason."""

from __future__ import annotations

from support.in_process_connection import Connection


def reasons(connection: Connection, *messages: dict[str, object]) -> list[str | None]:
    connection.open("2025-11-25")
    before = len(connection.sink.records)
    for message in messages:
        assert connection.ask({"jsonrpc": "2.0", **message}) is None
    return [record["error"]["reason"] for record in connection.sink.records[before:]]


def test_what_a_client_has_to_say_leaves_no_record(connection: Connection) -> None:
    heeded = ({"method": f"notifications/{name}"} for name in ("initialized", "roots/list_changed"))
    assert reasons(connection, *heeded) == []


def test_what_has_no_effect_is_recorded_with_the_reason(connection: Connection) -> None:
    cancelled = {"method": "notifications/cancelled", "params": {"requestId": 99}}
    assert reasons(connection, cancelled, {"method": "notifications/no_such"}) == [
        "IGNORED",
        "UNKNOWN_METHOD",
    ]


def test_a_notification_that_is_an_answer_too_is_not_heeded(connection: Connection) -> None:
    cancelled = {"method": "notifications/cancelled", "params": {"requestId": 99}}
    both = {**cancelled, "result": {}}
    assert reasons(connection, cancelled, both, cancelled) == ["IGNORED", "NOT_JSONRPC", "IGNORED"]
