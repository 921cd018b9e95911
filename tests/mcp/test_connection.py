"""One connection's messages: which contract each is in, and in what order they are answered."""

from __future__ import annotations

import pytest

from support.every_revision import call, every_revision
from support.in_process_connection import EVERY_REVISION, HANDSHAKES, Connection, handshake, params


def test_a_second_initialize_is_refused_and_changes_nothing(connection: Connection) -> None:
    connection.open("2025-06-18")
    assert connection.request("initialize", handshake("2024-11-05"))["error"]["code"] == -32600
    assert (
        "structuredContent"
        in connection.request("tools/call", call("2025-06-18", "echo", text="x"))["result"]
    )


@every_revision
def test_a_parse_error_has_no_id_where_the_revision_can_do_without(
    connection: Connection, revision: str
) -> None:
    connection.open(revision)
    (answer,) = connection.send(b"{")
    assert answer["error"]["code"] == -32700
    agreed = revision in HANDSHAKES
    assert ("id" in answer) == (not agreed or revision < "2025-11-25")


@every_revision
def test_notifications_are_never_answered_and_those_without_effect_are_recorded(
    connection: Connection, revision: str
) -> None:
    connection.open(revision)
    before = len(connection.sink.records)
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}},
        {"jsonrpc": "2.0", "method": "notifications/no_such"},
        {"jsonrpc": "1.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        {"jsonrpc": "2.0", "method": "tools/call", "params": call(revision, "leaving")},
    ):
        assert connection.ask(message) is None
    assert len(connection.sink.records) == before + 5
    assert connection.sink.records[before]["error"]["reason"] == "IGNORED"
    assert all(record["status"] == "error" for record in connection.sink.records[before:])


def test_a_response_to_nothing_is_not_answered(connection: Connection) -> None:
    connection.open("2025-11-25")
    assert connection.ask({"jsonrpc": "2.0", "id": 1, "result": {}}) is None


@pytest.mark.covers("001.mcp.batches")
def test_batches_are_answered_in_the_one_revision_that_has_them(connection: Connection) -> None:
    connection.open("2025-03-26")
    batch = [
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}},
        {
            "jsonrpc": "2.0",
            "id": "2",
            "method": "tools/call",
            "params": {"name": "echo", "arguments": {"text": "x"}},
        },
        5,
        {"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": handshake("2025-03-26")},
    ]
    answers = connection.ask(batch)
    assert [answer.get("id") for answer in answers] == [1, "2", None, 3]
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, None, -32600, -32600]
    assert connection.ask([batch[1]]) is None
    assert connection.ask([])["error"]["code"] == -32600
    assert connection.ask([batch[0]] * 101)["error"]["code"] == -32600


@pytest.mark.parametrize("revision", [r for r in EVERY_REVISION if r != "2025-03-26"])
def test_batches_are_refused_in_every_other_revision(connection: Connection, revision: str) -> None:
    connection.open(revision)
    assert connection.ask([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])["error"]["code"] == -32600


def test_envelopes_are_still_read_on_an_initialised_connection(connection: Connection) -> None:
    connection.open("2025-11-25")
    answer = connection.request("mcp.tool.invoke", {"tool": "mcp.tool:echo", "input": {"text": "x"}})
    assert answer == {"jsonrpc": "2.0", "id": 1, "result": "x"}


def test_an_agreement_that_could_not_be_recorded_was_not_made(connection: Connection) -> None:
    def fail(record: object) -> None:
        raise OSError("full")

    write, connection.sink.write = connection.sink.write, fail  # type: ignore[method-assign]
    assert connection.request("initialize", handshake("2025-11-25"))["error"]["code"] == -32603
    connection.sink.write = write  # type: ignore[method-assign]
    assert (
        connection.request("initialize", handshake("2025-11-25"))["result"]["protocolVersion"] == "2025-11-25"
    )


@pytest.mark.parametrize("method", ["tools/list", "no/such", "ping"])
def test_an_id_that_is_not_whole_is_refused_before_anything_else(connection: Connection, method: str) -> None:
    connection.open("2025-11-25")
    answer = connection.request(method, id=1.5)
    assert answer["error"]["code"] == -32600
    assert "id" not in answer


TOO_LONG = b"x" * (1024 * 1024 + 1)


def test_a_message_that_is_too_long_is_an_error_of_mcp_once_that_is_spoken() -> None:
    connection = Connection()
    [answer] = connection.send(TOO_LONG)
    assert answer["result"]["ok"] is False  # nobody knows yet what is spoken here
    [answer] = connection.open("2025-06-18").send(TOO_LONG)
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)
    assert answer["error"]["data"]["reason"] == "FRAME_TOO_LARGE"


def test_whoever_speaks_without_a_handshake_speaks_mcp_too() -> None:
    connection = Connection()
    connection.request("tools/list", params("2026-07-28"))
    assert "error" in connection.send(TOO_LONG)[0]


_USUAL = (
    b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"usual"}}}'
)
_SECRET = b"password=hunter2hunter2"
_TRACE = b"00-%b-%b-01" % (b"a" * 32, b"b" * 16)


@pytest.mark.parametrize("revision", HANDSHAKES)
@pytest.mark.parametrize(
    "message",
    [
        _USUAL,
        _USUAL.replace(b"7", b'"seven"'),
        _USUAL.replace(b"7", b"0"),
        _USUAL.replace(b"7", b"-0"),
        _USUAL.replace(b"7", b"7.5"),
        _USUAL.replace(b"7", b"true"),
        _USUAL.replace(b"7", b"null"),
        _USUAL.replace(b"7", b"%d" % 10**30),
        _USUAL.replace(b"7", b'"%b"' % (b"x" * 300)),
        _USUAL.replace(b":", b": "),
        _USUAL.replace(b"usual", rb"\u0061 \" \\ null"),
        _USUAL.replace(b"usual", "é € 😀 null".encode()),
        _USUAL.replace(b"usual", rb"a \"quoted\" \\ \n text"),
        _USUAL.replace(b"usual", _SECRET),
        _USUAL.replace(b"usual", b"x" * 5000),
        _USUAL.replace(b"text", b"test"),
        _USUAL.replace(b'"usual"', b"1e999"),
        _USUAL.replace(b'"usual"', b'"a","text":"b"'),
        _USUAL.replace(b'{"text":"usual"}', b"[]"),
        _USUAL.replace(b'{"text":"usual"}', b"null"),
        _USUAL.replace(b'"arguments"', b'"_meta"'),
        _USUAL.replace(b'"arguments":', b'"_meta":{"traceparent":"%b"},"arguments":' % _TRACE),
        _USUAL.replace(b'"arguments":', b'"task":{},"arguments":'),
        _USUAL.replace(b'"arguments":', b'"tool":"mcp.tool:echo","arguments":'),
        _USUAL.replace(b'"name"', b'"nome"'),
        _USUAL.replace(b'"echo"', b'["echo"]'),
        _USUAL.replace(b'"echo"', b'"mcp.tool:echo"'),
        _USUAL.replace(b'"echo"', b'"no_such"'),
        _USUAL.replace(b"tools/call", b"tools/list"),
        _USUAL.replace(b"tools/call", b"prompts/get"),
        _USUAL.replace(b'"id":7', b'"result":{}'),
        _USUAL.replace(b'"jsonrpc":"2.0"', b'"jsonrpc":"1.0"'),
        _USUAL.replace(b'"jsonrpc"', b'"error"'),
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":["name","arguments"]}',
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":"name"}',
    ],
)  # fmt: skip
def test_a_message_is_answered_and_recorded_as_if_no_call_had_come_before_it(
    message: bytes, revision: str
) -> None:
    found: list[object] = []
    for before in ((), (_USUAL, _USUAL)):
        connection = Connection().open(revision)
        connection.send(*before)
        log = connection.sink
        number = len(log.executions)
        answers = connection.send(message)
        own = {"trace_id", "request_id", "traceId", "requestId", "spanId"}
        for records in (log.executions, log.records):
            assert len(records) == number + 1
        found.append(
            (
                answers,
                {name: value for name, value in log.executions[-1].items() if name not in own},
                {name: value for name, value in log.records[-1].items() if name not in own},
            )
        )
    assert found[0] == found[1]
