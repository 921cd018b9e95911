"""HTTP+SSE as a client: the address for messages, the stream, and its end."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from portbook.net.destinations import Destinations
from portbook.net.http_client import HttpClient
from portbook.upstreams.secret_values import GivenSecrets, ValueReader
from portbook.upstreams.sse_transport import SseTransport
from portbook.upstreams.transport import BadStatus, NotSent
from portbook.wire.lines_and_size_limit import Frame

STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


class Receiver:
    def __init__(self) -> None:
        self.messages: list[Any] = []
        self.failures: dict[int, Exception] = {}
        self.lost_because: str | None = None
        self.changed = asyncio.Event()

    def received(self, frame: Frame, of: int | None) -> None:
        assert of is None
        self.messages.append(json.loads(frame) if isinstance(frame, bytes) else "oversize")
        self.changed.set()

    def awaits(self, of: int) -> bool:
        raise NotImplementedError

    def failed(self, of: int, error: Exception) -> None:
        self.failures[of] = error
        self.changed.set()

    def lost(self, problem: str) -> None:
        self.lost_because = problem
        self.changed.set()


class Server:
    """Names an endpoint, and answers each message on the stream."""

    def __init__(self, endpoint: str, status: int = 202, head: bytes = STREAM) -> None:
        self.endpoint = endpoint
        self.status = status
        self.head = head
        self.targets: list[str] = []
        self._stream: asyncio.StreamWriter | None = None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, target, _ = head.split(" ", 2)
        self.targets.append(f"{method} {target}")
        if method == "GET":
            self._stream = writer
            writer.write(self.head + f"event: endpoint\ndata: {self.endpoint}\n\n".encode())
            return
        length = int(head.lower().partition("content-length: ")[2].split("\r\n")[0])
        message = json.loads(await reader.readexactly(length))
        writer.write(b"HTTP/1.1 %d X\r\nContent-Length: 0\r\n\r\n" % self.status)
        writer.close()
        await writer.wait_closed()
        if self._stream is not None and self.status == 202:
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": {}}
            self._stream.write(f"data: {json.dumps(answer)}\n\n".encode())

    async def hang_up(self) -> None:
        if self._stream is not None:
            self._stream.close()
            await self._stream.wait_closed()


async def talk(server: Server, use: Any) -> Receiver:
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/old/sse?a=b"
    permitted, client, receiver = Destinations.of_base_urls([url]), HttpClient(), Receiver()
    headers = ValueReader("mcp.x.headers", {}, {}, Path(), GivenSecrets())
    server.endpoint = server.endpoint.replace("PORT", url.split(":")[2].split("/", maxsplit=1)[0])
    transport = SseTransport(url, headers, client, lambda: permitted)
    try:
        async with asyncio.timeout(10):
            await transport.open(receiver)
            await use(transport, receiver)
    finally:
        await transport.close()
        await client.close()
        await server.hang_up()
        listening.close()
    return receiver


async def one_message(transport: SseTransport, receiver: Receiver) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    transport.send(message, json.dumps(message).encode(), 1)
    await receiver.changed.wait()


@pytest.mark.parametrize(
    ("endpoint", "target"),
    [("/messages?s=1", "/messages?s=1"), ("messages", "/old/messages"), ("?s=2", "/old/sse?s=2")],
)
def test_messages_go_to_the_address_that_the_stream_names(endpoint: str, target: str) -> None:
    server = Server(endpoint)
    receiver = asyncio.run(talk(server, one_message))
    assert server.targets == ["GET /old/sse?a=b", f"POST {target}"]
    assert [each["id"] for each in receiver.messages] == [1]


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("http://elsewhere.example/messages", "at another host"),
        ("//elsewhere.example/messages", "at another host"),
        ("https://127.0.0.1:PORT/messages", "at another host"),
        ("http://user@127.0.0.1/x", "cannot be used"),
        ("file:///etc/passwd", "cannot be used"),
    ],
)
def test_an_address_that_is_elsewhere_gets_nothing(endpoint: str, said: str) -> None:
    with pytest.raises(NotSent, match=said):
        asyncio.run(talk(Server(endpoint), one_message))


def test_what_is_no_stream_is_no_server() -> None:
    head = b"HTTP/1.1 404 X\r\nContent-Length: 0\r\n\r\n"
    with pytest.raises(NotSent, match="the status 404"):
        asyncio.run(talk(Server("/m", head=head), one_message))


def test_a_message_that_is_refused_fails_alone() -> None:
    receiver = asyncio.run(talk(Server("/m", status=400), one_message))
    assert isinstance(receiver.failures[1], BadStatus)
    assert receiver.lost_because is None


def test_the_connection_ends_with_the_stream() -> None:
    server = Server("/m")

    async def hang_up(transport: SseTransport, receiver: Receiver) -> None:
        await server.hang_up()
        await receiver.changed.wait()

    assert asyncio.run(talk(server, hang_up)).lost_because == "its stream ended"
