"""MCP over a connection, in every revision: what is answered, with which code, and what is recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portbook.protocol.conformance import RESULT, SchemaValidator
from portbook.schema.store import SchemaStore
from support.in_process_connection import (
    EVERY_REVISION,
    HANDSHAKES,
    META,
    STATELESS_META,
    Connection,
    handshake,
    params,
)

VALIDATOR = SchemaValidator(SchemaStore())
VALIDATOR.initialize()

every_revision = pytest.mark.parametrize("revision", EVERY_REVISION)


def call(revision: str, name: object, **arguments: object) -> dict[str, object]:
    return params(revision, name=name, arguments=arguments)


@pytest.fixture
def connection() -> Connection:
    return Connection()


@pytest.mark.covers("001.mcp.handshake")
@pytest.mark.parametrize("revision", HANDSHAKES)
def test_initialize_agrees_on_the_revision_asked_for(connection: Connection, revision: str) -> None:
    result = connection.request("initialize", handshake(revision))["result"]
    assert result["protocolVersion"] == revision
    assert result["serverInfo"]["name"] == "portbook"
    assert "tools" in result["capabilities"]
    VALIDATOR.validate("initialize" + RESULT, result, revision)


@pytest.mark.parametrize("asked", ["2099-01-01", "2026-07-28", "1.0", ""])
def test_initialize_offers_the_newest_handshake_for_a_revision_it_cannot_agree_to(
    connection: Connection, asked: str
) -> None:
    assert connection.request("initialize", handshake(asked))["result"]["protocolVersion"] == "2025-11-25"


def test_a_second_initialize_is_refused_and_changes_nothing(connection: Connection) -> None:
    connection.open("2025-06-18")
    assert connection.request("initialize", handshake("2024-11-05"))["error"]["code"] == -32600
    assert (
        "structuredContent"
        in connection.request("tools/call", call("2025-06-18", "echo", text="x"))["result"]
    )


@every_revision
def test_a_tool_is_listed_and_called(connection: Connection, revision: str) -> None:
    connection.open(revision)
    listed = connection.request("tools/list", params(revision))["result"]
    tools = {tool["name"]: tool for tool in listed["tools"]}
    assert list(tools) == sorted(tools)
    assert tools["echo"]["inputSchema"]["properties"] == {"text": {"type": "string"}}
    assert ("annotations" in tools["echo"]) == (revision != "2024-11-05")
    assert ("outputSchema" in tools["echo"]) == (revision >= "2025-06-18")
    VALIDATOR.validate("tools/list" + RESULT, listed, revision)

    result = connection.request("tools/call", call(revision, "echo", text="grüße"))["result"]
    assert result["content"] == [{"type": "text", "text": "grüße"}]
    expected = {"2025-06-18": {"result": "grüße"}, "2025-11-25": {"result": "grüße"}, "2026-07-28": "grüße"}
    assert result.get("structuredContent") == expected.get(revision)
    assert result.get("resultType") == ("complete" if revision == "2026-07-28" else None)
    VALIDATOR.validate("tools/call" + RESULT, result, revision)


@every_revision
def test_structured_content_satisfies_the_schema_that_was_listed(
    connection: Connection, revision: str
) -> None:
    import jsonschema

    connection.open(revision)
    tools = {
        tool["name"]: tool for tool in connection.request("tools/list", params(revision))["result"]["tools"]
    }
    for name in ("echo", "echo_later", "echo_in_thread"):
        result = connection.request("tools/call", call(revision, name, text="x"))["result"]
        if "outputSchema" in tools[name]:
            jsonschema.Draft202012Validator(tools[name]["outputSchema"]).validate(result["structuredContent"])


@every_revision
def test_wrong_arguments_are_an_error_or_a_result_as_the_revision_has_it(
    connection: Connection, revision: str
) -> None:
    connection.open(revision)
    answer = connection.request("tools/call", call(revision, "echo", text=5))
    if revision < "2025-11-25":
        assert answer["error"]["code"] == -32602
        assert answer["error"]["data"]["violations"][0]["pointer"] == "/text"
    else:
        assert answer["result"]["isError"] is True
        assert "/text: expected string" in answer["result"]["content"][0]["text"]
        assert answer["result"]["_meta"]["portbook/refusal"]["reason"] == "BAD_ARGUMENTS"
        VALIDATOR.validate("tools/call" + RESULT, answer["result"], revision)
    assert connection.sink.records[-1]["error"]["reason"] == "BAD_ARGUMENTS"  # type: ignore[index,call-overload]
    assert connection.sink.records[-1]["metadata"]["schemaVersion"] == revision  # type: ignore[index,call-overload]


@pytest.mark.covers("001.layers.codes")
@every_revision
@pytest.mark.parametrize(
    ("method", "given", "code"),
    [
        ("tools/call", {"name": "no_such_tool", "arguments": {}}, -32602),
        ("tools/call", {"name": "ECHO", "arguments": {"text": "x"}}, -32602),
        ("tools/call", {"arguments": {"text": "x"}}, -32602),
        ("tools/call", {"name": 5}, -32602),
        ("tools/call", {"name": "echo", "arguments": []}, -32602),
        ("tools/call", {"name": "echo", "arguments": None}, -32602),
        ("tools/list", {"cursor": 5}, -32602),
        ("tools/list", {"cursor": "bm9uc2Vuc2U="}, -32602),
        ("tools/list", {"cursor": "!"}, -32602),
        ("no/such", {}, -32601),
        ("resources/list", {}, -32601),
        ("sampling/createMessage", {}, -32601),
        ("tools/call ", {"name": "echo"}, -32601),
        ("tool\u017f/call", {"name": "echo"}, -32601),
    ],
)
def test_wrong_params_and_unknown_methods_have_codes_of_their_own(
    connection: Connection, revision: str, method: str, given: dict[str, Any], code: int
) -> None:
    connection.open(revision)
    answer = connection.request(method, params(revision, **given))
    assert answer["error"]["code"] == code
    VALIDATOR.validate("error", answer, revision)
    assert "no_such_tool" not in json.dumps(answer)


@every_revision
@pytest.mark.parametrize("wrong", [[1], "x", 5, None])
def test_params_of_another_type_are_wrong_params(
    connection: Connection, revision: str, wrong: object
) -> None:
    connection.open(revision)
    code = connection.request("tools/call", wrong)["error"]["code"]
    assert code in (-32602, -32600)


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


@every_revision
def test_a_parse_error_has_no_id_where_the_revision_can_do_without(
    connection: Connection, revision: str
) -> None:
    connection.open(revision)
    (answer,) = connection.send(b"{")
    assert answer["error"]["code"] == -32700
    agreed = revision in HANDSHAKES
    assert ("id" in answer) == (not agreed or revision < "2025-11-25")


def test_an_official_request_before_initialize_is_told_what_to_do(connection: Connection) -> None:
    error = connection.request("tools/list")["error"]
    assert error["code"] == -32602
    assert "initialize" in error["data"]["violations"][0]["message"]
    assert connection.request("ping")["result"] == {}


@pytest.mark.covers("001.mcp.stateless")
def test_the_newest_revision_needs_no_handshake(connection: Connection) -> None:
    result = connection.request("server/discover", {"_meta": STATELESS_META})["result"]
    assert result["supportedVersions"] == ["2026-07-28"]
    assert result["_meta"][META + "serverInfo"]["name"] == "portbook"
    VALIDATOR.validate("server/discover" + RESULT, result)
    assert connection.request("ping", {"_meta": STATELESS_META})["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("version", "code"), [("2099-01-01", -32022), ("2025-06-18", -32022), (5, -32602), (None, -32602)]
)
def test_a_revision_that_is_not_spoken_is_refused_with_those_that_are(
    connection: Connection, version: object, code: int
) -> None:
    error = connection.request(
        "tools/list", {"_meta": {**STATELESS_META, META + "protocolVersion": version}}
    )["error"]
    assert error["code"] == code
    if code == -32022:
        assert error["data"]["supported"] == ["2026-07-28"]


def test_a_stateless_request_says_its_capabilities(connection: Connection) -> None:
    meta = {META + "protocolVersion": "2026-07-28"}
    assert connection.request("tools/list", {"_meta": meta})["error"]["code"] == -32602


@every_revision
def test_a_failing_tool_is_a_result_for_the_model_without_its_words(
    connection: Connection, revision: str
) -> None:
    connection.open(revision)
    for tool, arguments in (("raising", {"text": "x"}), ("hanging", {}), ("leaving", {})):
        answer = connection.request("tools/call", call(revision, tool, **arguments))
        assert answer["result"]["isError"] is True
        assert "canary" not in json.dumps(answer)
        VALIDATOR.validate("tools/call" + RESULT, answer["result"], revision)


@pytest.mark.covers("001.outgoing.checked")
@every_revision
def test_a_result_that_breaks_its_schema_never_leaves(connection: Connection, revision: str) -> None:
    connection.open(revision)
    answer = connection.request("tools/call", call(revision, "wrong_result"))
    assert answer["error"]["code"] == -32603
    assert "canary" not in json.dumps(answer)
    assert "violations" not in answer["error"]["data"]
    assert connection.sink.records[-1]["error"]["violations"][0]["message"] == "expected integer"  # type: ignore[index,call-overload]


@every_revision
def test_notifications_are_never_answered_and_wrong_ones_are_recorded(
    connection: Connection, revision: str
) -> None:
    connection.open(revision)
    before = len(connection.sink.records)
    assert (
        connection.ask({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}})
        is None
    )
    assert len(connection.sink.records) == before
    for message in (
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": {}}},
        {"jsonrpc": "2.0", "method": "notifications/no_such"},
        {"jsonrpc": "1.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        {"jsonrpc": "2.0", "method": "tools/call", "params": call(revision, "leaving")},
    ):
        assert connection.ask(message) is None
    assert len(connection.sink.records) == before + 4
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


@pytest.mark.covers("001.validation.modes")
def test_checks_can_warn_or_be_off() -> None:
    bad = {"name": "echo", "arguments": {"text": "x"}, "_meta": 5}
    for mode, warned in (("warn", 1), ("off", 0)):
        connection = Connection(**{"validation.incoming": mode}).open("2025-11-25")
        assert connection.request("tools/call", bad)["result"]["content"][0]["text"] == "x"
        assert len(connection.client.warnings) == warned
    connection = Connection().open("2025-11-25")
    assert connection.request("tools/call", bad)["error"]["code"] == -32602


def test_envelopes_are_still_read_on_an_initialised_connection(connection: Connection) -> None:
    connection.open("2025-11-25")
    answer = connection.request("mcp.tool.invoke", {"tool": "mcp.tool:echo", "input": {"text": "x"}})
    assert answer == {"jsonrpc": "2.0", "id": 1, "result": "x"}


@every_revision
def test_an_odd_contract_never_takes_the_whole_list_away(tmp_path: Path, revision: str) -> None:
    bundles = tmp_path / "schemas" / "tools"
    bundles.mkdir(parents=True)
    anything = {"type": ["object", "null"], "properties": {"text": True}}
    contract = {"tool": "echo", "input": anything, "output": {"type": "object", "properties": {"x": True}}}
    (bundles / "echo.json").write_text(json.dumps(contract))
    anchored = {"$defs": {"n": {"$anchor": "n", "type": "string"}}, "$ref": "#n"}
    (bundles / "later.json").write_text(json.dumps({"tool": "echo_later", "input": {}, "output": anchored}))
    connection = Connection(**{"schemas.root": tmp_path / "schemas"}).open(revision)
    listed = connection.request("tools/list", params(revision))["result"]
    VALIDATOR.validate("tools/list" + RESULT, listed, revision)
    assert {"echo", "echo_later", "leaving"} <= {tool["name"] for tool in listed["tools"]}
    result = connection.request("tools/call", call(revision, "echo_later", text="x"))["result"]
    schema = next(tool.get("outputSchema") for tool in listed["tools"] if tool["name"] == "echo_later")
    if schema:
        import jsonschema

        jsonschema.Draft202012Validator(schema).validate(result["structuredContent"])


def test_an_effect_that_nobody_declared_is_not_called_harmless(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(MANY_TOOLS)
    connection = Connection(tools=tmp_path / "tools.py").open("2025-11-25")
    tool = connection.request("tools/list")["result"]["tools"][0]
    assert tool["annotations"] == {"readOnlyHint": False}


def test_an_agreement_that_could_not_be_recorded_was_not_made(connection: Connection) -> None:
    def fail(record: object) -> None:
        raise OSError("full")

    write, connection.sink.write = connection.sink.write, fail  # type: ignore[method-assign]
    assert connection.request("initialize", handshake("2025-11-25"))["error"]["code"] == -32603
    connection.sink.write = write  # type: ignore[method-assign]
    assert (
        connection.request("initialize", handshake("2025-11-25"))["result"]["protocolVersion"] == "2025-11-25"
    )


def test_what_nobody_foresaw_while_reading_is_answered_and_recorded(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    connection.open("2025-11-25")
    monkeypatch.setattr("portbook.mcp.dialect.revision_of", fail)
    answer = connection.request("tools/list", id=9)
    assert (answer["id"], answer["error"]["code"]) == (9, -32603)
    assert "ZeroDivisionError" in str(connection.sink.records[-1]["error"])
    assert "'executed': False" in str(connection.sink.records[-1]["error"])
    monkeypatch.undo()
    assert "result" in connection.request("tools/list")


@pytest.mark.parametrize("method", ["tools/list", "no/such", "ping"])
def test_an_id_that_is_not_whole_is_refused_before_anything_else(connection: Connection, method: str) -> None:
    connection.open("2025-11-25")
    answer = connection.request(method, id=1.5)
    assert answer["error"]["code"] == -32600
    assert "id" not in answer


MANY_TOOLS = """
from portbook import Toolset
toolset = Toolset("many")
for number in range(250):
    def tool(): ...
    tool.__name__ = f"tool_{number:03}"
    toolset.tool(tool)
"""


@pytest.mark.covers("001.mcp.paging")
@every_revision
def test_a_long_list_comes_in_pages(tmp_path: Path, revision: str) -> None:
    tools = tmp_path / "many.py"
    tools.write_text(MANY_TOOLS)
    connection = Connection(tools=tools).open(revision)
    names: list[str] = []
    sizes: list[int] = []
    cursor: dict[str, object] = {}
    while True:
        page = connection.request("tools/list", params(revision, **cursor))["result"]
        names += [tool["name"] for tool in page["tools"]]
        sizes.append(len(page["tools"]))
        if "nextCursor" not in page:
            break
        cursor = {"cursor": page["nextCursor"]}
    assert sizes == [100, 100, 50]
    assert names == [f"tool_{number:03}" for number in range(250)]


SHAPES = """
from typing import Any
from portbook import Toolset
from pydantic import BaseModel
toolset = Toolset("shapes")
class Node(BaseModel):
    name: str
    children: list["Node"] = []
@toolset.tool
def model() -> Node: return Node(name="a", children=[Node(name="b")])
@toolset.tool
def models() -> list[Node]: return [Node(name="a")]
@toolset.tool
def maybe() -> Node | None: return Node(name="a")
@toolset.tool
def nothing() -> None: ...
@toolset.tool
def anything(): return {"a": 1}
@toolset.tool
def any_list() -> Any: return [1]
@toolset.tool
def number() -> float: return 1.5
@toolset.tool
def free(value: Any) -> dict[str, Any]: return {"value": value}
"""


@every_revision
def test_results_of_every_shape_fit_the_revision_and_their_listed_schema(
    tmp_path: Path, revision: str
) -> None:
    import jsonschema

    tools = tmp_path / "shapes.py"
    tools.write_text(SHAPES)
    connection = Connection(tools=tools).open(revision)
    listed = connection.request("tools/list", params(revision))["result"]["tools"]
    assert len(listed) == 8
    for tool in listed:
        arguments = {"value": 1} if tool["name"] == "free" else {}
        answer = connection.request("tools/call", call(revision, tool["name"], **arguments))
        assert "result" in answer, (tool["name"], answer)
        result = answer["result"]
        VALIDATOR.validate("tools/call" + RESULT, result, revision)
        if "outputSchema" in tool:
            jsonschema.Draft202012Validator(tool["outputSchema"]).validate(result["structuredContent"])
        elif revision < "2025-06-18":
            assert "structuredContent" not in result


PROGRESS = """
import asyncio, threading
from portbook import Context, Toolset
toolset = Toolset("progress")
@toolset.tool
def in_thread(context: Context, steps: int) -> int:
    for step in range(steps): context.progress(step, steps, "working")
    return steps
@toolset.tool(inline=True)
def inline(context: Context) -> str:
    context.progress(0.5)
    return "done"
@toolset.tool
async def later(context: Context) -> str:
    context.progress(1, 2)
    await asyncio.sleep(0)
    context.progress(2, 2)
    return "done"
"""


@pytest.mark.covers("001.mcp.progress")
@every_revision
def test_progress_is_told_to_who_asked_for_it(tmp_path: Path, revision: str) -> None:
    tools = tmp_path / "progress.py"
    tools.write_text(PROGRESS)
    connection = Connection(tools=tools).open(revision)
    for name, arguments, expected in (
        ("in_thread", {"steps": 3}, [0, 1, 2]),
        ("inline", {}, [0.5]),
        ("later", {}, [1, 2]),
    ):
        before = len(connection.client.notifications)
        given = params(revision, name=name, arguments=arguments, _meta={"progressToken": "t-1"})
        assert "result" in connection.request("tools/call", given)
        told = connection.client.notifications[before:]
        assert [message["params"]["progress"] for message in told] == expected
        for message in told:
            assert message["params"]["progressToken"] == "t-1"
            VALIDATOR.validate("notifications/progress", message, revision)
        connection.request("tools/call", params(revision, name=name, arguments=arguments))
        assert connection.client.notifications[before:] == told


def test_a_context_is_no_argument(tmp_path: Path) -> None:
    tools = tmp_path / "progress.py"
    tools.write_text(PROGRESS)
    connection = Connection(tools=tools).open("2025-11-25")
    listed = {tool["name"]: tool for tool in connection.request("tools/list")["result"]["tools"]}
    assert list(listed["in_thread"]["inputSchema"]["properties"]) == ["steps"]


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
