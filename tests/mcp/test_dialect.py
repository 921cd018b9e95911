"""MCP over a connection, in every revision: what is no message of it, and what is recorded."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from portbook.mcp.exchange import McpExchange
from portbook.model import Call
from support.every_revision import VALIDATOR, every_revision
from support.in_process_connection import HANDSHAKES, Connection, handshake, params
from support.portbook_process import over_stdio


@every_revision
@pytest.mark.parametrize("wrong", [[1], "x", 5, 1.5, None, True, ""])
@pytest.mark.parametrize("method", ["tools/call", "tools/list", "initialize", "server/discover"])
def test_params_of_another_type_are_wrong_params(
    connection: Connection, revision: str, wrong: object, method: str
) -> None:
    if method != "initialize":
        connection.open(revision)
    if method == "server/discover" and revision in HANDSHAKES:
        return
    error = connection.request(method, wrong)["error"]
    assert (error["code"], error["data"]["reason"]) == (-32602, "BAD_PARAMS")


@pytest.mark.parametrize("wrong", [[1], "x", 5, None, False])
@pytest.mark.parametrize("mode", ["warn", "off"])
def test_params_of_another_type_are_wrong_even_where_the_schema_is_not_enforced(
    mode: str, wrong: object
) -> None:
    connection = Connection(**{"validation.incoming": mode}).open("2025-11-25")
    assert connection.request("tools/list", wrong)["error"]["code"] == -32602


def test_params_of_another_type_are_wrong_params_over_stdio(tmp_path: Path) -> None:
    hello = {"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": handshake("2025-06-18")}
    messages: list[object] = [hello]
    for number, wrong in enumerate(([1], "x", 5, None, True)):
        messages.append({"jsonrpc": "2.0", "id": number, "method": "tools/list", "params": wrong})
    answers = over_stdio(*(json.dumps(message).encode() for message in messages), cwd=tmp_path).answers
    codes = {answer["id"]: answer["error"]["code"] for answer in answers if "error" in answer}
    assert codes == dict.fromkeys(range(5), -32602)


@pytest.mark.covers("001.layers.structure")
@every_revision
@pytest.mark.parametrize(
    ("change", "drop"),
    [
        ({"jsonrpc": "1.0"}, ()),
        ({"jsonrpc": 2.0}, ()),
        ({}, ("jsonrpc",)),
        ({}, ("method",)),
        ({"method": 1}, ()),
        ({"id": None}, ()),
        ({"id": True}, ()),
        ({"id": 1.5}, ()),
        ({"id": []}, ()),
        ({"id": {}}, ()),
        ({"id": "x" * 300}, ()),
        ({"result": {}}, ()),
        ({"error": {"code": 1, "message": "x"}}, ()),
    ],
)
def test_what_is_not_json_rpc_is_minus_32600_and_the_answer_is_valid(
    connection: Connection, revision: str, change: dict[str, Any], drop: tuple[str, ...]
) -> None:
    connection.open(revision)
    message = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": params(revision), **change}
    answer = connection.ask({name: value for name, value in message.items() if name not in drop})
    assert answer["error"]["code"] == -32600
    if "id" in change:
        assert answer.get("id", "absent") == ("absent" if revision >= "2025-11-25" else None)
    else:
        assert answer["id"] == 7
        VALIDATOR.validate("error", answer, revision)


@pytest.mark.covers("001.validation.modes")
def test_checks_can_warn_or_be_off() -> None:
    bad = {"name": "echo", "arguments": {"text": "x"}, "_meta": 5}
    for mode, warned in (("warn", 1), ("off", 0)):
        connection = Connection(**{"validation.incoming": mode}).open("2025-11-25")
        assert connection.request("tools/call", bad)["result"]["content"][0]["text"] == "x"
        assert len(connection.client.warnings) == warned
    connection = Connection().open("2025-11-25")
    assert connection.request("tools/call", bad)["error"]["code"] == -32602


def test_what_nobody_foresaw_while_reading_is_answered_and_recorded(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    connection.open("2025-11-25")
    monkeypatch.setattr("portbook.mcp.dialect.refuse_structure", fail)
    answer = connection.request("tools/list", id=9)
    assert (answer["id"], answer["error"]["code"]) == (9, -32603)
    assert "ZeroDivisionError" in str(connection.sink.records[-1]["error"])
    assert "'executed': False" in str(connection.sink.records[-1]["error"])
    monkeypatch.undo()
    assert "result" in connection.request("tools/list")


def test_a_call_that_is_read_has_every_field_of_a_call(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Call] = []

    class Kept(McpExchange):
        def __init__(self, call: Call, *rest: Any) -> None:
            read.append(call)
            super().__init__(call, *rest)

    monkeypatch.setattr("portbook.mcp.dialect.McpExchange", Kept)
    connection.open("2025-11-25")
    connection.request("tools/call", {"name": "echo", "arguments": {"text": "x"}})
    connection.request("tools/call", {"name": 5})
    assert [call.method for call in read] == [
        "initialize",
        "notifications/initialized",
        "tools/call",
        "tools/call",
    ]
    for call in read:
        assert {field.name for field in fields(Call) if not hasattr(call, field.name)} == set()
