"""`MountedApp`: everything that `portbook serve --http` serves, as an ASGI application.

It runs under a server of someone else, or inside an application.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from portbook.app.assemble import assemble
from portbook.doors.http.memory_limits import (
    COUNTED_BYTES,
    UNFINISHED_BYTES,
    WORKLOAD_BYTES,
    MessageMemory,
    MessageMemoryLimit,
    no_room,
)
from portbook.doors.http.request import MAX_DISCARDED_BYTES, RequestHead, cut_off
from portbook.doors.http.response import Reply
from portbook.doors.http.route_table import routes_of, sessions_of
from portbook.doors.http.router import Handling, Router, begin_reply, finish_reply
from portbook.doors.http.server.connection_limits_deadlines_and_overload import BODY_SECONDS, WRITE_SECONDS
from portbook.doors.http.server.request_parser import decoded_path
from portbook.errors import Reason, Refused
from portbook.executors.coroutines import start_now
from portbook.settings import load_settings
from portbook.tools.toolset import Toolset
from portbook.wire.lines_and_size_limit import MAX_FRAME_BYTES, OVERSIZE, Frame

__all__ = ["Application", "MountedApp", "Receive", "Scope", "Send", "asgi_application"]

# As long as a server of our own waits for calls whose client has left.
_GRACE_S: Final = 40.0


class MountedApp:
    """An ASGI application that serves toolsets: `/mcp`, `/rpc`, `/execute` and all the pages.

    Run it with any ASGI server, or mount it in an application. The server around it frames requests, and
    limits connections and their time; `portbook serve --http` has limits of its own for that. It closes when
    the server ends the lifespan of the application; an application that it is mounted in calls `close`.
    """

    def __init__(self, *toolsets: Toolset, config: Path | str | None = None, is_exposed: bool = True) -> None:
        """Serve `toolsets`, and what the settings file `config` says (`portbook.toml`, if there is one).

        Where it `is_exposed`, different machines can connect: calls need a key unless the settings say
        otherwise.

        Raises `BadSettings`, `BadTool`, `BadBundle` or `OSError` for what cannot be served.
        """
        file = None if config is None else Path(config)
        settings = load_settings(file, os.environ, {}, Path.cwd())
        self._app = assemble(settings, is_exposed=is_exposed, toolsets=toolsets, is_server=True)
        self._sessions = sessions_of(self._app, lambda _: None)
        routes = routes_of(self._app, has_legacy_sse=settings.legacy_sse, sessions=self._sessions)
        self._serve = asgi_application(routes)
        self._is_open = True
        self._is_started = False

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        """Answer one request, as ASGI 3 has it."""
        if not self._is_started:  # now: an event loop runs
            self._is_started = True
            self._app.start()
        if scope["type"] != "lifespan":
            await self._serve(scope, receive, send)
            return
        while (event := await receive())["type"] != "lifespan.shutdown":
            await send({"type": f"{event['type']}.complete"})
        await self.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def close(self) -> None:
        """End streams, finish calls, also those whose client has left, and close the log and the store."""
        if self._is_open:
            self._is_open = False
            self._app.changes.close()
            await self._sessions.calls_ended(_GRACE_S)
            await self._sessions.cancel_calls()  # while they can still be recorded
            await self._app.close()


# The routes as an ASGI 3 application, for a server that someone else runs.
#
# The server around it frames the messages. Everything from the head on is the same as under our own server:
# the same checks, routes and answers, and the same limits of a body's size and time.

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_TASK: Final = "portbook-request"

# RFC 9113, 8.2.2: in later versions, a header cannot close a connection.
_WITH_CONNECTIONS: Final = ("1.0", "1.1")


def asgi_application(
    router: Router, body_seconds: float = BODY_SECONDS, write_seconds: float = WRITE_SECONDS
) -> Application:
    """Return the application.

    A body that takes longer than `body_seconds` is given up, and so is a stream of which the client reads
    nothing for `write_seconds`.
    """
    unfinished, workload = MessageMemoryLimit(UNFINISHED_BYTES), MessageMemoryLimit(WORKLOAD_BYTES)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        head = _head_of(scope)
        handling = router.handle(head)
        body, is_whole = (b"", not head.announces_body)
        if handling.takes_message:
            body, is_whole = await _message(receive, body_seconds, unfinished)
        if body is None:
            return  # the client left before it sent a message
        memory: MessageMemory | None = None
        if isinstance(body, bytes) and len(body) >= COUNTED_BYTES:
            memory = workload.take(body)
            body = no_room() if memory is None else body
        sender = _Sender(send, write_seconds, closes=handling.closes or not is_whole)
        try:
            replying = start_now(_reply(handling, head, body, memory, sender), _TASK)
            if replying.done():
                replying.result()  # raises what failed
                return
            await _unless_left(replying, receive)
        finally:
            if memory is not None:
                memory.release()

    return app


def _head_of(scope: Scope) -> RequestHead:
    raw: bytes | None = scope.get("raw_path")
    # Servers decode the slashes of a path, too; as it came, it is optional.
    path = scope["path"] if raw is None else decoded_path(raw.partition(b"?")[0].decode("ascii", "replace"))
    path = path.removeprefix(scope.get("root_path", ""))
    version = scope.get("http_version")
    return RequestHead(
        scope["method"], path or "/", scope.get("query_string", b""), [*scope["headers"]], version
    )


async def _message(
    receive: Receive, seconds: float, unfinished: MessageMemoryLimit
) -> tuple[Frame | Refused | None, bool]:
    """Return the body of a request, or why it is refused, and whether it was read to its end.

    The body is None if the client left without one.
    """
    try:
        async with asyncio.timeout(seconds):
            return await _body(receive, unfinished)
    except TimeoutError:
        return Refused(Reason.FRAME_TOO_SLOW), False


async def _body(receive: Receive, unfinished: MessageMemoryLimit) -> tuple[Frame | Refused | None, bool]:
    body = bytearray()
    held = counted = 0
    try:
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                return (cut_off() if held else None), False
            held += len(event.get("body", b""))
            if held <= MAX_FRAME_BYTES:
                body += event.get("body", b"")
            else:
                body.clear()
            is_whole = not event.get("more_body")
            if is_whole or held > MAX_DISCARDED_BYTES:
                return (OVERSIZE if held > MAX_FRAME_BYTES else bytes(body)), is_whole
            if len(body) - counted >= COUNTED_BYTES:
                if not unfinished.has_room_for(len(body) - counted):
                    return no_room(), False
                counted = len(body)
    finally:
        unfinished.give_back(counted)


class _Sender:
    """The way back to one client."""

    __slots__ = ("_closes", "_seconds", "_send")

    def __init__(self, send: Send, seconds: float, *, closes: bool) -> None:
        self._send = send
        self._seconds = seconds
        self._closes = closes
        """Whether the connection closes after the reply: what follows is not read as a request."""

    async def reply(self, reply: Reply, version: str | None) -> None:
        headers = [tuple(line.split(b": ", 1)) for line in reply.lines.splitlines()]
        if (reply.closes or self._closes) and version in _WITH_CONNECTIONS:
            headers.append((b"connection", b"close"))
        if reply.stream is None and reply.status != 204:  # a 204 has no body, and so no length
            headers.append((b"content-length", b"%d" % len(reply.body)))
        await self._send({"type": "http.response.start", "status": reply.status, "headers": headers})
        if reply.stream is not None:
            await reply.stream(self._write)
        await self._send({"type": "http.response.body", "body": reply.body})

    async def _write(self, data: bytes) -> None:
        """Send a piece of a stream, once the client has read what came before.

        Raises `CancelledError` where it does not read: it has left, as far as anybody can tell.
        """
        try:
            async with asyncio.timeout(self._seconds):
                await self._send({"type": "http.response.body", "body": data, "more_body": True})
        except TimeoutError:
            raise asyncio.CancelledError from None


async def _reply(
    handling: Handling,
    head: RequestHead,
    body: Frame | Refused,
    memory: MessageMemory | None,
    sender: _Sender,
) -> None:
    reply = await finish_reply(begin_reply(handling, head, body, memory))
    await sender.reply(reply._replace(lines=reply.lines + handling.more), head.version)


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
