"""What goes back over HTTP: answers with their headers, such as Retry-After and X-Request-Id, or a text."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Final

from portbook.doors.http.asgi import Headers, Send
from portbook.model import Answer
from portbook.wire.trace_context import traceparent_of

__all__ = ["JSON_HEADERS", "plain", "respond", "send_answer", "with_headers"]

JSON_HEADERS: Final[Headers] = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]


async def send_answer(send: Send, answer: Answer, more: Headers | None = None) -> None:
    """Send an answer, with its own headers and `more`."""
    await respond(send, answer.status, [*_headers(answer), *(more or [])], answer.body or b"")


async def plain(send: Send, status: int, sentence: str, headers: Headers | None = None) -> None:
    """Send one sentence for a person to read."""
    headers = [(b"content-type", b"text/plain; charset=utf-8"), *(headers or [])]
    await respond(send, status, headers, f"{sentence}\n".encode())


async def respond(send: Send, status: int, headers: Headers, body: bytes) -> None:
    """Send a whole response."""
    if status != 204:  # a 204 has no body, and so no length
        headers = [*headers, (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def with_headers(send: Send, more: Headers) -> Send:
    """Return `send`, with `more` headers on every response."""

    async def send_more(event: MutableMapping[str, Any]) -> None:
        if event["type"] == "http.response.start":
            event = {**event, "headers": [*event["headers"], *more]}
        await send(event)

    return send_more


def _headers(answer: Answer) -> Headers:
    headers = list(JSON_HEADERS) if answer.body is not None else JSON_HEADERS[1:]
    if answer.identity is not None:
        headers.append((b"x-request-id", answer.identity.request.encode()))
        headers.append((b"traceparent", traceparent_of(answer.identity).encode()))
    if answer.is_redacted:
        headers.append((b"portbook-redacted", b"true"))
    if answer.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if answer.retry_after_s is not None:
        headers.append((b"retry-after", b"%d" % answer.retry_after_s))
    if answer.status in (408, 413):  # the rest of the message must not be read as a new request
        headers.append((b"connection", b"close"))
    return headers
