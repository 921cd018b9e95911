"""`UpstreamConnection`: requests to one server and their answers, each checked, in the revision agreed on.

A server is not trusted. A line that is not JSON, an answer to nothing, a second answer and a notification
that its revision does not have are dropped and counted. An answer that breaks its schema fails its own
request alone, and the next one is served.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Final, NamedTuple

from portbook.canonical import json_bytes
from portbook.errors import REASONS, Finding, Reason, Refused
from portbook.model import JSON, JSONObject, Run
from portbook.protocol.log_levels import LEVELS
from portbook.protocol.methods import Sender, method_of
from portbook.protocol.revisions import NEWEST_HANDSHAKE, Revision
from portbook.upstreams.answer_checks import AnswerChecks, BadAnswer
from portbook.upstreams.request_meta import related_task
from portbook.upstreams.running_call import RunningCall, UpstreamQuestion
from portbook.upstreams.transport import ConnectionLost, NotSent, UpstreamLink
from portbook.wire.lines import OVERSIZE, Frame
from portbook.wire.parsing import parse

__all__ = ["Events", "UpstreamConnection"]

# Requests under way at one server; a call beyond that is refused.
_MAX_OPEN: Final = 1024

_CANCELLED: Final = "notifications/cancelled"
_QUESTIONS: Final = frozenset({"elicitation/create", "sampling/createMessage", "roots/list"})


class Events(NamedTuple):
    """Whom a connection tells of what concerns no single call."""

    changed: Callable[[str, JSONObject], None]
    """A notification that a list or a resource has changed: its method and its params."""
    lost: Callable[[str], None]
    """The connection has ended, and why."""
    odd: Callable[[str], None]
    """A message was dropped, and why."""


class _Open(NamedTuple):
    method: str
    call: RunningCall
    is_aside: bool
    """Whether it belongs to no call: it keeps no server busy, and nothing of the server belongs to it."""


class UpstreamConnection:
    """One connection to one server."""

    def __init__(self, link: UpstreamLink, checks: AnswerChecks, events: Events) -> None:
        self._link = link
        self._checks = checks
        self._events = events
        self._open: dict[int, _Open] = {}
        self._count = 0
        self.revision: Revision = NEWEST_HANDSHAKE
        self.capabilities: JSONObject = {}
        """What the server declared."""
        self.instructions: str | None = None
        self.is_lost = False

    @property
    def is_busy(self) -> bool:
        """Return whether a request is under way."""
        return any(not each.is_aside for each in self._open.values())

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
        task: str | None = None,
    ) -> RunningCall:
        """Send a request for a caller; `params` makes its params from its number.

        One that `is_aside` belongs to no call. One for the result of a `task` is answered as the call of the
        tool would be.

        Raises `NotSent` where nothing was sent, and `BadAnswer` where the official schema forbids it.
        """
        if self.is_lost:
            raise NotSent("its connection has ended")
        if len(self._open) >= _MAX_OPEN:
            raise NotSent("too many requests are under way there")
        self._count += 1
        number = self._count
        message: JSONObject = {"jsonrpc": "2.0", "id": number, "method": method, "params": params(number)}
        findings = self._checks.allows_request(message, method, self.revision.name)
        if findings:
            raise BadAnswer(findings)
        call = RunningCall(number, run, asyncio.get_running_loop().create_future(), task)
        self._open[number] = _Open(method if task is None else "tools/call", call, is_aside)
        try:
            self._link.send(message, json_bytes(message), number)
        except BaseException:
            del self._open[number]
            raise
        return call

    def forget(self, call: RunningCall, *, is_cancelled: bool = False) -> None:
        """Wait no longer for the answer to a call; where it `is_cancelled`, the server learns of that."""
        found = self._open.pop(call.number, None)
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

    def request_aside(self, method: str, params: JSONObject) -> RunningCall | None:
        """Send a request whose answer does not matter; None where it cannot be sent."""
        try:
            call = self.begin(method, lambda _: params, None, is_aside=True)
        except (NotSent, BadAnswer):
            return None
        call.result.add_done_callback(lambda done: done.cancelled() or done.exception())
        return call

    async def close(self) -> None:
        """End the connection."""
        self.lost("it was stopped")
        await self._link.close()

    # -- from the server

    def received(self, frame: Frame, of: int | None) -> None:
        """Take one message of the server."""
        if frame is OVERSIZE:
            self._unreadable("an answer is too large", of)
            return
        try:
            message = parse(frame)
        except Refused:
            if b'"jsonrpc"' in frame:  # meant as a message; other lines are what programs print
                self._unreadable("an answer is not JSON", of)
            else:
                self._events.odd("it wrote a line that is no message")
            return
        for each in message if isinstance(message, list) else [message]:
            if isinstance(each, dict):
                self._take(each, of)
            else:
                self._events.odd("it wrote a line that is no message")

    def awaits(self, of: int) -> bool:
        """Return whether a request is open."""
        return of in self._open

    def failed(self, of: int, error: Exception) -> None:
        """Fail one request."""
        found = self._open.pop(of, None)
        if found is not None and not found.call.result.done():
            found.call.fail(error)

    def lost(self, problem: str) -> None:
        """Fail every request: the server is gone."""
        if self.is_lost:
            return
        self.is_lost = True
        opened, self._open = self._open, {}
        for each in opened.values():
            if not each.call.result.done():
                each.call.fail(ConnectionLost(problem))
        self._events.lost(problem)

    def _unreadable(self, problem: str, of: int | None) -> None:
        """Fail the request that an unreadable message answers, as far as that is known."""
        self._events.odd(problem)
        only = self._only()
        number = of if of is not None else None if only is None else only.number
        if number is not None:
            self.failed(number, BadAnswer((Finding("", problem, "json", ""),)))

    def _take(self, message: JSONObject, of: int | None) -> None:
        method = message.get("method")
        if method is None:
            self._take_answer(message)
        elif not isinstance(method, str):
            self._events.odd("it sent a message whose method is no string")
        elif "id" in message:
            self._take_question(message, method, of)
        else:
            self._take_notification(message, method, of)

    def _take_answer(self, message: JSONObject) -> None:
        number = message.get("id")
        found = self._open.pop(number, None) if type(number) is int else None
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
            token = params.get("progressToken")
            call = self._call_under(token) if type(token) is int else None
            if call is not None:
                call.progress(params)
        elif method == "notifications/message":
            call = self._call_of(of, params)
            if call is not None:
                call.log(params)
        elif method.endswith(("list_changed", "resources/updated")):
            self._events.changed(method, params)

    def _take_question(self, message: JSONObject, method: str, of: int | None) -> None:
        identifier = message["id"]
        known = method_of(method, self.revision.name)
        if method == "ping":
            self._respond(identifier, {"result": {}})
        elif known is None or known.sender is Sender.CLIENT or method not in _QUESTIONS:
            self._respond(identifier, _error(Reason.UNKNOWN_METHOD, "not served"))
        elif not self._checks.is_notification(message, method, self.revision.name):
            self._respond(
                identifier, _error(Reason.BAD_PARAMS, "the official schema does not allow this request")
            )
        else:
            params = message.get("params")
            self._ask(identifier, method, params, self._call_of(of, params))

    def _ask(self, identifier: JSON, method: str, params: JSON, call: RunningCall | None) -> None:
        def refuse(why: str) -> None:
            self._respond(identifier, _error(Reason.INTERNAL, why))

        if call is None:
            refuse(
                "several calls are under way, and nothing says which of their clients to ask"
                if self.is_busy
                else "no call is under way whose client could be asked"
            )
            return

        def answer(given: JSONObject) -> None:
            self._respond(identifier, {"result": given})

        request: JSONObject = {"method": method, "params": params if isinstance(params, dict) else {}}
        call.ask(UpstreamQuestion(request, answer, refuse))

    def _call_of(self, of: int | None, params: JSON) -> RunningCall | None:
        """Return the call that a message belongs to: its stream's, its task's, or the only one under way."""
        if of is not None and of in self._open:
            return self._open[of].call
        task = related_task(params)
        of_task = (each.call for each in self._open.values() if task is not None and each.call.task == task)
        return next(of_task, None) or self._only()

    def _call_under(self, token: int) -> RunningCall | None:
        """Return the call whose progress has this token: the number of its first request."""
        found = self._open.get(token)
        if found is not None:
            return found.call
        return next((each.call for each in self._open.values() if each.call.token == token), None)

    def _only(self) -> RunningCall | None:
        """Return the one call that is under way; None where there are several."""
        calls = [each.call for each in self._open.values() if not each.is_aside]
        return calls[0] if len(calls) == 1 else None

    def _respond(self, identifier: JSON, answer: JSONObject) -> None:
        message: JSONObject = {"jsonrpc": "2.0", "id": identifier, **answer}
        with contextlib.suppress(NotSent):  # whoever waits for the server learns that it is gone
            self._link.send(message, json_bytes(message))


def _error(reason: Reason, why: str) -> JSONObject:
    return {"error": {"code": REASONS[reason].mcp.code_in(""), "message": why}}
