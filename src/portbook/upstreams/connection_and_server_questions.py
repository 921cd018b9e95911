"""`UpstreamConnection`: requests to one server and their answers, each checked, in the revision agreed on.

A server is not trusted. A line that is not JSON, an answer to nothing, a second answer and a notification
that its revision does not have are dropped and counted. An answer that breaks its schema fails its own
request alone, and the next one is served.

`ServerRequests` has what a server asks us, and `OpenRequests` to which of our requests its messages belong.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final, NamedTuple, cast

from portbook.canonical import json_bytes
from portbook.errors import REASONS, Finding, Reason
from portbook.model import JSON, JSONObject, Run
from portbook.protocol.negotiation import LEVELS
from portbook.protocol.revisions_and_methods import NEWEST_HANDSHAKE, Revision, Sender, method_of
from portbook.upstreams.message_checks_and_meta import (
    NO_MESSAGE,
    UNREADABLE,
    AnswerChecks,
    BadAnswer,
    UnreadableAnswer,
    messages_in,
    related_task,
)
from portbook.upstreams.running_call import RunningCall, UpstreamQuestion
from portbook.upstreams.transport import ConnectionLost, NotSent, UpstreamLink
from portbook.wire.lines_and_size_limit import Frame

__all__ = ["Events", "OpenRequest", "OpenRequests", "ServerRequests", "UpstreamConnection"]

# Longer than any server takes that answers at all.
_ASIDE_S: Final = 60.0

_CANCELLED: Final = "notifications/cancelled"


class Events(NamedTuple):
    """Whom a connection tells of what concerns no single call."""

    changed: Callable[[str, JSONObject], None]
    """A notification that a list or a resource has changed: its method and its params."""
    lost: Callable[[UpstreamConnection, str], None]
    """A connection has ended, and why."""
    odd: Callable[[str], None]
    """A message was dropped, and why."""
    troubled: Callable[[str | None], None] = lambda _: None
    """What keeps every request from being answered, None where nothing does any more."""


class UpstreamConnection:
    """One connection to one server."""

    def __init__(self, link: UpstreamLink, checks: AnswerChecks, events: Events) -> None:
        self._link = link
        self._checks = checks
        self._events = events
        self._open = OpenRequests()
        self._server_requests = ServerRequests(self._open, checks, link)
        self._count = 0
        self.revision: Revision = NEWEST_HANDSHAKE
        self.capabilities: JSONObject = {}
        """What the server declared."""
        self.instructions: str | None = None
        self.last_question: str | None = None
        """The method of the last request that belongs to no call."""
        self.is_lost = False

    @property
    def is_busy(self) -> bool:
        """Return whether a request is under way."""
        return self._open.is_busy

    @property
    def link(self) -> UpstreamLink:
        """Return the way to the server."""
        return self._link

    # -- to the server

    async def open(self) -> None:
        """Begin. Raises `NotSent` where the server cannot be reached or started."""
        await self._link.open(self)

    def agree(self, revision: Revision) -> None:
        """Speak this revision from now on."""
        self.revision = revision
        self._link.agreed(revision.name)

    async def request(self, method: str, params: JSONObject, timeout_s: float) -> JSONObject:
        """Send a request that belongs to no call, and return its result.

        Raises `NotSent`, `ConnectionLost`, `TimeoutError`, `RpcError` and `BadAnswer`.
        """
        self.last_question = method
        call = self.begin(method, lambda _: params, None, is_aside=True)
        try:
            async with asyncio.timeout(timeout_s):
                return await call.result
        finally:
            self.forget(call, is_cancelled=not call.result.done() or call.result.cancelled())

    def begin(
        self,
        method: str,
        params: Callable[[int], JSONObject],
        run: Run | None,
        *,
        is_aside: bool = False,
        is_stream: bool = False,
        task: str | None = None,
    ) -> RunningCall:
        """Send a request for a caller; `params` makes its params from its number.

        One that `is_aside` belongs to no call, one that `is_stream` is answered at its end. One for the
        result of a `task` is answered as the call of the tool would be.

        Raises `NotSent` where nothing was sent, and `BadAnswer` where the official schema forbids it.
        """
        if self.is_lost:
            raise NotSent("its connection has ended")
        if self._open.is_full(is_aside=is_aside):
            raise NotSent("too many requests are under way there")
        self._count += 1
        number = self._count
        message: JSONObject = {"jsonrpc": "2.0", "id": number, "method": method, "params": params(number)}
        findings = self._checks.allows_request(message, method, self.revision.name)
        if findings:
            raise BadAnswer(findings)
        call = RunningCall(number, run, asyncio.get_running_loop().create_future(), task)
        self._open.put(OpenRequest(method if task is None else "tools/call", call, is_aside, is_stream))
        try:
            self._link.send(message, json_bytes(message), number)
        except BaseException:
            self._open.take(number)
            raise
        return call

    def forget(self, call: RunningCall, *, is_cancelled: bool = False) -> None:
        """Wait no longer for the answer to a call; where it `is_cancelled`, the server learns of that."""
        found = self._open.take(call.number)
        if found is not None:
            # A server may not be told to cancel `initialize`.
            if is_cancelled and not self.is_lost and found.method != "initialize":
                self._cancel(call)
            self._link.abandon(call.number)
        for question in call.take_questions():
            question.refuse("the call has ended")

    def _cancel(self, call: RunningCall) -> None:
        if call.task is not None:  # it goes on without the request for its result
            self.request_aside("tasks/cancel", {"taskId": call.task})
        self.notify(_CANCELLED, {"requestId": call.number, "reason": "the caller no longer waits"})

    def require_result(self, method: str, result: JSONObject) -> None:
        """Check a result that came by other ways than the answer to its request. Raises `BadAnswer`."""
        self._checks.require(method, result, self.revision.name)

    def notify(self, method: str, params: JSONObject | None = None) -> None:
        """Send a notification, if it can be sent."""
        message: JSONObject = {"jsonrpc": "2.0", "method": method}
        if params:
            message["params"] = params
        with contextlib.suppress(NotSent):
            self._link.send(message, json_bytes(message))

    def hear_everything(self) -> None:
        """Ask a server of the handshake era for log messages of every level."""
        self.request_aside("logging/setLevel", {"level": LEVELS[0]})

    def request_aside(
        self, method: str, params: JSONObject, *, is_stream: bool = False
    ) -> RunningCall | None:
        """Send a request whose answer does not matter; None where it cannot be sent.

        Many servers never answer such a request: after a while it is forgotten, unless it `is_stream`.
        """
        try:
            call = self.begin(method, lambda _: params, None, is_aside=True, is_stream=is_stream)
        except (NotSent, BadAnswer):
            return None
        if not is_stream:
            expiry = asyncio.get_running_loop().call_later(_ASIDE_S, self._expire, call.number)
            call.result.add_done_callback(lambda _: expiry.cancel())
        return call

    def _expire(self, number: int) -> None:
        self.failed(number, TimeoutError())
        self._link.abandon(number)

    async def close(self) -> None:
        """End the connection."""
        self.lost("it was stopped")
        await self._link.close()

    # -- from the server

    def received(self, frame: Frame, of: int | None) -> None:
        """Take one message of the server."""
        read = messages_in(frame, has_batches=self.revision.has_batches)
        if isinstance(read, UnreadableAnswer):
            self._unreadable(read, of)
            return
        for message in read:
            if isinstance(message, dict):
                self._take(cast("JSONObject", message), of)
            else:
                self._events.odd(NO_MESSAGE)

    def awaits(self, of: int) -> bool:
        """Return whether a request is open."""
        return of in self._open

    def failed(self, of: int, error: Exception) -> None:
        """Fail one request."""
        found = self._open.take(of)
        if found is not None and not found.call.result.done():
            found.call.fail(error)

    def unusable(self, of: int, pointer: str, problem: str) -> None:
        """Fail one request, whose answer breaks the protocol."""
        self.failed(of, BadAnswer((Finding(pointer, problem, "http", ""),)))

    def troubled(self, problem: str | None) -> None:
        """Tell what keeps every request from being answered."""
        self._events.troubled(problem)

    def lost(self, problem: str) -> None:
        """Fail every request: the server is gone."""
        if self.is_lost:
            return
        self.is_lost = True
        for each in self._open.take_all():
            if not each.call.result.done():
                each.call.fail(ConnectionLost(problem))
        self._events.lost(self, problem)

    def _unreadable(self, answer: UnreadableAnswer, of: int | None) -> None:
        """Fail the request that an unreadable message answers, as far as that is known."""
        self._events.odd(answer.problem)
        number = of
        if number is None:
            named = [each for each in answer.named if each in self._open]
            only = self._open.only_answerable()
            number = named[0] if len(named) == 1 else None if only is None else only.number
        if number is not None:
            self.failed(number, BadAnswer((Finding("", answer.problem, UNREADABLE, ""),)))

    def _take(self, message: JSONObject, of: int | None) -> None:
        method = message.get("method")
        if method is None:
            self._take_answer(message)
        elif not isinstance(method, str):
            self._events.odd("it sent a message whose method is no string")
        elif "id" in message:
            self._server_requests.take(message, method, self.revision, of)
        else:
            self._take_notification(message, method, of)

    def _take_answer(self, message: JSONObject) -> None:
        found = self._open.take(message.get("id"))
        if found is None or found.call.result.done():
            self._events.odd("it answered a request that is not open")
            return
        try:
            result = self._checks.result_in(message, found.method, self._revision_of(found.method))
        except Exception as error:  # noqa: BLE001 - what it is, the one that waits will say
            found.call.fail(error)
        else:
            found.call.settle(result)

    def _revision_of(self, method: str) -> str:
        # Both of these come before a revision is agreed on.
        return "2026-07-28" if method == "server/discover" else self.revision.name

    def _take_notification(self, message: JSONObject, method: str, of: int | None) -> None:
        if not self._checks.is_notification(message, method, self.revision.name):
            self._events.odd("it sent a notification that its revision does not allow")
            return
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if method == "notifications/progress":
            call = self._open.call_under(params.get("progressToken"))
            if call is not None:
                call.progress(params)
        elif method == "notifications/message":
            call = self._open.call_of(of, params)
            if call is not None:
                call.log(params)
        elif method == "notifications/elicitation/complete":
            self._server_requests.complete(params.get("elicitationId"))
        elif method.endswith(("list_changed", "resources/updated")):
            self._events.changed(method, params)


# `ServerRequests`: what a server asks us. A question is for the client of the call that it belongs to.

_QUESTIONS: Final = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})


# Pages that users were sent to and are not known to be done with; the oldest is forgotten.
_MAX_PAGES: Final = 256


class ServerRequests:
    """Takes the requests of one server."""

    __slots__ = ("_checks", "_link", "_open", "_pages")

    def __init__(self, opened: OpenRequests, checks: AnswerChecks, link: UpstreamLink) -> None:
        self._open = opened
        self._checks = checks
        self._link = link
        self._pages: dict[str, RunningCall] = {}

    def complete(self, identifier: JSON) -> None:
        """Tell the client that was shown a page that its user is done with it; nobody else."""
        call = self._pages.pop(identifier, None) if isinstance(identifier, str) else None
        client = None if call is None else call.client()
        if client is not None:
            client.complete_elicitation(str(identifier))

    def take(self, message: JSONObject, method: str, revision: Revision, of: int | None) -> None:
        """Answer a request, or let it wait for the one that runs its call; `of` is the call of its stream."""
        identifier = message["id"]
        known = method_of(method, revision.name)
        if method == "ping":
            self._respond(identifier, {"result": {}})
        elif known is None or known.sender is Sender.CLIENT or method not in _QUESTIONS:
            self._respond(identifier, _error(Reason.UNKNOWN_METHOD, "not served"))
        elif not self._checks.is_notification(message, method, revision.name):
            self._respond(
                identifier, _error(Reason.BAD_PARAMS, "the official schema does not allow this request")
            )
        else:
            params = message.get("params")
            self._ask(identifier, method, params, self._open.call_of(of, params))

    def _ask(self, identifier: JSON, method: str, params: JSON, call: RunningCall | None) -> None:
        def refuse(why: str) -> None:
            self._respond(identifier, _error(Reason.INTERNAL, why))

        if call is None:
            refuse(
                "several calls are under way, and nothing says which of their clients to ask"
                if self._open.is_busy
                else "no call is under way whose client could be asked"
            )
            return

        def answer(given: JSONObject) -> None:
            self._respond(identifier, {"result": given})

        asked = params if isinstance(params, dict) else {}
        page = asked.get("elicitationId")
        if isinstance(page, str) and asked.get("mode") == "url":
            self._remember(page, call)
        call.ask(UpstreamQuestion({"method": method, "params": asked}, answer, refuse))

    def _remember(self, page: str, call: RunningCall) -> None:
        self._pages.pop(page, None)
        self._pages[page] = call
        if len(self._pages) > _MAX_PAGES:
            del self._pages[next(iter(self._pages))]

    def _respond(self, identifier: JSON, answer: JSONObject) -> None:
        message: JSONObject = {"jsonrpc": "2.0", "id": identifier, **answer}
        with contextlib.suppress(NotSent):  # whoever waits for the server learns that it is gone
            self._link.send(message, json_bytes(message))


def _error(reason: Reason, why: str) -> JSONObject:
    return {"error": {"code": REASONS[reason].mcp.code_in(""), "message": why}}


# `OpenRequests`: the requests under way at one server, and to which of them its messages belong.

# Requests under way at one server, of calls and aside; one beyond that is refused.
_MAX_OPEN: Final = 1024


class OpenRequest(NamedTuple):
    """A request that has no answer yet."""

    method: str
    call: RunningCall
    is_aside: bool
    """Whether it belongs to no call: it keeps no server busy, and nothing of the server belongs to it."""
    is_stream: bool = False
    """Whether it is answered at its end alone, and brings notifications until then."""


class OpenRequests:
    """The open requests of one connection, by their numbers."""

    __slots__ = ("_aside", "_open")

    def __init__(self) -> None:
        self._open: dict[int, OpenRequest] = {}
        self._aside = 0

    @property
    def is_busy(self) -> bool:
        """Return whether one of them belongs to a call."""
        return len(self._open) > self._aside

    def is_full(self, *, is_aside: bool) -> bool:
        """Return whether there are as many of calls, or aside, as there may be."""
        return (self._aside if is_aside else len(self._open) - self._aside) >= _MAX_OPEN

    def __contains__(self, number: int) -> bool:
        return number in self._open

    def put(self, request: OpenRequest) -> None:
        """Add a request."""
        self._open[request.call.number] = request
        self._aside += request.is_aside

    def take(self, number: JSON) -> OpenRequest | None:
        """Remove and return the request of this number; None where there is none."""
        found = self._open.pop(number, None) if type(number) is int else None
        if found is not None:
            self._aside -= found.is_aside
        return found

    def take_all(self) -> list[OpenRequest]:
        """Remove and return all of them."""
        taken, self._open, self._aside = list(self._open.values()), {}, 0
        return taken

    def call_of(self, stream: int | None, params: JSON) -> RunningCall | None:
        """Return the call that a message belongs to: its stream's, its task's, or the only one under way."""
        if stream is not None and stream in self._open:
            return self._open[stream].call
        task = related_task(params)
        of_task = (each.call for each in self._open.values() if task is not None and each.call.task == task)
        return next(of_task, None) or self.only()

    def call_under(self, token: JSON) -> RunningCall | None:
        """Return the call whose progress has this token: the number of its first request."""
        if type(token) is not int:
            return None
        found = self._open.get(token)
        if found is not None:
            return found.call
        return next((each.call for each in self._open.values() if each.call.token == token), None)

    def only_answerable(self) -> RunningCall | None:
        """Return the one request that an answer without an id can be meant for: a call, or one aside."""
        waiting = [each.call for each in self._open.values() if not each.is_stream]
        return self.only() or (waiting[0] if len(waiting) == 1 else None)

    def only(self) -> RunningCall | None:
        """Return the one call that is under way; None where there are several.

        What is for one client never goes to a different one. Of several calls of one client it is, in turn:

        1. One that is no task: what is of a task names it.
        2. The one that waits for no answer: a call that waits most likely asks no more meanwhile.
        3. The one whose round has not ended, which may ask several things at once.
        """
        calls = [each.call for each in self._open.values() if not each.is_aside]
        if len(calls) > 1 and len({call.owner for call in calls}) == 1:
            calls = [call for call in calls if call.task is None] or calls
            silent = [call for call in calls if not call.is_asking]
            calls = silent or [call for call in calls if not call.is_between_rounds]
        return calls[0] if len(calls) == 1 else None
