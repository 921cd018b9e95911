"""Questions of a server: whether the caller's client can be asked them, and how its answers return."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Final

from portbook.errors import Failed, Reason
from portbook.executors.mcp_server_request_and_result import UpstreamRequest
from portbook.model import Client, JSONObject
from portbook.upstreams.connection_and_server_questions import UpstreamConnection
from portbook.upstreams.running_call import RunningCall, UpstreamQuestion
from portbook.upstreams.transport import ConnectionLost

__all__ = ["MAX_ROUNDS", "HeldCall", "HeldCalls", "any_answer", "askable", "deliver", "gathered"]

# A round costs its client a request, and often a person's attention: what a server asks at once goes in one.
_GATHER_S: Final = 0.05

# How often a server may answer with questions before a call ends.
MAX_ROUNDS: Final = 10


async def gathered(
    way: UpstreamRequest, call: RunningCall
) -> tuple[Client | None, dict[str, UpstreamQuestion]]:
    """Return the client, and what the server asks it now; what it cannot be asked is refused."""
    client = way.run.reach()
    if client is not None and (client.answers_later or call.task is not None):
        await asyncio.sleep(_GATHER_S)
    asked: dict[str, UpstreamQuestion] = {}
    for each in call.take_questions():
        try:
            client = askable(way, (each.request,))
        except Failed as failure:
            each.refuse(str(failure.details.get("why", "the client cannot be asked")))
        else:
            asked[f"question_{len(asked) + 1}"] = each
    return client, asked


def askable(way: UpstreamRequest, requests: Iterable[JSONObject]) -> Client:
    """Return the client, if it may and can be asked all this.

    Raises `Failed` where it may not, or cannot.
    """
    client = way.run.reach()
    for request in requests:
        method = str(request.get("method"))
        if not _is_showable(request):
            raise Failed(Reason.NO_ANSWER, details={"why": "only web pages are shown to a user"})
        if method.partition("/")[0] not in way.may_ask:
            why = f"mcp.{way.entry.server}.may_ask does not allow {method}"
            raise Failed(Reason.NO_ANSWER, details={"why": why})
        if client is None or client.lacks(request) is not None:
            raise Failed(Reason.NO_ANSWER, details={"why": f"the client does not offer {method}"})
    if client is None:
        raise Failed(Reason.NO_ANSWER, details={"why": "no client can be asked"})
    return client


def deliver(asking: asyncio.Future[dict[str, JSONObject]], asked: dict[str, UpstreamQuestion]) -> None:
    """Pass the client's answers on to the server, or that there are none."""
    if asking.cancelled() or not asking.done():
        for question in asked.values():
            question.refuse("the call has ended")
        return
    failure = asking.exception()
    if failure is None:
        for key, answer in asking.result().items():
            asked[key].answer(answer)
        return
    if not isinstance(failure, Failed):
        raise failure
    for question in asked.values():
        question.refuse(str(failure.details.get("why", "the client did not answer")))


def any_answer(key: str, answer: JSONObject) -> bool:
    """Return True: whether it is an answer, the server says that asked."""
    return True


def _is_showable(request: JSONObject) -> bool:
    """Return whether a question is no page, or a web page: a client opens what it is given."""
    params = request.get("params")
    if not isinstance(params, dict) or params.get("mode") != "url":
        return True
    return str(params.get("url")).lower().startswith(("https://", "http://"))


# Calls that stay open at a server while a client that answers later is asked, within limits.

# As long as a person at a client may take to answer.
_HELD_S: Final = 600.0
_MAX_HELD: Final = 256


@dataclass(frozen=True, slots=True)
class HeldCall:
    """A call at a server that waits for answers."""

    connection: UpstreamConnection
    call: RunningCall
    asked: dict[str, UpstreamQuestion]
    requests: dict[str, JSONObject]
    """The questions as the client was asked them, by the keys of their answers."""


class HeldCalls:
    """The held calls of this process; each is taken once, by the round that answers."""

    def __init__(self) -> None:
        self._held: dict[str, tuple[HeldCall, asyncio.TimerHandle]] = {}

    def put(self, held: HeldCall) -> str:
        """Hold a call; return the handle for its next round.

        Raises `Failed` where too many are held.
        """
        if len(self._held) >= _MAX_HELD:
            raise Failed(Reason.NO_ANSWER, details={"why": "too many calls wait for answers"})
        handle = os.urandom(16).hex()
        expires = asyncio.get_running_loop().call_later(_HELD_S, self.drop, handle)
        self._held[handle] = held, expires
        held.call.end_round()
        held.call.result.add_done_callback(partial(self._ended, handle))
        return handle

    def take(self, handle: str) -> HeldCall | None:
        """Return the call of a handle, which then is held no longer; None where it has ended or expired."""
        found = self._held.pop(handle, None)
        if found is None:
            return None
        found[1].cancel()
        return found[0]

    def _ended(self, handle: str, result: asyncio.Future[JSONObject]) -> None:
        # A result waits for the round that takes it; a call whose server is gone has none, and needs no room.
        if not result.cancelled() and isinstance(result.exception(), ConnectionLost):
            self.drop(handle)

    def drop(self, handle: str) -> None:
        """End a call that nobody continues."""
        held = self.take(handle)
        if held is not None:
            held.connection.forget(held.call, is_cancelled=not held.call.result.done())

    def close(self) -> None:
        """End all of them."""
        for handle in list(self._held):
            self.drop(handle)
