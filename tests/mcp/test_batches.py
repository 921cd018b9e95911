"""Batches: each member is answered as if it had come alone, in one array."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.in_process_connection import Connection, handshake


def members(connection: Connection, *messages: Any) -> Any:
    connection.open("2025-03-26")
    [answer] = connection.send(json.dumps(messages).encode())
    return answer


def test_members_are_answered_in_one_array_and_notifications_not_at_all(connection: Connection) -> None:
    told = members(
        connection,
        {"jsonrpc": "2.0", "id": "a", "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        5,
        {"jsonrpc": "2.0", "id": "b", "method": "no/such"},
    )
    assert [each.get("id") for each in told] == ["a", None, "b"]
    assert ["result" in each for each in told] == [True, False, False]


def test_initialize_is_no_member_of_a_batch(connection: Connection) -> None:
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": handshake("2025-03-26")}
    [told] = members(connection, hello)
    assert told["error"]["code"] == -32600


@pytest.mark.parametrize("count", [0, 101])
def test_a_batch_has_1_to_100_members(connection: Connection, count: int) -> None:
    told = members(connection, *({"jsonrpc": "2.0", "id": at, "method": "ping"} for at in range(count)))
    assert told["error"]["code"] == -32600
