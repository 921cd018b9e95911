"""HTTP+SSE of 2024-11-05: messages go one way, answers come the other."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from support.in_process_connection import handshake
from support.mcp_http_client import Client, Exchange, run, serving

HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": handshake("2024-11-05")}
SLOW = {
    "jsonrpc": "2.0",
    "id": 2,
    "method": "tools/call",
    "params": {"name": "slow", "arguments": {"seconds": 30}},
}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


async def connect(client: Client) -> tuple[Exchange, str]:
    """Open a stream; return it, and the address to send messages to."""
    stream = client.start(method="GET", path="/sse")
    await stream.until(lambda: b"\n\n" in stream.body)
    name, place = stream.body.decode().splitlines()[:2]
    assert name == "event: endpoint"
    return stream, place.removeprefix("data: ")


def messages(stream: Exchange) -> list[Any]:
    """The messages that came after the address."""
    return Exchange(body=stream.body.partition(b"\n\n")[2], headers=stream.headers).messages


@pytest.mark.covers("design.mcp-http.legacy-sse")
def test_messages_are_accepted_and_answered_on_the_stream(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            stream, place = await connect(client)
            for sent in (HELLO, call("echo", text="hello")):
                accepted = await client.send(sent, path=place)
                assert (accepted.status, accepted.body) == (202, b"")
            await stream.until(lambda: len(messages(stream)) == 2)
            greeted, called = messages(stream)
            assert greeted["result"]["protocolVersion"] == "2024-11-05"
            assert called["result"]["content"] == [{"type": "text", "text": "hello"}]
            await stream.leave()

    run(main())


def test_a_message_needs_the_session_and_the_key_that_opened_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            client.key = "one"
            stream, place = await connect(client)
            for where in ("/messages", "/messages?session_id=none"):
                assert (await client.send(HELLO, path=where)).status == 404
            client.key = "two"
            assert (await client.send(HELLO, path=place)).status == 404
            client.key = "one"
            assert (await client.send(HELLO, path=place)).status == 202
            await stream.leave()
            assert (await client.send(HELLO, path=place)).status == 404

    run(main())


def test_what_is_refused_unread_says_so_itself(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as client:
            stream, place = await connect(client)
            assert (await client.send(HELLO, path=place, content_type="text/plain")).status == 415
            assert (await client.send(b" " * 1_048_577, path=place)).status == 413
            assert (await client.send(method="GET", path="/sse", accept="application/json")).status == 406
            assert (await client.send(HELLO, path=place, origin="http://evil.test")).status == 403
            await stream.leave()

    run(main())


def test_a_client_that_leaves_cancels_its_calls(tmp_path: Path) -> None:
    tools = tmp_path / "slow.py"
    tools.write_text(
        "import asyncio\nfrom portbook import Toolset\ntoolset = Toolset('slow')\n"
        "@toolset.tool(effect='read')\nasync def slow(seconds: int) -> str:\n"
        "    await asyncio.sleep(seconds)\n    return ''\n"
    )

    async def main() -> None:
        async with serving(tmp_path, tools) as client:
            stream, place = await connect(client)
            await client.send(HELLO, path=place)
            assert (await client.send(SLOW, path=place)).status == 202
            await stream.leave()
            while not any(record["metadata"]["toolId"] for record in client.sink.records):
                await asyncio.sleep(0.01)
            assert client.sink.records[-1]["error"]["reason"] == "CANCELLED"

    run(main())
