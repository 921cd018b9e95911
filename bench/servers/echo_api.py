"""An HTTP API with one operation: `GET /echo?text=…` answers with the text, as JSON. It checks nothing."""

import asyncio
import os
import sys
from urllib.parse import parse_qs

import httptools
import orjson
import uvloop

__all__ = ["main"]

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"


class Api(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to parse."""
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)

    def data_received(self, data: bytes) -> None:
        """Parse."""
        self.parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        """Keep the target."""
        self.query = parse_qs(url.partition(b"?")[2].decode())

    def on_message_complete(self) -> None:
        """Answer."""
        body = orjson.dumps({"text": self.query["text"][0]})
        self.transport.write(_HEAD % len(body) + body)


async def _serve(port: int) -> None:
    """Serve until standard input ends, and with it whoever started this."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(0, lambda: ended.set() if not os.read(0, 1) else None)
    server = await loop.create_server(Api, "127.0.0.1", port)
    await ended.wait()
    server.close()


def main() -> None:
    """Serve on the port that is named."""
    uvloop.run(_serve(int(sys.argv[1])))


if __name__ == "__main__":
    main()
