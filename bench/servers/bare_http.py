"""The floor over HTTP: `httptools` under uvloop. It checks nothing and records nothing.

Answers every POST as the bare loop answers a line. Whatever a request costs here, few servers in Python save.
"""

import asyncio
import os
import sys

import httptools
import orjson
import uvloop
from bare_loop import answer

__all__ = ["main"]

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_ACCEPTED = b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n"


class Bare(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to parse."""
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)
        self.body = b""

    def data_received(self, data: bytes) -> None:
        """Parse."""
        self.parser.feed_data(data)

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body."""
        self.body += body

    def on_message_complete(self) -> None:
        """Answer."""
        body = answer(orjson.loads(self.body)) if self.body else b"{}"
        self.body = b""
        self.transport.write(_ACCEPTED if body is None else _HEAD % len(body) + body)


async def _serve(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Bare, "127.0.0.1", port)
    await server.serve_forever()


async def _serve_until_input_ends(port: int) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(0, lambda: ended.set() if not os.read(0, 1) else None)
    serving = asyncio.ensure_future(_serve(port))
    await ended.wait()
    serving.cancel()


def main() -> None:
    """Serve on the port that is named; behind a proxy, until the proxy ends and standard input with it."""
    port = int(sys.argv[1])
    uvloop.run(_serve_until_input_ends(port) if sys.argv[2:] == ["--behind"] else _serve(port))


if __name__ == "__main__":
    main()
