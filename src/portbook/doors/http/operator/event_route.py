"""`GET /operator/events`: calls, waiting approvals and MCP servers as they change, as server-sent events.

It is read with the operator key in a header, so not by an `EventSource`: no key is ever part of an address.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final

from portbook.audit.call_index_filters_and_figures import CallIndex, CallRow
from portbook.boundary import Boundary
from portbook.canonical import json_bytes
from portbook.doors.http.request import InboundRequest, arrival_of
from portbook.doors.http.response import Reply, Write, lines_of, reply_to
from portbook.doors.http.router import Serve
from portbook.model import JSON, JSONObject

__all__ = ["EVENTS", "follow_calls"]

EVENTS: Final = "/operator/events"

_POLL_S: Final = 0.3
# A sign of life for proxies that close what is silent.
_SIGN_S: Final = 15.0
# A stream that fell behind is told how many calls it missed.
_MOST_AT_ONCE: Final = 200

_HEADERS: Final = lines_of(
    [
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-store"),
        (b"x-accel-buffering", b"no"),
    ]
)


def follow_calls(
    boundary: Boundary,
    index: CallIndex,
    waiting: Callable[[], int],
    upstreams: Callable[[], JSONObject],
    on_close: Callable[[Callable[[], None]], object],
) -> Serve:
    """Return what streams the calls that end from now on, how many approvals wait, and how servers do.

    `on_close` is told what ends the streams when the server ends.
    """
    closing = asyncio.Event()
    on_close(closing.set)

    async def serve(request: InboundRequest) -> Reply:
        async def act() -> JSON:
            return {}

        answer = await boundary.operate("calls.follow", arrival_of(request.head, EVENTS), act)
        if answer.status != 200:
            return reply_to(answer)

        async def stream(write: Write) -> None:
            seen = _Seen(await asyncio.to_thread(index.rows))
            told: dict[str, JSONObject] = {}
            quiet_s = 0.0
            while not closing.is_set():
                rows = seen.new(await asyncio.to_thread(index.rows))
                if rows:
                    await write(_event("calls", _calls(rows)))
                states: dict[str, JSONObject] = {
                    "waiting": {"waiting": await asyncio.to_thread(waiting)},
                    "upstreams": upstreams(),
                }
                for name, state in states.items():
                    if told.get(name) != state:
                        told[name] = state
                        await write(_event(name, state))
                quiet_s = 0.0 if rows else quiet_s + _POLL_S
                if quiet_s >= _SIGN_S:
                    quiet_s = 0.0
                    await write(b": still here\n\n")
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_S):
                        await closing.wait()

        return Reply(200, _HEADERS, stream=stream)

    return serve


class _Seen:
    """Which calls a stream has told of: those up to the newest, by time and id."""

    def __init__(self, rows: list[CallRow]) -> None:
        self._newest = rows[-1] if rows else None

    def new(self, rows: list[CallRow]) -> list[CallRow]:
        """Return the calls after the newest one that was seen."""
        found: list[CallRow] = []
        for row in reversed(rows):
            if row is self._newest:
                break
            found.append(row)
        if found:
            self._newest = rows[-1]
        return found[::-1]


def _calls(rows: list[CallRow]) -> JSONObject:
    newest = rows[-_MOST_AT_ONCE:]
    return {"calls": [row.as_data() for row in newest], "missed": len(rows) - len(newest)}


def _event(name: str, data: JSONObject) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), json_bytes(data))
