"""One connection to an HTTP/1.1 server: a request goes out, its response comes in, nothing else is trusted.

A connection is reused only after a clean exchange. Anything odd (unrequested bytes, a body of two lengths, a
message that continues after its end) closes it, so that no response is ever matched to a different request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, cast

import httptools

from portbook.net.destinations import Destinations
from portbook.net.taskless_waits import TasklessFuture
from portbook.text.named_tuple import new_tuple

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["BodySink", "Broken", "HttpConnection", "Response", "SentRequest", "TooLarge"]

# All headers of one response; common servers send 8 KiB at most.
MAX_HEAD_BYTES: Final = 65_536

# For a server without a Keep-Alive header: common ones close an idle connection after 5 seconds.
_IDLE_S: Final = 4.0
_MAX_IDLE_S: Final = 60.0

_VERSIONS: Final = ("1.1", "1.0")
_HEAD_TOO_LARGE: Final = "the answer's headers are too large"


class Broken(Exception):
    """No whole response arrived; the message says why, and quotes nothing that was received."""

    def __init__(self, problem: str, *, was_heard: bool = True) -> None:
        super().__init__(problem)
        self.was_heard = was_heard
        """Whether a byte of a response had arrived."""


class TooLarge(Exception):
    """A response whose body is over the limit."""

    def __init__(self, problem: str, status: int) -> None:
        super().__init__(problem)
        self.status = status
        """The HTTP status of the response."""


class Response(NamedTuple):
    """A whole response."""

    status: int
    headers: dict[bytes, bytes]
    """By name in lower case; the values of a repeated header are joined with commas."""
    body: bytes


class BodySink(Protocol):
    """Takes the body of a response while it arrives, however long that lasts."""

    def wants(self, status: int, headers: dict[bytes, bytes]) -> bool:
        """Return whether the body of such a response is taken in parts; otherwise it is collected."""
        ...

    def take(self, part: bytes) -> None:
        """Take the next part of the body."""
        ...


# Of a connection that is not pooled.
_NOWHERE: Final = Destinations()


class SentRequest:
    """A request whose response has not arrived yet, on a connection or in wait for one."""

    __slots__ = (
        "carrier",
        "data",
        "destinations",
        "ends_at_head",
        "max_body",
        "opens_tunnel",
        "response",
        "sink",
        "was_sent",
    )

    def __init__(
        self,
        data: bytes,
        response: asyncio.Future[Response | None],
        max_body: int,
        ends_at_head: bool,
        sink: BodySink | None = None,
        destinations: Destinations = _NOWHERE,
        opens_tunnel: bool = False,
    ) -> None:
        """Get the answer into `response`; `ends_at_head` where it never has a body."""
        self.data = data
        self.response = response
        self.max_body = max_body
        self.ends_at_head = ends_at_head
        self.sink = sink
        self.destinations = destinations
        """The allowlist that permits the address of its connection."""
        self.opens_tunnel = opens_tunnel
        self.was_sent = False
        """Whether a byte of it may have been sent."""
        self.carrier: HttpConnection | None = None
        """The connection that it was sent on, until its response is complete."""

    def again(self) -> SentRequest:
        """Return the same request, to be sent once more."""
        response: asyncio.Future[Response | None] = type(self.response)(loop=self.response.get_loop())
        return SentRequest(
            self.data, response, self.max_body, self.ends_at_head, self.sink, self.destinations
        )

    def abandon(self) -> bool:
        """Expect no response any more, and close the connection; return whether one had begun to arrive."""
        carrier = self.carrier
        if carrier is None:
            return False
        carrier.abort()
        return carrier.was_heard


class HttpConnection(asyncio.Protocol):
    """A connection that carries one exchange at a time."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.opened_at = self.loop.time()
        self.idle_until = 0.0
        """When it becomes too old to reuse, on the loop's clock."""
        self.checked_under: Destinations | None = None
        """The allowlist under which its address was checked."""
        self.on_release: Callable[[HttpConnection], None] | None = None
        """What to call after each exchange, whether or not the connection can be used again."""
        self.was_heard = False
        """Whether a byte of the latest response arrived."""
        self._transport: asyncio.Transport | None = None
        self._socket: asyncio.Transport | None = None
        """The transport below TLS, if there is any."""
        self._asked: SentRequest | None = None
        self._is_clean = True
        self._parser: Any = None
        """Of the latest exchange; None where it has to be a new one."""
        self._begin_message()

    def _begin_message(self) -> None:
        self._headers: dict[bytes, bytes] = {}
        self._chunks: list[bytes] = []
        self._body_bytes = 0
        self._is_head_complete = False
        self._is_complete = False

    # -- for the client

    @property
    def is_usable(self) -> bool:
        """Return whether the next request may be sent on it."""
        return (
            self._is_clean
            and self._asked is None
            and self._transport is not None
            and not self._transport.is_closing()
            and not self._transport.get_write_buffer_size()
            and self._socket is not None
            and not self._socket.get_write_buffer_size()  # below TLS: an early answer leaves a body there
        )

    async def secure(self, tls: SSLContext, name: str) -> None:
        """Start TLS, with a peer that authenticates as `name`.

        Raises `OSError` where it does not.
        """
        assert self._transport is not None
        self._transport = await self.loop.start_tls(self._transport, self, tls, server_hostname=name)

    async def exchange(
        self, request: bytes, *, max_body: int, ends_at_head: bool = False, sink: BodySink | None = None
    ) -> Response:
        """Send `request` and read its response; `ends_at_head` where the response never has a body.

        A body that the `sink` wants goes there as it arrives, and the response has none.

        Raises `Broken` where no response arrives, and `TooLarge` for a body over `max_body` bytes. After
        these, and after a cancellation, the connection is closed.
        """
        return await self._carry(
            SentRequest(request, self.loop.create_future(), max_body, ends_at_head, sink)
        )

    async def open_tunnel(self, request: bytes) -> int:
        """Send a CONNECT and return the status of its response; after a 2xx, the connection is the tunnel.

        Raises `Broken` where no response arrives. After this, and after a cancellation, the connection is
        closed.
        """
        asked = SentRequest(request, self.loop.create_future(), 0, True, opens_tunnel=True)
        return (await self._carry(asked)).status

    async def _carry(self, asked: SentRequest) -> Response:
        self.send(asked)
        try:
            response = await asked.response
        except BaseException:
            asked.abandon()
            raise
        assert response is not None  # it never waited for a connection
        return response

    def send(self, asked: SentRequest) -> None:
        """Send a request; its response, or `Broken` or `TooLarge`, goes where it is waited for.

        Whoever gives up waiting has to `abandon` it.
        """
        transport = self._transport
        asked.was_sent = True
        self.was_heard = False
        if transport is None or transport.is_closing():
            self._is_clean = False
            closed = Broken("the connection was closed before an answer arrived", was_heard=False)
            if self.on_release is not None:
                self.on_release(self)
            asked.response.set_exception(closed)
            return
        if self._parser is None:
            self._parser = httptools.HttpResponseParser(self)
        self._is_streaming = False
        self._problem: Exception | None = None
        self._header_bytes = self._unended_bytes = 0
        self._begin_message()
        self._asked, asked.carrier = asked, self
        transport.write(asked.data)

    def abort(self) -> None:
        """Close it at once, even during an exchange."""
        self._is_clean = False
        if self._transport is not None:
            self._transport.abort()
        if self._asked is not None:
            self._release(self._asked)

    # -- for the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = self._socket = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Feed the parser; bytes outside of an exchange close the connection."""
        asked = self._asked
        if asked is None or asked.response.done():
            self.abort()
            return
        self.was_heard = True
        try:
            self._parser.feed_data(data)
            if not self._is_head_complete:  # all of it is part of the head, or of interim responses
                self._unended_bytes = self._weighed(self._unended_bytes + len(data))
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, Broken):
            self._is_clean = False
            if not self._is_complete:
                self._fail(asked, self._problem or Broken("the answer is not HTTP/1.1"))
                return
        if self._is_complete:  # only now: what came after its end has been seen
            self._finish(asked)

    def eof_received(self) -> bool:
        """Let the transport close; `connection_lost` follows."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """End the exchange: a body without a length is complete here, anything else is cut short."""
        self._is_clean = False
        asked = self._asked
        if asked is None:
            return
        if self._is_head_complete and not self._has_length and exc is None and self._problem is None:
            self._complete(asked)
            self._finish(asked)
        else:
            end = "closed" if exc is None else "reset"
            when = "in the middle of the answer" if self.was_heard else "before an answer arrived"
            problem = Broken(f"the connection was {end} {when}", was_heard=self.was_heard)
            self._fail(asked, self._problem or problem)

    # -- for the parser

    def on_message_begin(self) -> None:
        """Detect a second message after the response."""
        if self._is_complete:
            self._is_clean = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; trailers after a chunked body are ignored."""
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > MAX_HEAD_BYTES:
            raise self._odd(_HEAD_TOO_LARGE)
        if self._is_head_complete:
            return
        name, value, headers = name.lower(), value.rstrip(b" \t"), self._headers
        headers[name] = headers[name] + b", " + value if name in headers else value

    def on_headers_complete(self) -> None:
        """Decide how the body ends."""
        if self._is_complete:
            return
        asked, headers, parser = self._asked, self._headers, self._parser
        assert asked is not None
        self._is_head_complete = True
        if parser.get_http_version() not in _VERSIONS:
            raise self._odd("the answer is not HTTP/1.1")
        coding, length = headers.get(b"transfer-encoding"), headers.get(b"content-length")
        if coding is not None and (length is not None or coding.strip().lower() != b"chunked"):
            raise self._odd("the answer's body has no certain length")
        if (
            length is not None
            and length.isdigit()
            and int(length) > asked.max_body
            and not asked.ends_at_head
        ):
            raise self._too_large(asked)
        if asked.sink is None and not asked.ends_at_head:
            return
        status = parser.get_status_code()
        self._is_streaming = asked.sink is not None and status >= 200 and asked.sink.wants(status, headers)
        if asked.ends_at_head and status >= 200:
            self._complete(asked)
            self._parser = None  # it waits for a body that never comes

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body, within the limit."""
        if self._is_complete:
            self._is_clean = False
            return
        asked = self._asked
        assert asked is not None
        if self._is_streaming and asked.sink is not None:
            asked.sink.take(body)
            return
        self._body_bytes += len(body)
        if self._body_bytes > asked.max_body:
            raise self._too_large(asked)
        self._chunks.append(body)

    def on_message_complete(self) -> None:
        """End the response; an interim one is skipped."""
        if self._is_complete:
            return
        asked = self._asked
        assert asked is not None
        if self._parser.get_status_code() < 200:
            self._begin_message()
        else:
            self._complete(asked)

    # -- ends

    @property
    def _has_length(self) -> bool:
        return b"content-length" in self._headers or b"transfer-encoding" in self._headers

    def _weighed(self, size: int) -> int:
        if size > MAX_HEAD_BYTES:
            raise self._odd(_HEAD_TOO_LARGE)
        return size

    def _odd(self, problem: str) -> Exception:
        self._problem = Broken(problem)
        return self._problem

    def _too_large(self, asked: SentRequest) -> Exception:
        status = self._parser.get_status_code()
        self._problem = TooLarge(f"the answer is larger than {asked.max_body} bytes", status)
        return self._problem

    def _complete(self, asked: SentRequest) -> None:
        """Keep what the parser knows of the response that is complete: of the next one it knows nothing."""
        self._is_complete = True
        parser = self._parser
        self._status = status = parser.get_status_code()
        # RFC 9110 9.3.6: with a 2xx to CONNECT the connection becomes the tunnel, whatever its headers say.
        is_tunnel = asked.opens_tunnel and status < 300
        if not is_tunnel and not parser.should_keep_alive():
            self._is_clean = False

    def _finish(self, asked: SentRequest) -> None:
        """Pass on the response, and let go of it: an idle connection keeps nothing of it."""
        headers, chunks = self._headers, self._chunks
        body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        keep_alive = headers.get(b"keep-alive")
        idle_s = _IDLE_S if keep_alive is None else _announced_idle_s(keep_alive)
        self.idle_until = self.loop.time() + idle_s
        self._chunks = []
        response, waiting = new_tuple(Response, (self._status, headers, body)), asked.response
        self._release(asked)
        if waiting.done():
            return
        if isinstance(waiting, TasklessFuture):
            waiting.settle(response)
        else:
            waiting.set_result(response)

    def _fail(self, asked: SentRequest, problem: Exception) -> None:
        self.abort()
        if not asked.response.done():
            asked.response.set_exception(problem)

    def _release(self, asked: SentRequest) -> None:
        self._asked = asked.carrier = None
        if self.on_release is not None:
            self.on_release(self)


def _announced_idle_s(keep_alive: bytes) -> float:
    """Return how long the server keeps an idle connection, a second less than it says."""
    for part in keep_alive.split(b","):
        name, _, value = part.strip().partition(b"=")
        if name.lower() == b"timeout" and value.isdigit() and len(value) < 10:
            return min(int(value) - 1.0, _MAX_IDLE_S)
    return _IDLE_S
