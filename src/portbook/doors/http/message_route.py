"""A route that takes a message: refused or answered, and recorded either way."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from portbook.doors.http.request import InboundRequest, RequestHead, arrival_of
from portbook.doors.http.response import Reply, reply_to
from portbook.doors.http.router import Refuse, Route
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
    """Return the route at `path`, which reads one message and replies with what `answer` makes of it.

    `answer` also gets the last segment of the path. `refuse` records and words a request that is refused
    unread: its Host or Origin is foreign, or its body is not JSON, too slow or cut off.
    """

    def arrive(head: RequestHead) -> Arrival:
        return arrival_of(head, path)

    async def serve(request: InboundRequest) -> Reply:
        head, frame, segment = request
        return reply_to(await answer(frame, head.derive(arrive), segment))

    return Route(serve, refuse_on_record(path, refuse), takes_message=True)


def refuse_on_record(path: str, refuse: Callable[[Refused, Arrival], Answering]) -> Refuse:
    """Return what answers a refused request at `path` in the words of `refuse`, which records it."""

    async def refuse_request(head: RequestHead, refused: Refused) -> Reply:
        return reply_to(await refuse(refused, arrival_of(head, path)))

    return refuse_request
