"""HTTP servers inside a test's own event loop, which say exactly the bytes that the test gives them."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeAlias

__all__ = ["HANG", "Answer", "Asked", "Certificates", "Conversation", "Upstream", "answer", "forwarder"]


@dataclass(frozen=True)
class Certificates:
    """An authority that only tests trust, and a server with a certificate from it."""

    ca_file: Path
    server: ssl.SSLContext


@dataclass(frozen=True)
class Asked:
    """A request as it came in."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int
    """Which of the connections it came on, counted from 1."""


@dataclass
class Conversation:
    """One connection, for answers that want to say more than bytes."""

    writer: asyncio.StreamWriter
    asked: Asked
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the client is gone."""


# Bytes to send, or something to do; a last empty one closes the connection.
Answer: TypeAlias = "bytes | Callable[[Conversation], Awaitable[None]]"


async def _hang(conversation: Conversation) -> None:
    await conversation.left.wait()


HANG: Answer = _hang


def answer(
    body: bytes = b"{}", status: int = 200, content_type: str = "application/json", **headers: str
) -> bytes:
    """A whole response."""
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}"]
    if content_type:
        lines.append(f"Content-Type: {content_type}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


class Upstream:
    """A server whose answers are given: one for each request, the last one again and again."""

    def __init__(
        self,
        *answers: Answer,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
        greeting: bytes = b"",
    ) -> None:
        self.answers: list[Answer] = list(answers) or [answer()]
        self.asked: list[Asked] = []
        self.connections = 0
        self.left = asyncio.Event()
        """Set when a client has closed its connection."""
        self._where: dict[str, Any] = {"host": host, "port": port, "ssl": tls}
        self._greeting = greeting
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        scheme = "https" if self._where["ssl"] else "http"
        return f"{scheme}://{self._where['host']}:{self.port}"

    @property
    def targets(self) -> Sequence[str]:
        return [asked.target for asked in self.asked]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, **self._where)
        self.port: int = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.connections += 1
        number = self.connections
        try:
            if self._greeting:
                writer.write(self._greeting)
            while (asked := await _read(reader, number)) is not None:
                self.asked.append(asked)
                said = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if isinstance(said, bytes):
                    if not said:
                        break
                    writer.write(said)
                    continue
                await self._converse(said, Conversation(writer, asked), reader)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self.left.set()
            writer.close()

    async def _converse(
        self,
        said: Callable[[Conversation], Awaitable[None]],
        conversation: Conversation,
        reader: asyncio.StreamReader,
    ) -> None:
        async def watch() -> None:
            try:
                if not await reader.read(1):
                    conversation.left.set()
            except ConnectionError:
                conversation.left.set()

        watching = asyncio.ensure_future(watch())
        try:
            await said(conversation)
        finally:
            watching.cancel()


async def _read(reader: asyncio.StreamReader, number: int) -> Asked | None:
    head = await reader.readuntil(b"\r\n\r\n") if not reader.at_eof() else b""
    if not head:
        return None
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(method, target, headers, body, number)


@contextlib.asynccontextmanager
async def forwarder(port: int) -> AsyncIterator[int]:
    """A proxy that connects everything it is asked for to `port`; yields its own."""
    tasks: set[asyncio.Task[None]] = set()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        await reader.readuntil(b"\r\n\r\n")
        there, back = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(pump(reader, back), pump(there, writer))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield server.sockets[0].getsockname()[1]
    server.close()
    await asyncio.gather(*tasks)
