"""A route that takes a message: read within limits, refused or answered, cancelled if the client leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from portbook.doors.eager import Remainder
from portbook.doors.http.asgi import Receive, Scope, Send
from portbook.doors.http.request import arrival_of, has_left, read_message
from portbook.doors.http.response import send_answer
from portbook.doors.http.router import Refuse, Route, segment_of
from portbook.errors import Refused
from portbook.model import Answer, Arrival
from portbook.wire.lines import Frame

__all__ = ["Answering", "message_route", "refuse_on_record"]

Answering: TypeAlias = Coroutine[Any, Any, Answer]


def message_route(
    path: str,
    answer: Callable[[Frame, Arrival, str], Answering],
    refuse: Callable[[Refused, Arrival], Answering],
) -> Route:
    """Return the route at `path`, which reads one message and sends what `answer` makes of it.

    `answer` also gets the last segment of the path. `refuse` records and words a request that is refused
    unread: its Host or Origin is foreign, or its body is not JSON, too large, too slow or cut off.
    """

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        frame = await read_message(dict(scope["headers"]), receive)
        if frame is None:
            return  # the client left before it sent a message
        arrival = arrival_of(scope, path)
        if isinstance(frame, Refused):
            await send_answer(send, await refuse(frame, arrival))
            return
        answered = await _unless_left(answer(frame, arrival, segment_of(scope)), receive)
        if answered is not None:
            await send_answer(send, answered)

    return Route(serve, refuse_on_record(path, refuse))


def refuse_on_record(path: str, refuse: Callable[[Refused, Arrival], Answering]) -> Refuse:
    """Return what answers a refused request at `path` in the words of `refuse`, which records it."""

    async def refuse_request(scope: Scope, send: Send, refusal: Refused) -> None:
        await send_answer(send, await refuse(refusal, arrival_of(scope, path)))

    return refuse_request


async def _unless_left(answering: Answering, receive: Receive) -> Answer | None:
    """Return the answer; None if the client left before it: then the call is cancelled and recorded."""
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
