"""The floor of a tool of an HTTP API: our own HTTP client sends the request, and nothing else is done.

Answers as the bare loop does, with what the API said. It checks nothing and records nothing.
"""

import asyncio
import os
import sys
from urllib.parse import quote

import orjson
from bare_loop import answer

from portbook.net import http_connection
from portbook.net.destinations import Destinations, parse_url
from portbook.net.http_client import HttpClient, HttpRequest

__all__ = ["main"]

_CHUNK = 1 << 16


class _Caller:
    """Calls one API, and writes each answer when it is there."""

    def __init__(self, url: str) -> None:
        self._client = HttpClient()
        self._destination = parse_url(url).destination
        self._destinations = Destinations(own=[url])

    async def call(self, message: dict) -> None:
        if message.get("method") == "tools/call" and message["params"]["name"] == "mark":
            os.getppid()  # callgrind starts a new count there
        elif message.get("method") == "tools/call":
            text = quote(message["params"]["arguments"]["text"])
            headers = b"Accept: application/json\r\n"
            request = HttpRequest(self._destination, "GET", f"/echo?text={text}", headers)
            response = await self._client.send(request, self._destinations)
            message["params"]["arguments"] = orjson.loads(response.body)
        answered = answer(message)
        if answered is not None:
            _write_all(answered + b"\n")

    async def close(self) -> None:
        await self._client.close()


async def _serve(url: str) -> None:
    loop, caller = asyncio.get_running_loop(), _Caller(url)
    ended, running, tail = asyncio.Event(), set(), b""

    def read() -> None:
        nonlocal tail
        chunk = os.read(0, _CHUNK)
        if not chunk:
            loop.remove_reader(0)
            ended.set()
        *lines, tail = (tail + chunk).split(b"\n")
        for line in lines:
            task = loop.create_task(caller.call(orjson.loads(line)))
            running.add(task)
            task.add_done_callback(running.discard)

    loop.add_reader(0, read)
    await ended.wait()
    await caller.close()


def _write_all(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def main() -> None:
    """Answer every line of standard input until it ends, from the API at the address that is named."""
    if "--unhurried" in sys.argv:  # for callgrind: an idle connection would be closed while it counts
        vars(http_connection)["_IDLE_S"] = 3600.0
    asyncio.run(_serve(sys.argv[1]))


if __name__ == "__main__":
    main()
