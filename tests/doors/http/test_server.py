"""A connection whose head never ends is closed; one that is used is not."""

from __future__ import annotations

import asyncio

import pytest

from portbook.doors.http import server as http_server
from portbook.doors.http.asgi import Receive, Scope, Send
from portbook.doors.http.response import plain


@pytest.mark.covers("design.mcp-http.head-deadline")
@pytest.mark.parametrize(
    "sent", [b"", b"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx: "], ids=["nothing", "half a head"]
)
def test_whoever_sends_no_whole_head_in_time_is_cut_off(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "_HEAD_SECONDS", 0.1)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(0.3)  # longer than a head may take
        await plain(send, 200, "here")

    async def main() -> None:
        listener = http_server.bind("127.0.0.1", 0)
        server = http_server.HttpServer(app, listener)
        serving = asyncio.create_task(server.serve())
        address = listener.getsockname()
        reader, writer = await asyncio.open_connection(*address)
        writer.write(sent)
        assert await asyncio.wait_for(reader.read(), 20) == b""
        writer.close()
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        assert (await asyncio.wait_for(reader.read(), 20)).startswith(b"HTTP/1.1 200")
        writer.close()
        server.stop()
        await serving

    asyncio.run(main())
