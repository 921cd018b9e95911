"""A route that takes a message: refused or answered, and recorded either way."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeAlias

from portbook.boundary import Begun
from portbook.doors.http.request import InboundRequest, RequestHead, arrival_of
from portbook.doors.http.response import HeldReply, Replied, Reply, reply_to
from portbook.doors.http.router import Refuse, Route
from portbook.errors import Refused
from portbook.model import Answer, Arrival
from portbook.stages.recorder import Recorder
from portbook.stages.state import CallState
from portbook.text.named_tuple import new_tuple
from portbook.wire.lines_and_size_limit import Frame

__all__ = ["message_route", "refuse_on_record"]

Answering: TypeAlias = Coroutine[Any, Any, Answer]


def message_route(
    path: str,
    begin: Callable[[Frame, Arrival, str], Begun],
    refuse: Callable[[Refused, Arrival], Answering],
    recorder: Recorder,
) -> Route:
    """Return the route at `path`, which reads one message and replies with the answer to its call.

    `begin` also gets the last segment of the path; `recorder` holds the record of a call that ends at once.
    `refuse` records and words a request that is refused unread: its Host or Origin is foreign, or its body is
    not JSON, too slow or cut off.
    """

    def arrive(head: RequestHead) -> Arrival:
        return arrival_of(head, path)

    def serve(request: InboundRequest) -> Replied:
        head, frame, segment, _ = request
        recorder.hold()
        try:
            begun = begin(frame, head.derive(arrive), segment)
        finally:
            recorder.release()
        if isinstance(begun, CallState):
            return new_tuple(HeldReply, (recorder, begun, reply_to))
        return _replied(begun)

    return Route(serve, refuse_on_record(path, refuse), takes_message=True)


async def _replied(answering: Answering) -> Reply:
    return reply_to(await answering)


def refuse_on_record(path: str, refuse: Callable[[Refused, Arrival], Answering]) -> Refuse:
    """Return what answers a refused request at `path` in the words of `refuse`, which records it."""

    async def refuse_request(head: RequestHead, refused: Refused) -> Reply:
        return reply_to(await refuse(refused, arrival_of(head, path)))

    return refuse_request
