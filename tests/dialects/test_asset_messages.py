"""The bare dialect: which messages are its own, what its answers are, in which order they come."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from portbook.app.assemble import assemble
from portbook.audit.memory_sink import MemorySink
from portbook.boundary import Boundary
from portbook.dialects.asset_messages import OVERSIZE_RESULT, Bare
from portbook.errors import REASONS, Failed, Finding, Reason, Refused
from portbook.model import Arrival
from portbook.settings import load_settings
from portbook.wire.jsonrpc import NO_ID
from support.in_process_connection import STATELESS_META, Connection
from support.portbook_process import SAMPLE_TOOLS, http_server

TONE = {"version": "1.0", "properties": {"pitch": {"type": "number"}}}
UNSUPPORTED = {"ok": False, "reason": "unsupported", "detail": "tool not implemented"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas/tone.schema.json").write_text(json.dumps(TONE))
    return tmp_path


@pytest.fixture
def connection(folder: Path) -> Connection:
    return Connection(**{"assets.schemas": folder / "schemas"})


@pytest.fixture
def boundary(folder: Path) -> Boundary:
    flags = {
        "docs.enabled": False,
        "assets.schemas": folder / "schemas",
        "python.toolsets": (str(SAMPLE_TOOLS),),
    }
    return assemble(load_settings(None, {}, flags, folder), is_exposed=False, sink=MemorySink()).boundary


def over_http(boundary: Boundary, message: object) -> tuple[int, Any]:
    """What `POST /rpc` answers, and its status."""
    frame = message if isinstance(message, bytes) else json.dumps(message).encode()
    answer = asyncio.run(boundary.answer(frame, Arrival("http", "/rpc")))
    return answer.status, None if answer.body is None else json.loads(answer.body)


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


@pytest.mark.covers("004.rpc.example")
def test_an_answer_is_one_compact_line_with_the_result_in_it(folder: Path, boundary: Boundary) -> None:
    frame = b'{"jsonrpc":"2.0","id":1,"method":"list_schemas","params":{}}'
    answer = asyncio.run(boundary.answer(frame, Arrival("stdio", "stdio")))
    assert answer.body == (
        b'{"jsonrpc":"2.0","id":1,"result":{"ok":true,"schemas":'
        b'[{"name":"tone","version":"1.0","path":"%s/schemas/tone.schema.json"}]}}' % str(folder).encode()
    )


def test_the_same_message_gets_the_same_answer_on_a_connection_and_over_http(
    connection: Connection, boundary: Boundary
) -> None:
    for message in (
        request("list_schemas"),
        request("get_schema", name="tone"),
        request("get_schema", name="none"),
        request("validate_asset", asset={"pitch": "x"}, schema="tone"),
        request("validate_asset", asset={}),
        request("nothing_like_it"),
        {"jsonrpc": "1.0", "id": 1, "method": "list_schemas"},
    ):
        assert over_http(boundary, message)[1] == connection.ask(message)


@pytest.mark.covers("004.validate.schema-required")
def test_a_missing_schema_is_a_failed_validation(connection: Connection) -> None:
    assert connection.ask(request("validate_asset", asset={}))["result"] == {
        "ok": False,
        "reason": "validation_failed",
        "errors": [{"path": "", "msg": 'missing property "schema"'}],
    }


@pytest.mark.parametrize("params", [[], [1], "oops", 5, None, True])
def test_params_that_are_no_object_are_a_failed_validation(params: Any, connection: Connection) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "list_schemas", "params": params}
    assert connection.ask(message)["result"] == {
        "ok": False,
        "reason": "validation_failed",
        "errors": [{"path": "/params", "msg": "expected object"}],
    }


def test_params_may_be_left_out_and_may_have_more_than_is_known(connection: Connection) -> None:
    without = {"jsonrpc": "2.0", "id": 1, "method": "list_schemas"}
    assert connection.ask(without) == connection.ask({**without, "params": {"more": 1}})


def test_what_meta_says_of_a_call_is_recorded_and_no_part_of_its_arguments(connection: Connection) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    meta = {
        "portbook/session_id": "s-1",
        "portbook/agent_step": 4,
        "portbook/attempt": 2,
        "traceparent": f"00-{trace}-00f067aa0ba902b7-01",
    }
    connection.ask(request("get_schema", name="tone"))
    connection.ask(request("get_schema", name="tone", _meta=meta))
    plain, told = connection.sink.executions
    assert (told["session_id"], told["agent_step"], told["attempt"]) == ("s-1", 4, 2)
    assert told["trace_id"] == trace
    assert told["input_bytes"] == plain["input_bytes"]


@pytest.mark.parametrize("meta", [None, 5, "x", []])
def test_a_meta_that_is_no_object_is_ignored(meta: Any, connection: Connection) -> None:
    assert connection.ask(request("get_schema", name="tone", _meta=meta))["result"]["ok"] is True


@pytest.mark.covers("004.errors.unsupported")
@pytest.mark.parametrize("method", ["nope", "echo", "list_schemas ", "LIST_SCHEMAS", "", "__class__"])
def test_a_method_that_is_no_asset_tool_is_unsupported(
    method: str, connection: Connection, boundary: Boundary
) -> None:
    assert connection.ask(request(method))["result"] == UNSUPPORTED
    assert over_http(boundary, request(method)) == (404, {"jsonrpc": "2.0", "id": 1, "result": UNSUPPORTED})


def test_without_a_library_the_tools_are_not_served() -> None:
    connection = Connection()
    assert connection.ask(request("list_schemas"))["result"] == UNSUPPORTED
    enabled = Connection(**{"assets.enabled": True})
    assert enabled.ask(request("list_schemas"))["result"] == {"ok": True, "schemas": []}
    assert enabled.ask(request("get_schema", name="x"))["result"] == {"ok": False, "reason": "not_found"}


def test_a_tool_is_called_by_its_name_over_http(folder: Path) -> None:
    (folder / "portbook.toml").write_text('[assets]\nschemas = "schemas"\n')
    with http_server(cwd=folder) as server:
        good = server.rpc(json.dumps(request("validate_asset", asset={"pitch": 1}, schema="tone")).encode())
        bad = server.rpc(json.dumps(request("validate_asset", asset={})).encode())
    assert (good.status, good.json["result"]) == (200, {"ok": True, "errors": []})
    assert (bad.status, bad.json["result"]["reason"]) == (400, "validation_failed")


@pytest.mark.parametrize("method", ["tools/list", "initialize", "ping"])
def test_over_http_a_message_of_mcp_is_no_tool_but_an_unknown_method(method: str, boundary: Boundary) -> None:
    status, answer = over_http(boundary, request(method))
    assert (status, answer["error"]["code"]) == (404, -32601)


def test_a_tools_name_is_bare_even_where_mcp_has_a_claim(connection: Connection) -> None:
    assert connection.ask(request("list_schemas", _meta=STATELESS_META))["result"]["ok"] is True
    connection.open("2025-11-25")
    assert connection.ask(request("list_schemas"))["result"]["ok"] is True
    assert connection.ask(request("nope"))["error"]["code"] == -32601, "after initialize the rest is MCP's"


def test_the_tools_are_mcp_tools_with_both_schemas(connection: Connection) -> None:
    connection.open("2025-11-25")
    listed = {tool["name"]: tool for tool in connection.request("tools/list", {})["result"]["tools"]}
    tool = listed["validate_asset"]
    assert tool["inputSchema"]["required"] == ["asset", "schema"]
    assert tool["outputSchema"]["required"] == ["ok"]
    assert tool["annotations"]["readOnlyHint"] is True
    assert listed["populate_backend"]["annotations"]["readOnlyHint"] is False
    called = connection.request("tools/call", {"name": "get_schema", "arguments": {"name": "tone"}})
    assert called["result"]["structuredContent"] == {"ok": True, "schema": TONE, "version": "1.0"}


def test_the_tools_can_be_called_in_an_envelope_too(connection: Connection) -> None:
    params = {"tool": "mcp.tool:get_schema", "input": {"name": "tone"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "mcp.tool.invoke", "params": params}
    assert connection.ask(message)["result"] == {"ok": True, "schema": TONE, "version": "1.0"}


@pytest.mark.covers("004.rpc.jsonrpc")
@pytest.mark.parametrize("version", ["1.0", 2.0, None, ...])
def test_a_message_that_is_not_jsonrpc_2_is_an_invalid_request(version: Any, connection: Connection) -> None:
    message = (
        {"id": 1, "method": "list_schemas"}
        if version is ...
        else {**request("list_schemas"), "jsonrpc": version}
    )
    answer = connection.ask(message)
    assert (answer["jsonrpc"], answer["error"]["code"]) == ("2.0", -32600)


@pytest.mark.covers("004.rpc.ids")
@pytest.mark.parametrize(
    "token", [b"1", b'"a"', b"1.0", b"1e2", b"-0", b"123456789012345678901234567890", b'""', b'"\\u0041"']
)
def test_an_id_comes_back_token_for_token(token: bytes, boundary: Boundary) -> None:
    frame = b'{"jsonrpc":"2.0","id":%s,"method":"nope"}' % token
    answer = asyncio.run(boundary.answer(frame, Arrival("stdio", "stdio")))
    assert answer.body is not None
    assert answer.body.startswith(b'{"jsonrpc":"2.0","id":%s,"result":' % token)


@pytest.mark.parametrize("identifier", [True, None, [1], {}])
def test_an_id_of_another_type_is_an_invalid_request(identifier: Any, connection: Connection) -> None:
    answer = connection.ask({**request("list_schemas"), "id": identifier})
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)


def test_a_request_without_an_id_never_runs(connection: Connection, boundary: Boundary) -> None:
    message = {"jsonrpc": "2.0", "method": "list_schemas"}
    assert connection.ask(message) is None
    [record] = connection.sink.records
    assert record["error"]["executed"] is False  # type: ignore[index,call-overload]
    assert over_http(boundary, message)[0] == 400
    assert connection.ask({"jsonrpc": "2.0", "method": "nope"}) is None


@pytest.mark.covers("004.rpc.no-batch")
def test_a_batch_is_one_invalid_request(connection: Connection) -> None:
    answer = connection.ask([request("list_schemas"), request("list_schemas")])
    assert (answer["id"], answer["error"]["code"]) == (None, -32600)


@pytest.mark.parametrize("reason", [reason for reason in Reason if REASONS[reason].bare])
def test_every_refusal_has_the_contracts_shape(reason: Reason) -> None:
    bare = Bare(frozenset({"tool"}))
    body, status = bare.write(Failed(reason), b"1")
    result = json.loads(body)["result"]
    row = REASONS[reason]
    assert row.bare is not None
    expected: dict[str, Any] = {"ok": False, "reason": row.bare.reason}
    if row.bare.reason == "validation_failed":
        expected["errors"] = [{"path": "", "msg": row.bare.detail}]
    elif row.bare.reason == "backend_error":
        unanswered = row.bare_if_unanswered or row.bare
        expected |= {"status": unanswered.status or row.http, "detail": unanswered.detail}
    else:
        expected["detail"] = row.bare.detail
    assert (result, status) == (expected, row.http)
    assert list(result) == list(expected)


@pytest.mark.covers("004.errors.too-large")
def test_a_payload_too_large_is_the_specifications_byte_for_byte() -> None:
    body, status = Bare(frozenset()).write(Refused(Reason.FRAME_TOO_LARGE), NO_ID)
    assert status == 413
    assert body == (
        b'{"jsonrpc":"2.0","id":null,"result":{"ok":false,"reason":"validation_failed",'
        b'"errors":[{"path":"","msg":"payload_too_large"}]}}'
    )


def test_the_answer_to_a_line_too_long_is_the_one_the_asset_specification_writes_out() -> None:
    assert json.loads(OVERSIZE_RESULT) == {
        "ok": False,
        "reason": "validation_failed",
        "errors": [{"path": "", "msg": "payload_too_large"}],
    }


def test_findings_are_ordered_by_path_then_message() -> None:
    findings = tuple(
        Finding(pointer, message, "", "") for pointer, message in [("/b", "x"), ("/a", "z"), ("/a", "y")]
    )
    body, _ = Bare(frozenset()).write(Refused(Reason.BAD_ARGUMENTS, findings), b"1")
    told = [(error["path"], error["msg"]) for error in json.loads(body)["result"]["errors"]]
    assert told == [("/a", "y"), ("/a", "z"), ("/b", "x")]


def test_a_tools_own_message_is_the_detail() -> None:
    own = Failed(Reason.TOOL_ERROR, details={"error": "No room.", "code": "ROOM.FULL", "data": [1]})
    body, status = Bare(frozenset()).write(own, b"1")
    assert json.loads(body)["result"] == {
        "ok": False,
        "reason": "backend_error",
        "status": 422,
        "detail": "No room.",
    }
    assert status == 422


@pytest.mark.parametrize("given", [{}, {"upstream_body": {"field": "/size"}}])
def test_a_rejection_by_a_backend_has_its_status_and_its_json(given: dict[str, Any]) -> None:
    rejected = Failed(Reason.UPSTREAM_REJECTED, details={"upstream_status": 409, **given})
    body, _ = Bare(frozenset()).write(rejected, b"1")
    told = {"ok": False, "reason": "backend_error", "status": 409, "detail": "request rejected"}
    assert json.loads(body)["result"] == {**told, **given}
