"""A load balancer without a memory: each request goes to the next server, whoever sends it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit


@contextlib.contextmanager
def round_robin(urls: Sequence[str]) -> Iterator[tuple[str, list[int]]]:
    """Its address, and to which of the servers each request so far went."""
    went: list[int] = []
    loop = asyncio.new_event_loop()
    proxy = _Proxy(urls, went)
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        port = asyncio.run_coroutine_threadsafe(proxy.start(), loop).result(30)
        yield f"http://127.0.0.1:{port}", went
    finally:
        asyncio.run_coroutine_threadsafe(proxy.stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


class _Proxy:
    def __init__(self, urls: Sequence[str], went: list[int]) -> None:
        self._servers = [urlsplit(url) for url in urls]
        self._next = itertools.cycle(range(len(urls)))
        self._went = went
        self._serving: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self._server.close()
        for each in tuple(self._serving):
            each.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass one request on, and its response back; the next one comes on a connection of its own."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            lines = head.split(b"\r\n")[:-2]
            sent = [line for line in lines if not line.lower().startswith(b"connection:")]
            length = next(
                (int(line[15:]) for line in lines if line.lower().startswith(b"content-length:")), 0
            )
            body = await reader.readexactly(length)
            chosen = next(self._next)
            self._went.append(chosen)
            server = self._servers[chosen]
            coming, going = await asyncio.open_connection(server.hostname, server.port)
            try:
                going.write(b"\r\n".join([*sent, b"Connection: close", b"", b""]) + body)
                leaving = asyncio.get_running_loop().create_task(reader.read())
                try:
                    await self._copy(coming, writer, leaving)
                finally:
                    leaving.cancel()
            finally:
                going.close()
        writer.close()

    async def _copy(
        self, coming: asyncio.StreamReader, writer: asyncio.StreamWriter, leaving: asyncio.Task[bytes]
    ) -> None:
        while True:
            reading = asyncio.get_running_loop().create_task(coming.read(65_536))
            await asyncio.wait((reading, leaving), return_when=asyncio.FIRST_COMPLETED)
            if not reading.done():
                reading.cancel()
                return
            data = reading.result()
            if not data:
                return
            writer.write(data)
            await writer.drain()
