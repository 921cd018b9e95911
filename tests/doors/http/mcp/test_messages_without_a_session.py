"""Messages without a session: one after the other, or many at once, each stands alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.in_process_connection import META, STATELESS_META
from support.mcp_http_client import EVERYTHING, Client, Exchange, run, serving

CLIENT = {META + "clientInfo": {"name": "t", "version": "1"}}
SECRET = "sk-ant-api03-" + "abcdefghijklmnopqrstuvwx" * 2
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def call(**changed: Any) -> dict[str, Any]:
    """A call of a tool with a marked argument; None takes a member away."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}
    message["params"] = {"name": "test_x_mcp_header", "arguments": {"region": "eu"}, "_meta": STATELESS_META}
    return {name: value for name, value in (message | changed).items() if value is not None}


def params(**changed: Any) -> dict[str, Any]:
    changed = call()["params"] | changed
    return call(params={name: value for name, value in changed.items() if value is not None})


def meta(**changed: Any) -> dict[str, Any]:
    given = {META + name: value for name, value in changed.items()}
    return params(
        _meta={name: value for name, value in (STATELESS_META | given).items() if value is not None}
    )


def more(**members: Any) -> dict[str, Any]:
    return params(_meta={**STATELESS_META, **CLIENT, **members})


# Messages and headers, valid and not: whether one is read the short way or the long one changes nothing.
MESSAGES: dict[str, tuple[Any, dict[str, str]]] = {
    "valid": (call(), {}),
    "valid, with who the client is": (params(_meta={**STATELESS_META, **CLIENT}), {}),
    "no version of JSON-RPC": (call(jsonrpc=None), {}),
    "another version of JSON-RPC": (call(jsonrpc="1.0"), {}),
    "no id": (call(id=None), {}),
    "an id that is a fraction": (call(id=1.5), {}),
    "an id that is a whole fraction": (b'{"jsonrpc":"2.0","id":1.0,"method":"tools/list"}', {}),
    "an id that is true": (call(id=True), {}),
    "an id that is long": (call(id="x" * 300), {}),
    "an id that is text": (call(id="seven"), {}),
    "a result beside the method": (call(result={}), {}),
    "an error beside the method": (call(error={}), {}),
    "another member": (call(more=1), {}),
    "an answer instead of a request": ({"jsonrpc": "2.0", "id": 7, "result": {}}, {}),
    "a batch": ([call()], {}),
    "a method that is a number": (call(method=5), {}),
    "a method of the handshake era": (call(method="ping"), {"mcp-method": "ping"}),
    "a notification": (call(method="notifications/cancelled", id=None, params={"requestId": 7}), {}),
    "a request that is a notification": (call(method="notifications/cancelled"), {}),
    "no params": (call(params=None), {}),
    "params that are a list": (call(params=[]), {}),
    "no name": (params(name=None), {}),
    "a name that is a number": (params(name=5), {}),
    "another name": (params(name="echo"), {}),
    "arguments that are a list": (params(arguments=[]), {}),
    "no arguments": (params(arguments=None), {}),
    "a task": (params(task={}), {}),
    "a state that is none": (params(requestState="nonsense"), {}),
    "answers to nothing": (params(inputResponses={"a": {}}), {}),
    "no _meta": (params(_meta=None), {}),
    "_meta that is a list": (params(_meta=[]), {}),
    "no revision": (meta(protocolVersion=None), {}),
    "a revision that is a number": (meta(protocolVersion=5), {}),
    "a revision that is a list": (meta(protocolVersion=[]), {}),
    "another revision": (meta(protocolVersion="2025-11-25"), {}),
    "an unknown revision": (meta(protocolVersion="2099-01-01"), {}),
    "another revision, in both": (
        meta(protocolVersion="2099-01-01"),
        {"mcp-protocol-version": "2099-01-01"},
    ),
    "no capabilities": (meta(clientCapabilities=None), {}),
    "capabilities that are text": (meta(clientCapabilities="all"), {}),
    "a client that is text": (meta(clientInfo="me"), {}),
    "a client without a version": (meta(clientInfo={"name": "me"}), {}),
    "a trace": (more(traceparent=PARENT), {}),
    "a trace in a header": (call(), {"traceparent": PARENT}),
    "a token for progress": (more(progressToken="here"), {}),
    "a session in _meta": (more(**{"portbook/session_id": "mine"}), {}),
    "a session that is a secret": (more(**{"portbook/session_id": SECRET}), {}),
    "an approval that is none": (more(**{"portbook/approval_id": "none"}), {}),
    "an envelope": (more(capture_provenance=True), {}),
    "something of others": (more(**{"example.com/more": [1]}), {}),
    "no header for the method": (call(), {"mcp-method": "-"}),
    "another method in the header": (call(), {"mcp-method": "tools/list"}),
    "no header for the name": (call(), {"mcp-name": "-"}),
    "another name in the header": (call(), {"mcp-name": "echo"}),
    "a name in base64": (call(), {"mcp-name": "=?base64?dGVzdF94X21jcF9oZWFkZXI=?="}),
    "a name that is base64 itself": (
        params(name="=?base64?ZWNobw==?="),
        {"mcp-name": "=?base64?ZWNobw==?="},
    ),
    "another argument in the header": (call(), {"mcp-param-region": "us"}),
    "no argument in the header": (call(), {"mcp-param-region": "-"}),
    "not JSON": (b"{", {}),
    "a key twice": (b'{"jsonrpc":"2.0","id":7,"id":8,"method":"tools/list"}', {}),
}

VOLATILE = ("ts", "requestId", "traceId", "spanId", "durationMs", "run_id", "latency_ms")


def stable(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: stable(each) for name, each in value.items() if name not in VOLATILE}
    return [stable(each) for each in value] if isinstance(value, list) else value


def send(client: Client, message: object, **changed: str) -> Exchange:
    headers = {
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "test_x_mcp_header",
        "mcp-param-region": "eu",
    }
    data = message if isinstance(message, bytes) else json.dumps(message, separators=(",", ":")).encode()
    return client.start(data, **(headers | changed))


@pytest.mark.parametrize("case", MESSAGES)
def test_a_message_gets_the_same_answer_whatever_came_before_it(tmp_path: Path, case: str) -> None:
    message, changed = MESSAGES[case]

    async def main() -> None:
        told: list[Any] = []
        for before in (0, 3):
            folder = tmp_path / str(before)
            folder.mkdir()
            async with serving(folder, EVERYTHING) as client:
                for _ in range(before):
                    for usual in (call(), params(_meta={**STATELESS_META, **CLIENT})):
                        assert (await send(client, usual).ended()).status == 200
                answered = await send(client, message, **changed).ended()
                messages = stable(answered.messages)
                told.append((answered.status, messages, stable(client.sink.records[-1])))
        assert told[0] == told[1]

    run(main())


@pytest.mark.covers("design.mcp-http.stateless")
def test_clients_that_use_the_same_id_at_the_same_time_are_both_served(tmp_path: Path) -> None:
    tools = tmp_path / "pairs.py"
    tools.write_text(
        "import asyncio\nfrom portbook import Toolset\ntoolset = Toolset('pairs')\nmet = asyncio.Barrier(2)\n"
        "@toolset.tool(effect='read')\nasync def meet(name: str) -> str:\n"
        "    await met.wait()\n    return name\n"
    )

    async def main() -> None:
        async with serving(tmp_path, tools) as client:
            await client.open("2026-07-28")
            calls = [
                client.ask("tools/call", {"name": "meet", "arguments": {"name": name}}, id=1) for name in "ab"
            ]
            told = [(await each.ended()).messages[-1]["result"]["content"][0]["text"] for each in calls]
            assert told == ["a", "b"]

    run(main())


def test_as_many_clients_may_listen_as_are_connected(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            await client.open("2026-07-28")
            wanted = {"notifications": {"toolsListChanged": True}}
            streams = [
                client.ask("subscriptions/listen", wanted, id=1) for _ in range(70)
            ]  # one had 64 at most
            for stream in streams:
                await stream.until(lambda stream=stream: bool(stream.messages))
                assert stream.messages[0]["method"] == "notifications/subscriptions/acknowledged"
            for stream in streams:
                await stream.leave()

    run(main())
