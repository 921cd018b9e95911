"""`HttpTransport`: a server over Streamable HTTP, in both eras.

Every message is a POST; its answer is a JSON document or a stream of events, on which the server may say and
ask more before it answers. In the handshake era the server has a session, and a stream of its own for what
belongs to no request. A stream that ends before its answer is resumed from its last event, if it named one.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from portbook.model import JSON, JSONObject
from portbook.net.destinations import Destinations, parse_url
from portbook.net.dns_and_dial import NotPermitted, Unreachable, Untrusted
from portbook.net.http_client import HttpClient, HttpRequest
from portbook.net.http_connection import Broken, Response, TooLarge
from portbook.protocol.mirrored_headers import NAMED_BY, Mark
from portbook.protocol.revisions_and_methods import REVISIONS
from portbook.upstreams.secret_values import ValueReader
from portbook.upstreams.transport import (
    MAX_ANSWER_BYTES,
    BadStatus,
    ConnectionLost,
    NotSent,
    Receiver,
    SaysNothing,
    SessionLost,
    unexpected_end,
)
from portbook.wire.lines_and_size_limit import OVERSIZE
from portbook.wire.sse import EventReader

__all__ = ["UNFINISHED", "UNREACHED", "HttpTransport", "UpstreamEvents", "mirrored_headers"]

_SESSION: Final = b"mcp-session-id"
_ACCEPTED: Final = "application/json, text/event-stream"
_RETRY_S: Final = 1.0
# Of a request that is answered on a stream that keeps ending, and of the server's own stream.
_MAX_RESUMPTIONS: Final = 20
_LONGEST_WAIT_S: Final = 30.0
_GOODBYE_S: Final = 2.0
# Answers and notifications of ours that wait to be sent; a server that asks faster gets no answer.
_MAX_ASIDE: Final = 256

_DENIED: Final = frozenset({401, 403})
# They say nothing of what a server speaks: credentials, load, time.
_SAYS_NOTHING: Final = frozenset({401, 403, 407, 408, 429})
_NO_STREAM: Final = frozenset({404, 405, 400, 406, 501})


class HttpTransport:
    """The connection to one server with an address."""

    knows_requests = True
    last_words: str | None = None

    def __init__(
        self,
        url: str,
        headers: ValueReader,
        client: HttpClient,
        destinations: Callable[[], Destinations],
        marks: Callable[[str], tuple[Mark, ...]],
    ) -> None:
        """Send to `url` where `destinations` permit it; `marks` returns what a tool wants in headers."""
        parsed = parse_url(url)
        self._destination = parsed.destination
        self._target = (parsed.path or "/") + (f"?{parsed.query}" if parsed.query else "")
        self._headers = headers
        self._client = client
        self._destinations = destinations
        self._marks = marks
        self._given: Mapping[str, str] = {}
        self._receiver: Receiver | None = None
        self._revision: str | None = None
        self._session: str | None = None
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._others: set[asyncio.Task[None]] = set()
        self._has_stream = False
        self._is_denied = False

    async def open(self, receiver: Receiver) -> None:
        """Read the headers that the settings name. Raises `NotSent` where one is missing."""
        self._given = await self._headers.read_headers()
        self._receiver = receiver

    def agreed(self, revision: str) -> None:
        """Name the revision in every request from now on."""
        self._revision = revision

    def send(self, message: JSONObject, data: bytes, of: int | None = None) -> None:
        """Post a message. Raises `NotSent` where the connection is closed."""
        if self._receiver is None:
            raise NotSent("its connection has ended")
        if of is None:
            if len(self._others) >= _MAX_ASIDE:
                raise NotSent("it does not take what it is sent")
            self._spawn(self._post_aside(message, data))
            return
        task = asyncio.get_running_loop().create_task(self._post(message, data, of))
        self._tasks[of] = task
        task.add_done_callback(partial(self._posted, of))

    def _posted(self, of: int, task: asyncio.Task[None]) -> None:
        self._tasks.pop(of, None)
        failure = unexpected_end(task)
        if failure is not None and self._receiver is not None:
            self._receiver.failed(of, failure)

    def abandon(self, of: int) -> None:
        """Close the stream of a request: in the newest revision that is how it is cancelled."""
        task = self._tasks.pop(of, None)
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    async def close(self) -> None:
        """End the session and every stream."""
        self._receiver = None
        tasks = [*self._tasks.values(), *self._others]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._session is not None:
            try:
                async with asyncio.timeout(_GOODBYE_S):
                    await self._client.send(self._request("DELETE", None), self._destinations())
            except (*UNREACHED, *UNFINISHED, TimeoutError):
                pass  # the server forgets the session by itself

    # -- requests

    async def _post(self, message: JSONObject, data: bytes, of: int) -> None:
        """Post a request, and deliver all that comes of it."""
        receiver = self._receiver
        assert receiver is not None
        stream = UpstreamEvents(receiver, of)
        try:
            response = await self._client.send(
                self._message(message, data), self._destinations(), sink=stream
            )
            if response.status == 401 and await self._has_new_headers():  # it was not looked at
                response = await self._client.send(
                    self._message(message, data), self._destinations(), sink=stream
                )
            self._take_response(message, response, stream, receiver, of)
            await self._resume_until_answered(stream)
        except UNREACHED as error:
            receiver.failed(of, NotSent(f"it cannot be reached: {error}"))
        except NotSent as error:  # a header that cannot be read any more
            receiver.failed(of, error)
        except UNFINISHED as error:
            if stream.last_id is None:
                receiver.failed(of, ConnectionLost(str(error)))
            await self._resume_until_answered(stream)
        receiver.failed(of, ConnectionLost("its stream ended before the answer"))

    async def _has_new_headers(self) -> bool:
        """Read the headers again, such as a token that was renewed; return whether they are different now.

        Raises `NotSent` where one is missing.
        """
        before, self._given = self._given, await self._headers.read_headers()
        return self._given != before

    def _take_response(
        self, message: JSONObject, response: Response, stream: UpstreamEvents, receiver: Receiver, of: int
    ) -> None:
        status, kind = response.status, response.headers.get(b"content-type", b"").lower()
        if message.get("method") == "initialize" and status == 200:
            named = response.headers.get(_SESSION)
            self._session = None if named is None else named.decode("latin-1")
        happened = self._happened(status, receiver)
        if stream.has_begun:
            return
        if status == 404 and self._session is not None:
            receiver.failed(of, SessionLost("it has forgotten the session"))
            receiver.lost("it has forgotten the session")
        elif status in _SAYS_NOTHING or status >= 500:
            receiver.failed(of, SaysNothing(happened))
        else:
            if kind.startswith(b"application/json") and response.body:
                receiver.received(response.body, of)
            if status == 200 and receiver.awaits(of):
                receiver.unusable(of, *_wrong_in(response, kind))
            # Also for an error without an id, as a server sends that could not read ours.
            receiver.failed(of, BadStatus(happened))

    def _happened(self, status: int, receiver: Receiver) -> str:
        """Return what a status says; the operator learns of credentials that are not accepted."""
        happened = f"it answered with the status {status}"
        if status in _DENIED:
            happened = f"{happened}: its credentials were not accepted; see {self._headers.place}"
        if status == 401 or self._is_denied:
            self._is_denied = status == 401
            receiver.troubled(happened if self._is_denied else None)
        return happened

    async def _resume_until_answered(self, stream: UpstreamEvents) -> None:
        """Ask for the rest of a stream that ended before its answer, from its last event on."""
        for _ in range(_MAX_RESUMPTIONS):
            if stream.is_answered or stream.last_id is None:
                return
            await asyncio.sleep(_RETRY_S if stream.retry_ms is None else stream.retry_ms / 1000)
            try:
                await self._listen(stream)
            except UNREACHED:
                continue
            except UNFINISHED:
                continue

    async def _post_aside(self, message: JSONObject, data: bytes) -> None:
        """Post a notification or an answer of ours: nothing comes of it."""
        try:
            await self._client.send(self._message(message, data), self._destinations())
        except (*UNREACHED, *UNFINISHED):
            return  # whoever waits for the server learns that it is gone
        if message.get("method") == "notifications/initialized" and not self._has_stream:
            self._has_stream = True
            self._spawn(self._hear())

    # -- the server's own stream, in the handshake era

    async def _hear(self) -> None:
        """Listen to what belongs to no request, for as long as the server offers that."""
        receiver, wait_s = self._receiver, _RETRY_S
        if receiver is None:
            return
        stream = UpstreamEvents(receiver, None)
        while self._receiver is not None:
            before = stream.count
            try:
                status = await self._listen(stream)
            except (*UNREACHED, *UNFINISHED):
                status = 0
            if status in _NO_STREAM:
                return
            # The wait starts over with whatever was heard.
            wait_s = _RETRY_S if stream.count > before else min(wait_s * 2, _LONGEST_WAIT_S)
            await asyncio.sleep(wait_s if stream.retry_ms is None else stream.retry_ms / 1000)

    async def _listen(self, stream: UpstreamEvents) -> int:
        """Read a stream with GET until it ends; return its status."""
        more = [] if stream.last_id is None else [("Last-Event-ID", stream.last_id)]
        response = await self._client.send(
            self._request("GET", None, more), self._destinations(), sink=stream
        )
        return response.status

    # --

    def _own_headers(self, message: JSONObject) -> list[tuple[str, str]]:
        revision = None if self._revision is None else REVISIONS[self._revision]
        if revision is None or revision.has_handshake or "method" not in message:
            return []
        params = message.get("params")
        name = params.get("name") if isinstance(params, dict) else None
        is_call = message["method"] == "tools/call" and isinstance(name, str)
        return list(mirrored_headers(message, self._marks(str(name)) if is_call else ()))

    def _message(self, message: JSONObject, data: bytes) -> HttpRequest:
        # Before they are agreed on there is no session and no revision to name.
        is_first = message.get("method") == "initialize"
        return self._request("POST", data, self._own_headers(message), is_agreed=not is_first)

    def _request(
        self,
        method: str,
        body: bytes | None,
        more: list[tuple[str, str]] | None = None,
        *,
        is_agreed: bool = True,
    ) -> HttpRequest:
        headers = [("Accept", "text/event-stream" if method == "GET" else _ACCEPTED)]
        if body is not None:
            headers.append(("Content-Type", "application/json"))
        if self._revision is not None and is_agreed:
            headers.append(("MCP-Protocol-Version", self._revision))
        if self._session is not None and is_agreed:
            headers.append(("Mcp-Session-Id", self._session))
        lines = [*headers, *(more or []), *self._given.items()]
        return HttpRequest(
            self._destination,
            method,
            self._target,
            "".join(f"{name}: {value}\r\n" for name, value in lines).encode("latin-1"),
            body,
            max_response_bytes=MAX_ANSWER_BYTES,
            is_listening=method == "GET",
        )

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._others.add(task)
        task.add_done_callback(self._aside_ended)

    def _aside_ended(self, task: asyncio.Task[None]) -> None:
        self._others.discard(task)
        failure = unexpected_end(task)
        if failure is not None and self._receiver is not None:
            self._receiver.lost(str(failure))


def _wrong_in(response: Response, kind: bytes) -> tuple[str, str]:
    """Return the place and the words of what is wrong with an answer that answers nothing."""
    if response.headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
        return "", "is compressed, which was not asked for"
    if not kind.startswith(b"application/json"):
        return "", "its Content-Type is neither application/json nor text/event-stream"
    if not response.body.lstrip().startswith(b"{"):
        return "", "is no JSON object"
    return "/id", "is not the id of the request"


UNREACHED: Final = (NotPermitted, Unreachable, Untrusted)
UNFINISHED: Final = (Broken, TooLarge)


# The events of one response as messages, and where to resume it.

# Longer than any id that is meant, and short enough for a header.
_MAX_ID: Final = 1024


class UpstreamEvents:
    """Delivers the messages of a stream; it may continue in several responses."""

    def __init__(self, receiver: Receiver, of: int | None) -> None:
        """Deliver to `receiver` what belongs to the request `of`; None where it belongs to none."""
        self._receiver = receiver
        self._of = of
        self._reader = EventReader(MAX_ANSWER_BYTES)
        self.has_begun = False
        """Whether a response was a stream."""
        self.count = 0
        """How many messages were delivered."""

    @property
    def is_answered(self) -> bool:
        """Return whether the request has its answer."""
        return self._of is not None and not self._receiver.awaits(self._of)

    @property
    def last_id(self) -> str | None:
        """Return the id of the latest event that had one; None where no header can hold it."""
        found = self._reader.last_id
        is_usable = found is not None and found.isascii() and found.isprintable() and len(found) <= _MAX_ID
        return found if is_usable else None

    @property
    def retry_ms(self) -> int | None:
        """Return how long the server wants us to wait before we resume."""
        return self._reader.retry_ms

    def wants(self, status: int, headers: dict[bytes, bytes]) -> bool:
        """Return whether a response is a stream of events."""
        is_stream = headers.get(b"content-type", b"").lower().startswith(b"text/event-stream")
        self.has_begun = self.has_begun or (is_stream and status == 200)
        return is_stream and status == 200

    def take(self, part: bytes) -> None:
        """Deliver the messages that are complete now."""
        for event in self._reader.feed(part):
            if event.kind == "message" and event.data.strip():
                self.count += 1
                self._receiver.received(event.data, self._of)
        if self._reader.was_cut:
            self._reader.was_cut = False
            self._receiver.received(OVERSIZE, self._of)


# HTTP headers that repeat parts of a message, in the revisions without a handshake.
#
# The other side of `protocol/mirrored_headers.py`, which checks them on arrival.


def mirrored_headers(message: JSONObject, marks: Iterable[Mark]) -> Iterator[tuple[str, str]]:
    """Yield the headers of a request; `marks` are the arguments that its tool wants repeated."""
    method, params = str(message.get("method")), message.get("params")
    yield "Mcp-Method", method
    if not isinstance(params, dict):
        return
    named = params.get(NAMED_BY.get(method, ""))
    if isinstance(named, str):
        yield "Mcp-Name", _encoded(named)
    arguments = params.get("arguments")
    for mark in marks:
        value = _at(arguments, mark.path)
        if isinstance(value, bool):
            yield f"Mcp-Param-{mark.suffix}", "true" if value else "false"
        elif isinstance(value, str | int | float):
            whole = int(value) if mark.is_integer and isinstance(value, float) else value
            yield f"Mcp-Param-{mark.suffix}", _encoded(str(whole))


_BEFORE: Final = "=?base64?"
_AFTER: Final = "?="


def _encoded(text: str) -> str:
    """Return a value as a header can hold it."""
    is_plain = text.isascii() and text.isprintable() and text == text.strip() and not text.startswith(_BEFORE)
    return text if is_plain else _BEFORE + base64.b64encode(text.encode()).decode() + _AFTER


def _at(arguments: JSON, path: tuple[str, ...]) -> JSON:
    value = arguments
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
