"""Reading an HTTP request: its headers, who sent it, and its message within limits of size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from portbook.doors.eager import Remainder
from portbook.doors.http.asgi import Receive, Scope
from portbook.errors import Reason, Refused
from portbook.model import Arrival
from portbook.wire.lines import OVERSIZE, Frame
from portbook.wire.message_size import MAX_FRAME_BYTES

__all__ = ["arrival_of", "has_body", "has_left", "headers_of", "key_of", "read_message"]

# A body over the limit is read and discarded, so that the client gets the answer; up to this many bytes.
_MAX_DISCARDED: Final = 128 * MAX_FRAME_BYTES

# A message is at most a mebibyte: a client that needs longer than this holds up a connection and a shutdown.
_BODY_SECONDS: Final = 15

_MAX_SESSION: Final = 256

_CUT_OFF: Final = "the client left in the middle of its message"


async def read_message(headers: Mapping[bytes, bytes], receive: Receive) -> Frame | Refused | None:
    """Return the message of a request, or why it is refused unread; None if the client left without one."""
    if not _is_json(headers.get(b"content-type", b"")):
        return Refused(Reason.NOT_JSON_CONTENT)
    body = _body(receive)
    try:
        waiting_for = body.send(None)
    except StopIteration as ended:  # most bodies have arrived with their head
        return ended.value
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            return await Remainder(body, waiting_for)
    except TimeoutError:
        return Refused(Reason.FRAME_TOO_SLOW)
    finally:
        body.close()


def has_body(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a request announces a body."""
    return headers.get(b"content-length", b"0").strip() != b"0" or b"transfer-encoding" in headers


async def has_left(receive: Receive) -> None:
    """Return when the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """Return the headers of a request; a repeated one with all its values, except Authorization with none."""
    sent: list[tuple[bytes, bytes]] = scope["headers"]
    headers = dict(sent)
    if len(headers) == len(sent):
        return headers
    headers.clear()
    for name, value in sent:
        headers[name] = value if name not in headers else headers[name] + b", " + value
    if sum(name == b"authorization" for name, _ in sent) > 1:
        headers[b"authorization"] = b""  # readers would disagree about which of two keys counts
    return headers


def arrival_of(scope: Scope, route: str, headers: dict[bytes, bytes] | None = None) -> Arrival:
    """Return how a request arrived; `headers` are its own, where the route has read them already."""
    headers = headers_of(scope) if headers is None else headers
    session = headers.get(b"x-session-id", b"").decode("latin-1")
    return Arrival(
        "http",
        route,
        key_of(headers),
        headers.get(b"traceparent", b"").decode("latin-1"),
        session if 0 < len(session) <= _MAX_SESSION else None,
    )


def key_of(headers: dict[bytes, bytes]) -> str | None:
    """Return the bearer token of a request; the empty string, never a valid key, for a different scheme."""
    presented = headers.get(b"authorization")
    if presented is None:
        return None
    scheme, _, key = presented.decode("utf-8", "replace").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"


async def _body(receive: Receive) -> Frame | Refused | None:
    body = bytearray()
    held = 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            return Refused(Reason.CANCELLED, note=_CUT_OFF) if held else None
        held += len(event.get("body", b""))
        if held <= MAX_FRAME_BYTES:
            body += event.get("body", b"")
        else:
            body.clear()
        if not event.get("more_body") or held > _MAX_DISCARDED:
            return OVERSIZE if held > MAX_FRAME_BYTES else bytes(body)
