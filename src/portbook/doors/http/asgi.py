"""The routes as an ASGI 3 application, for a server that someone else runs.

The server around it frames the messages. Everything from the head on is the same as under our own server:
the same checks, routes and answers, and the same limits of a body's size and time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, TypeAlias

from portbook.doors.http.body_limits import BODY_SECONDS, MAX_DISCARDED_BYTES, cut_off
from portbook.doors.http.request import RequestHead
from portbook.doors.http.response import Reply
from portbook.doors.http.router import Handling, Router, begin_reply, finish_reply
from portbook.errors import Reason, Refused
from portbook.executors.eager_task import start_now
from portbook.wire.lines import OVERSIZE, Frame
from portbook.wire.message_size import MAX_FRAME_BYTES

__all__ = ["Application", "Receive", "Scope", "Send", "asgi_application"]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_TASK: Final = "portbook-request"


def asgi_application(router: Router, body_seconds: float = BODY_SECONDS) -> Application:
    """Return the application; a body that takes longer than `body_seconds` is given up."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        head = _head_of(scope)
        handling = router.handle(head)
        body: Frame | Refused | None = b""
        if handling.takes_message:
            body = await _message(receive, body_seconds)
        if body is None:
            return  # the client left before it sent a message
        replying = start_now(_reply(handling, head, body, send), _TASK)
        if replying.done():
            replying.result()  # raises what failed
            return
        await _unless_left(replying, receive)

    return app


def _head_of(scope: Scope) -> RequestHead:
    path = scope["path"].removeprefix(scope.get("root_path", ""))
    version = scope.get("http_version")
    return RequestHead(
        scope["method"], path or "/", scope.get("query_string", b""), [*scope["headers"]], version
    )


async def _message(receive: Receive, seconds: float) -> Frame | Refused | None:
    """Return the body of a request, or why it is refused; None if the client left without one."""
    try:
        async with asyncio.timeout(seconds):
            return await _body(receive)
    except TimeoutError:
        return Refused(Reason.FRAME_TOO_SLOW)


async def _body(receive: Receive) -> Frame | Refused | None:
    body = bytearray()
    held = 0
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            return cut_off() if held else None
        held += len(event.get("body", b""))
        if held <= MAX_FRAME_BYTES:
            body += event.get("body", b"")
        else:
            body.clear()
        if not event.get("more_body") or held > MAX_DISCARDED_BYTES:
            return OVERSIZE if held > MAX_FRAME_BYTES else bytes(body)


async def _reply(handling: Handling, head: RequestHead, body: Frame | Refused, send: Send) -> None:
    reply = await finish_reply(begin_reply(handling, head, body))
    closes = reply.closes or handling.closes
    await _send(send, reply._replace(lines=reply.lines + handling.more, closes=closes))


async def _send(send: Send, reply: Reply) -> None:
    headers = [tuple(line.split(b": ", 1)) for line in reply.lines.splitlines()]
    if reply.closes:
        headers.append((b"connection", b"close"))
    if reply.stream is None and reply.status != 204:  # a 204 has no body, and so no length
        headers.append((b"content-length", b"%d" % len(reply.body)))
    await send({"type": "http.response.start", "status": reply.status, "headers": headers})
    if reply.stream is not None:

        async def write(data: bytes) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": True})

        await reply.stream(write)
    await send({"type": "http.response.body", "body": reply.body})


async def _unless_left(replying: asyncio.Task[None], receive: Receive) -> None:
    """Wait for the reply; if the client leaves before its end, cancel it."""
    leaving = asyncio.get_running_loop().create_task(_has_left(receive))
    try:
        await asyncio.wait((replying, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        replying.cancel()
        await asyncio.wait((replying,))
    if not replying.cancelled():
        replying.result()  # raises what failed


async def _has_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
