"""What every HTTP route that takes a message does alike: read it within limits, stop when it is given up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from portbook.doors.eager import Remainder
from portbook.doors.http.asgi import Headers, Receive, Scope, Send, respond
from portbook.errors import Reason, Refused
from portbook.model import Answer, Arrival
from portbook.net.host_and_origin import Hosts
from portbook.wire.framing import MAX_FRAME_BYTES, OVERSIZE, Frame

__all__ = [
    "JSON_HEADERS",
    "arrival_of",
    "has_left",
    "headers_of",
    "key_of",
    "read_message",
    "send_answer",
    "serve_message",
]

# A body over the limit is thrown away as it arrives, so that the sender hears why; but not for ever.
_MAX_DISCARDED: Final = 128 * MAX_FRAME_BYTES

# A message is at most a mebibyte: whoever takes longer than this for it holds a place and a shutdown up.
_BODY_SECONDS: Final = 15

_MAX_SESSION: Final = 256

JSON_HEADERS: Final[Headers] = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]

Answering = Coroutine[Any, Any, Answer]


async def serve_message(
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    arrival: Arrival,
    hosts: Hosts,
    answer: Callable[[Frame, Arrival], Answering],
    refuse: Callable[[Refused, Arrival], Answering],
) -> None:
    """Read one message and send its answer; where its sender leaves first, cancel the call.

    A request is refused before anything is read of it where its Host or its Origin is another's, and before
    its body where that is not JSON.
    """
    frame = await read_message(dict(scope["headers"]), receive, hosts)
    if frame is None:
        return  # the sender left before the end of its message
    if isinstance(frame, Refused):
        await send_answer(send, await refuse(frame, arrival))
        return
    answered = await _unless_left(answer(frame, arrival), receive)
    if answered is not None:
        await send_answer(send, answered)


async def read_message(
    headers: Mapping[bytes, bytes], receive: Receive, hosts: Hosts
) -> Frame | Refused | None:
    """Return the message of a request, or why it is refused unread; None where its sender left."""
    refusal = hosts.refuse(headers)
    if refusal is not None:
        return refusal
    if not _is_json(headers.get(b"content-type", b"")):
        return Refused(Reason.NOT_JSON_CONTENT)
    body = _body(receive)
    try:
        waiting_for = body.send(None)
    except StopIteration as ended:  # it was there already, as most are
        return ended.value
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            return await Remainder(body, waiting_for)
    except TimeoutError:
        return Refused(Reason.FRAME_TOO_SLOW)
    finally:
        body.close()


async def send_answer(send: Send, answer: Answer, more: Headers | None = None) -> None:
    """Send an answer with the headers that go with it."""
    await respond(send, answer.status, [*_headers(answer), *(more or [])], answer.body or b"")


def headers_of(scope: Scope) -> dict[bytes, bytes]:
    """Return the headers of a request; of one that was sent twice, both values, but of two keys neither."""
    sent: list[tuple[bytes, bytes]] = scope["headers"]
    headers = dict(sent)
    if len(headers) == len(sent):
        return headers
    headers.clear()
    for name, value in sent:
        headers[name] = value if name not in headers else headers[name] + b", " + value
    if sum(name == b"authorization" for name, _ in sent) > 1:
        headers[b"authorization"] = b""  # which of two would be a matter of who reads it
    return headers


def arrival_of(scope: Scope, route: str, headers: dict[bytes, bytes] | None = None) -> Arrival:
    """Return how a request came in; `headers` are its own, where somebody has them already."""
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
    """Return the bearer token of a request; the empty string, which no key is, for any other credential."""
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


async def _unless_left(answering: Answering, receive: Receive) -> Answer | None:
    """Return the answer; None where the sender left before it, and the call was cancelled and recorded."""
    try:
        waiting_for = answering.send(None)
    except StopIteration as ended:
        return ended.value
    loop = asyncio.get_running_loop()
    call = loop.create_task(_finish(Remainder(answering, waiting_for)))
    # A callback, because a task that is cancelled before its first step runs none of its own code.
    call.add_done_callback(lambda _: answering.close())
    leaving = loop.create_task(has_left(receive))
    try:
        await asyncio.wait((call, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        call.cancel()
    await asyncio.wait((call,))
    return None if call.cancelled() else call.result()


async def _finish(rest: Remainder[Answer]) -> Answer:
    return await rest


async def has_left(receive: Receive) -> None:
    """Return when the sender has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _headers(answer: Answer) -> Headers:
    headers = list(JSON_HEADERS) if answer.body is not None else JSON_HEADERS[1:]
    if answer.identity is not None:
        headers.append((b"x-request-id", answer.identity.request.encode()))
        headers.append((b"traceparent", answer.identity.traceparent.encode()))
    if answer.status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if answer.retry_after_s is not None:
        headers.append((b"retry-after", b"%d" % answer.retry_after_s))
    if answer.status in (408, 413):  # what is left of the message must not be taken for another
        headers.append((b"connection", b"close"))
    return headers
