"""`SseTransport`: a server over HTTP+SSE, as 2024-11-05 had it.

One stream brings all messages of the server. Its first event names the address for ours, which has to be at
the same host: credentials go there. The connection ends with the stream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urljoin

from portbook.model import JSONObject
from portbook.net.destinations import BadDestination, Destinations, ParsedURL, parse_url
from portbook.net.http_client import HttpClient, HttpRequest
from portbook.upstreams.http_transport import UNFINISHED, UNREACHED
from portbook.upstreams.secret_values import ValueReader
from portbook.upstreams.transport import (
    MAX_ANSWER_BYTES,
    BadStatus,
    ConnectionLost,
    NotSent,
    Receiver,
    unexpected_end,
)
from portbook.wire.lines_and_size_limit import OVERSIZE
from portbook.wire.sse import EventReader

__all__ = ["SseTransport"]

_ENDPOINT: Final = "endpoint"


class SseTransport:
    """The connection to one server with an address of the old kind."""

    knows_requests = False
    last_words: str | None = None

    def __init__(
        self,
        url: str,
        headers: ValueReader,
        client: HttpClient,
        destinations: Callable[[], Destinations],
    ) -> None:
        """Listen at `url` where `destinations` permit it."""
        self._url = url
        self._at = parse_url(url)
        self._headers = headers
        self._client = client
        self._destinations = destinations
        self._given: Mapping[str, str] = {}
        self._receiver: Receiver | None = None
        self._endpoint: asyncio.Future[ParsedURL] = asyncio.get_running_loop().create_future()
        self._reader = EventReader(MAX_ANSWER_BYTES)
        self._stream: asyncio.Task[None] | None = None
        self._posts: set[asyncio.Task[None]] = set()

    async def open(self, receiver: Receiver) -> None:
        """Open the stream, and learn where messages go. Raises `NotSent` where that fails."""
        self._given = await self._headers.read_headers()
        self._receiver = receiver
        self._stream = asyncio.get_running_loop().create_task(self._listen())
        self._stream.add_done_callback(self._task_ended)
        await self._endpoint

    def agreed(self, revision: str) -> None:
        """Do nothing: this transport does not name the revision."""

    def send(self, message: JSONObject, data: bytes, of: int | None = None) -> None:
        """Post a message. Raises `NotSent` where the connection is closed."""
        if self._receiver is None:
            raise NotSent("its connection has ended")
        posting = asyncio.get_running_loop().create_task(self._post(data, of))
        self._posts.add(posting)
        posting.add_done_callback(self._task_ended)

    def abandon(self, of: int) -> None:
        """Do nothing: there is one stream for all."""

    async def close(self) -> None:
        """End the stream."""
        self._receiver = None
        tasks = [*self._posts, *(() if self._stream is None else (self._stream,))]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # -- the stream of the server

    def wants(self, status: int, headers: dict[bytes, bytes]) -> bool:
        """Return whether a response is the stream."""
        return status == 200 and headers.get(b"content-type", b"").lower().startswith(b"text/event-stream")

    def take(self, part: bytes) -> None:
        """Deliver the messages that are complete now."""
        for event in self._reader.feed(part):
            if event.kind == _ENDPOINT:
                self._learn(event.data)
            elif event.kind == "message" and event.data.strip() and self._receiver is not None:
                self._receiver.received(event.data, None)
        if self._reader.was_cut and self._receiver is not None:
            self._reader.was_cut = False
            self._receiver.received(OVERSIZE, None)

    async def _listen(self) -> None:
        request = self._request("GET", self._at, None, "text/event-stream")
        try:
            response = await self._client.send(request, self._destinations(), sink=self)
        except UNREACHED as error:
            self._ended(f"it cannot be reached: {error}")
        except UNFINISHED as error:
            self._ended(str(error))
        else:
            is_stream = self.wants(response.status, response.headers)
            self._ended("its stream ended" if is_stream else f"it answered with the status {response.status}")

    def _task_ended(self, task: asyncio.Task[None]) -> None:
        self._posts.discard(task)
        failure = unexpected_end(task)
        if failure is not None:
            self._ended(str(failure))

    def _ended(self, problem: str) -> None:
        if not self._endpoint.done():
            self._endpoint.set_exception(NotSent(problem))
        elif self._receiver is not None:
            self._receiver.lost(problem)

    def _learn(self, data: bytes) -> None:
        """Take the address for our messages; a later one changes nothing."""
        if self._endpoint.done():
            return
        try:
            found = parse_url(urljoin(self._url, data.decode("ascii").strip()))
        except (BadDestination, ValueError):
            self._endpoint.set_exception(NotSent("the address that it names for messages cannot be used"))
            return
        if found.destination != self._at.destination:
            self._endpoint.set_exception(NotSent("the address that it names for messages is at another host"))
        else:
            self._endpoint.set_result(found)

    # -- our messages

    async def _post(self, data: bytes, of: int | None) -> None:
        receiver = self._receiver
        request = self._request("POST", self._endpoint.result(), data, "application/json")
        problem: Exception | None = None
        try:
            response = await self._client.send(request, self._destinations())
        except UNREACHED as error:
            problem = NotSent(f"it cannot be reached: {error}")
        except UNFINISHED as error:
            problem = ConnectionLost(str(error))
        else:
            if not 200 <= response.status < 300:
                problem = BadStatus(f"it answered with the status {response.status}")
        if problem is not None and of is not None and receiver is not None:
            receiver.failed(of, problem)

    def _request(self, method: str, to: ParsedURL, body: bytes | None, accepted: str) -> HttpRequest:
        lines = [("Accept", accepted), *self._given.items()]
        if body is not None:
            lines.append(("Content-Type", "application/json"))
        return HttpRequest(
            to.destination,
            method,
            (to.path or "/") + (f"?{to.query}" if to.query else ""),
            "".join(f"{name}: {value}\r\n" for name, value in lines).encode("latin-1"),
            body,
            max_response_bytes=MAX_ANSWER_BYTES,
            is_listening=method == "GET",
        )
