"""One connection to an HTTP/1.1 server: a request goes out, its response comes in, nothing else is trusted.

A connection is reused only after a clean exchange. Anything odd (unrequested bytes, a body of two lengths, a
message that continues after its end) closes it, so that no response is ever matched to a different request.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, cast

import httptools

if TYPE_CHECKING:
    from ssl import SSLContext

__all__ = ["BodySink", "Broken", "HttpConnection", "Response", "TooLarge"]

# All headers of one response; common servers send 8 KiB at most.
MAX_HEAD_BYTES: Final = 65_536

# For a server without a Keep-Alive header: common ones close an idle connection after 5 seconds.
_IDLE_S: Final = 4.0
_MAX_IDLE_S: Final = 60.0


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


class HttpConnection(asyncio.Protocol):
    """A connection that carries one exchange at a time."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.opened_at = self.loop.time()
        self.idle_until = 0.0
        """When it becomes too old to reuse, on the loop's clock."""
        self._transport: asyncio.Transport | None = None
        self._waiter: asyncio.Future[Response] | None = None
        self._is_clean = True
        self._idle_s = _IDLE_S
        self._reset(max_body=0, ends_at_head=False)

    def _reset(self, *, max_body: int, ends_at_head: bool, opens_tunnel: bool = False) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._max_body = max_body
        self._ends_at_head = ends_at_head
        self._opens_tunnel = opens_tunnel
        self._sink: BodySink | None = None
        self._is_streaming = False
        self._problem: Exception | None = None
        self._header_bytes = 0
        self._unended_bytes = 0
        self._was_heard = False
        self._begin()

    def _begin(self) -> None:
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
            and self._waiter is None
            and self._transport is not None
            and not self._transport.is_closing()
            and not self._transport.get_write_buffer_size()
        )

    @property
    def was_heard(self) -> bool:
        """Return whether a byte of the latest response arrived."""
        return self._was_heard

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
        self._reset(max_body=max_body, ends_at_head=ends_at_head)
        self._sink = sink
        return await self._send_and_receive(request)

    async def open_tunnel(self, request: bytes) -> int:
        """Send a CONNECT and return the status of its response; after a 2xx, the connection is the tunnel.

        Raises `Broken` where no response arrives. After this, and after a cancellation, the connection is
        closed.
        """
        self._reset(max_body=0, ends_at_head=True, opens_tunnel=True)
        return (await self._send_and_receive(request)).status

    async def _send_and_receive(self, request: bytes) -> Response:
        if self._transport is None or self._transport.is_closing():
            raise Broken("the connection was closed before an answer arrived", was_heard=False)
        self._waiter = self.loop.create_future()
        self._transport.write(request)
        try:
            return await self._waiter
        except BaseException:
            self.abort()
            raise
        finally:
            self._waiter = None
            self.idle_until = self.loop.time() + self._idle_s

    def abort(self) -> None:
        """Close it at once, even during an exchange."""
        self._is_clean = False
        if self._transport is not None:
            self._transport.abort()

    # -- for the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Feed the parser; bytes outside of an exchange close the connection."""
        if self._waiter is None or self._waiter.done():
            self.abort()
            return
        self._was_heard = True
        try:
            self._parser.feed_data(data)
            if not self._is_head_complete:  # all of it is part of the head, or of interim responses
                self._unended_bytes = self._weighed(self._unended_bytes + len(data))
        except (httptools.HttpParserError, httptools.HttpParserUpgrade, Broken):
            self._is_clean = False
            if not self._is_complete:
                self._fail(self._problem or Broken("the answer is not HTTP/1.1"))

    def eof_received(self) -> bool:
        """Let the transport close; `connection_lost` follows."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """End the exchange: a body without a length is complete here, anything else is cut short."""
        self._is_clean = False
        if self._waiter is None or self._waiter.done():
            return
        if self._is_head_complete and not self._has_length and exc is None and self._problem is None:
            self._finish()
        else:
            end = "closed" if exc is None else "reset"
            when = "in the middle of the answer" if self._was_heard else "before an answer arrived"
            problem = Broken(f"the connection was {end} {when}", was_heard=self._was_heard)
            self._fail(self._problem or problem)

    # -- for the parser

    def on_message_begin(self) -> None:
        """Detect a second message after the response."""
        if self._is_complete:
            self._is_clean = False

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; trailers after a chunked body are ignored."""
        self._header_bytes = self._weighed(self._header_bytes + len(name) + len(value))
        if self._is_head_complete:
            return
        name, value = name.lower(), value.rstrip(b" \t")
        self._headers[name] = self._headers[name] + b", " + value if name in self._headers else value

    def on_headers_complete(self) -> None:
        """Decide how the body ends."""
        if self._is_complete:
            return
        self._is_head_complete = True
        if self._parser.get_http_version() not in ("1.1", "1.0"):
            raise self._odd("the answer is not HTTP/1.1")
        coding, length = self._headers.get(b"transfer-encoding"), self._headers.get(b"content-length")
        if coding is not None and (length is not None or coding.strip().lower() != b"chunked"):
            raise self._odd("the answer's body has no certain length")
        if (
            length is not None
            and length.isdigit()
            and int(length) > self._max_body
            and not self._ends_at_head
        ):
            raise self._too_large()
        status = self._parser.get_status_code()
        self._is_streaming = (
            self._sink is not None and status >= 200 and self._sink.wants(status, self._headers)
        )
        if self._ends_at_head and self._parser.get_status_code() >= 200:
            self._finish()

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body, within the limit."""
        if self._is_complete:
            self._is_clean = False
            return
        if self._is_streaming and self._sink is not None:
            self._sink.take(body)
            return
        self._body_bytes += len(body)
        if self._body_bytes > self._max_body:
            raise self._too_large()
        self._chunks.append(body)

    def on_message_complete(self) -> None:
        """Return the response to the exchange; an interim one is skipped."""
        if self._is_complete:
            return
        if self._parser.get_status_code() < 200:
            self._begin()
        else:
            self._finish()

    # -- ends

    @property
    def _has_length(self) -> bool:
        return b"content-length" in self._headers or b"transfer-encoding" in self._headers

    def _weighed(self, size: int) -> int:
        if size > MAX_HEAD_BYTES:
            raise self._odd("the answer's headers are too large")
        return size

    def _odd(self, problem: str) -> Exception:
        self._problem = Broken(problem)
        return self._problem

    def _too_large(self) -> Exception:
        status = self._parser.get_status_code()
        self._problem = TooLarge(f"the answer is larger than {self._max_body} bytes", status)
        return self._problem

    def _finish(self) -> None:
        self._is_complete = True
        # RFC 9110 9.3.6: with a 2xx to CONNECT the connection becomes the tunnel, whatever its headers say.
        is_tunnel = self._opens_tunnel and self._parser.get_status_code() < 300
        if not is_tunnel and not self._parser.should_keep_alive():
            self._is_clean = False
        self._idle_s = _announced_idle_s(self._headers.get(b"keep-alive"))
        if self._waiter is not None and not self._waiter.done():
            status = self._parser.get_status_code()
            self._waiter.set_result(Response(status, self._headers, b"".join(self._chunks)))
        self._chunks = []  # an idle connection keeps nothing of it

    def _fail(self, problem: Exception) -> None:
        self._is_clean = False
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_exception(problem)


def _announced_idle_s(keep_alive: bytes | None) -> float:
    """Return how long the server keeps an idle connection, a second less than it says."""
    for part in (keep_alive or b"").split(b","):
        name, _, value = part.strip().partition(b"=")
        if name.lower() == b"timeout" and value.isdigit() and len(value) < 10:
            return min(int(value) - 1.0, _MAX_IDLE_S)
    return _IDLE_S
