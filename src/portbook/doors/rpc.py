"""`POST /rpc`: one JSON-RPC message a request, one answer a response."""

from __future__ import annotations

import asyncio
from typing import Final

from portbook.boundary import Boundary
from portbook.doors.asgi import App, Headers, Receive, Scope, Send, is_own_host, respond
from portbook.errors import Reason
from portbook.model import Answer, Arrival
from portbook.wire.framing import MAX_FRAME_BYTES, OVERSIZE, Frame

__all__ = ["ROUTE", "rpc"]

ROUTE: Final = "/rpc"

# A body over the limit is thrown away as it arrives, so that the sender hears why; but not for ever.
_MAX_DISCARDED: Final = 128 * MAX_FRAME_BYTES

# A message is at most a mebibyte: whoever takes longer than this for it holds a place and a shutdown up.
_BODY_SECONDS: Final = 15

_HEADERS: Final[Headers] = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]


def rpc(boundary: Boundary, *, is_exposed: bool) -> App:
    """Return the application behind the route."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        arrival = Arrival("http", ROUTE, _key(headers), headers.get(b"traceparent", b"").decode("latin-1"))
        if not is_own_host(headers, is_exposed=is_exposed):
            answer = await boundary.refuse(Reason.FOREIGN_HOST, arrival)
        elif not _is_json(headers.get(b"content-type", b"")):
            answer = await boundary.refuse(Reason.NOT_JSON_CONTENT, arrival)
        else:
            try:
                async with asyncio.timeout(_BODY_SECONDS):
                    frame = await _body(receive)
            except TimeoutError:
                answer = await boundary.refuse(Reason.FRAME_TOO_SLOW, arrival)
            else:
                if frame is None:
                    return  # the sender left before the end of its message
                answer = await boundary.answer(frame, arrival)
        await respond(send, answer.status, _headers(answer), answer.body or b"")

    return app


def _key(headers: dict[bytes, bytes]) -> str | None:
    presented = headers.get(b"authorization")
    if presented is None:
        return None
    scheme, _, key = presented.decode("utf-8", "replace").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def _is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"


async def _body(receive: Receive) -> Frame | None:
    body = bytearray()
    held = 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            return None
        held += len(event.get("body", b""))
        if held <= MAX_FRAME_BYTES:
            body += event.get("body", b"")
        else:
            body.clear()
        if not event.get("more_body") or held > _MAX_DISCARDED:
            return OVERSIZE if held > MAX_FRAME_BYTES else bytes(body)


def _headers(answer: Answer) -> Headers:
    headers = list(_HEADERS) if answer.body is not None else _HEADERS[1:]
    if answer.identity is not None:
        headers.append((b"x-request-id", answer.identity.request.encode()))
        headers.append((b"traceparent", answer.identity.traceparent.encode()))
    if answer.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if answer.status in (408, 413):  # what is left of the message must not be taken for another
        headers.append((b"connection", b"close"))
    return headers
