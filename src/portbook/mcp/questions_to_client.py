"""What a tool asks of its client: of one that stays connected, or that answers with its next request.

It also has what a client is told beside answers: log messages, and that its user is done with a page.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from typing import Final, cast

from portbook.errors import Failed, Reason
from portbook.mcp.notifications_to_client import Notifications, is_heard, level_in
from portbook.mcp.report_queue import Emit, Outlet
from portbook.mcp.rounds_and_request_state import Carried
from portbook.mcp.task_board import Task
from portbook.model import JSON, Draft, InputNeeded, JSONObject
from portbook.protocol.extensions import META_CAPABILITIES, TASKS, declares
from portbook.protocol.negotiation import Session
from portbook.protocol.revisions_and_methods import Revision, method_of
from portbook.schema.engine import SchemaViolation
from portbook.tools.client_capabilities import missing_for

__all__ = ["ClientRequests", "LiveClient", "RoundClient"]

_COMPLETE: Final = "notifications/elicitation/complete"

IsUsable = Callable[[str, JSONObject], bool]


class LiveClient:
    """A client of the handshake era: it is asked over its connection while the tool waits."""

    __slots__ = ("_client_requests", "_notifications", "_outlet", "_revision", "_session", "_waiting")

    def __init__(
        self,
        session: Session,
        revision: Revision,
        outlet: Outlet,
        client_requests: ClientRequests,
        notifications: Notifications,
    ) -> None:
        self._session = session
        self._revision = revision
        self._outlet = outlet
        self._client_requests = client_requests
        self._notifications = notifications
        self._waiting = 0

    @property
    def capabilities(self) -> JSONObject:
        """Return the capabilities that the client has declared."""
        return self._session.capabilities

    @property
    def is_waiting(self) -> bool:
        """Return whether the tool waits for an answer."""
        return self._waiting > 0

    def lacks(self, request: JSONObject) -> JSONObject | None:
        """Return the capabilities that the client lacks for this request; None if it can be asked."""
        if not self._outlet.reaches_client or method_of(str(request["method"]), self._revision.name) is None:
            return {}
        return missing_for(request, self.capabilities)

    def hears(self, level: str) -> bool:
        """Return whether the client has enabled that level."""
        return is_heard(level, self._session.level)

    def log(self, level: str, data: Draft[JSON], logger: str | None) -> None:
        """Send the client a log message."""
        self._outlet.report(self._notifications.log(level, data, logger, self._revision))

    async def room(self) -> None:
        """Wait for room for the next report."""
        await self._outlet.room()

    def flush(self) -> None:
        """Send every report that waits."""
        self._outlet.flush()

    async def ask(self, requests: Mapping[str, JSONObject], is_usable: IsUsable) -> dict[str, JSONObject]:
        """Send all requests at once and return the answers.

        Raises `Failed` where the client lacks a capability, or an answer is unusable.
        """
        for request in requests.values():
            self.require(request)
        loop = asyncio.get_running_loop()
        self._waiting += 1
        asked = {key: loop.create_task(self._ask(each)) for key, each in requests.items()}
        try:
            # Not a `TaskGroup`: a call's first step has no task, which it would need.
            await asyncio.gather(*asked.values())
        except (Exception, asyncio.CancelledError):
            for task in asked.values():
                task.cancel()
            await asyncio.wait(asked.values())
            raise
        finally:
            self._waiting -= 1
            for task in asked.values():
                task.cancel()
        answers = {key: task.result() for key, task in asked.items()}
        if not all(is_usable(key, answer) for key, answer in answers.items()):
            raise Failed(Reason.NO_ANSWER, details={"why": "the answer is not what was asked for"})
        return answers

    @property
    def answers_later(self) -> bool:
        """Return False: it answers while the tool waits."""
        return False

    async def end_round(self, requests: Mapping[str, JSONObject], memo: JSON) -> None:
        """Fail: this era has no rounds."""
        raise Failed(Reason.NO_ANSWER, note="rounds in a revision without them")

    def detach(self, message: str | None = None) -> bool:
        """Do nothing: this era has no tasks."""
        return False

    def let_go(self) -> None:
        """Close the stream that the client waits on, if it can resume for the answer."""
        self._outlet.let_go()

    def complete_elicitation(self, identifier: str) -> None:
        """Tell the client that its user is done with a page, even after the call has ended."""
        if method_of(_COMPLETE, self._revision.name) is not None:
            self._client_requests.notify(_COMPLETE, {"elicitationId": identifier}, self._revision)

    async def _ask(self, request: JSONObject) -> JSONObject:
        return await self._client_requests.ask(request, self._revision, self._outlet)

    def require(self, request: JSONObject) -> None:
        """Check that the client can be asked. Raises `Failed` where it cannot."""
        if self.lacks(request) is not None:
            why = f"the client does not offer {request['method']}"
            if not self._outlet.reaches_client:
                why = "the client takes nothing before the answer; let it accept text/event-stream"
            raise Failed(Reason.NO_ANSWER, details={"why": why})


class RoundClient:
    """A client that answers with its next request: a question without an answer ends the call.

    Once the call continues as a task, its questions wait in the task.
    """

    __slots__ = (
        "_carried",
        "_level",
        "_notifications",
        "_outlet",
        "_revision",
        "capabilities",
        "on_detach",
        "task",
    )

    def __init__(
        self,
        meta: JSONObject,
        carried: Carried,
        revision: Revision,
        outlet: Outlet,
        notifications: Notifications,
    ) -> None:
        declared = meta.get(META_CAPABILITIES)
        self.capabilities: JSONObject = declared if isinstance(declared, dict) else {}
        self._level = level_in(meta)
        self._carried = carried
        self._revision = revision
        self._outlet = outlet
        self._notifications = notifications
        self.on_detach: Callable[[], None] | None = None
        """Turns the call into a task."""
        self.task: Task | None = None

    @property
    def is_waiting(self) -> bool:
        """Return whether the tool waits for an answer."""
        return self.task is not None and self.task.is_waiting

    @property
    def knows_tasks(self) -> bool:
        """Return whether the client declared the tasks extension."""
        return declares({META_CAPABILITIES: self.capabilities}, TASKS)

    def lacks(self, request: JSONObject) -> JSONObject | None:
        """Return the capabilities that the client lacks for this request; None if it can be asked."""
        return missing_for(request, self.capabilities)

    def hears(self, level: str) -> bool:
        """Return whether this request enabled that level."""
        return is_heard(level, self._level)

    def log(self, level: str, data: Draft[JSON], logger: str | None) -> None:
        """Send the client a log message."""
        self._outlet.report(self._notifications.log(level, data, logger, self._revision))

    async def room(self) -> None:
        """Wait for room for the next report."""
        await self._outlet.room()

    def flush(self) -> None:
        """Send every report that waits."""
        self._outlet.flush()

    async def ask(self, requests: Mapping[str, JSONObject], is_usable: IsUsable) -> dict[str, JSONObject]:
        """Return the answers that the client sent with this round.

        Raises `InputNeeded` for missing ones, `Failed` where the client lacks a capability.
        """
        required: JSONObject = {}
        for request in requests.values():
            required |= self.lacks(request) or {}
        if required:
            raise Failed(Reason.MISSING_CAPABILITY, details={"requiredCapabilities": required})
        found: dict[str, JSONObject] = {}
        for key, request in requests.items():
            answer = self._carried.answer_to(key, request)
            if answer is not None and is_usable(key, answer):
                found[key] = answer
                self._carried.use(key, request, answer)
        missing = {key: request for key, request in requests.items() if key not in found}
        if missing and self.task is not None:
            return found | await self.task.ask(missing, is_usable)
        if missing:
            raise InputNeeded(missing)
        return found

    @property
    def answers_later(self) -> bool:
        """Return whether it answers with its next request; a task is asked while it runs."""
        return self.task is None

    async def end_round(self, requests: Mapping[str, JSONObject], memo: JSON) -> None:
        """End the round with these requests; always raises `InputNeeded`."""
        needed = InputNeeded(requests)
        needed.memo = memo
        raise needed

    def detach(self, message: str | None = None) -> bool:
        """Continue as a task, if the client supports tasks; return whether it does."""
        if self.task is None and self.knows_tasks and self.on_detach is not None:
            self.on_detach()
        if self.task is not None:
            self.task.say(message)
        return self.task is not None

    def let_go(self) -> None:
        """Do nothing: without a session there is no stream to resume."""

    def complete_elicitation(self, identifier: str) -> None:
        """Do nothing: this era asks again in place of being told."""


# `ClientRequests`: requests that the server sends to a client, on one connection, until they are answered.

# Longer than a person at the client needs to answer.
_ANSWER_S: Final = 600

# Open requests of one connection.
_MAX_OPEN: Final = 64


class ClientRequests:
    """The open requests of one connection."""

    def __init__(
        self, notifications: Notifications, emit: Emit, node: Callable[[], str] | None = None
    ) -> None:
        """Write with `notifications`; `emit` sends what belongs to no call.

        Ids begin with the name of this process, which `node` returns, where any may get the answer.
        """
        self._notifications = notifications
        self._emit = emit
        self._open: dict[str, tuple[str, Revision, asyncio.Future[JSONObject]]] = {}
        self._node = node
        self._prefix = ""
        self._count = 0
        self._is_closed = False

    async def ask(self, request: JSONObject, revision: Revision, outlet: Outlet) -> JSONObject:
        """Send a request and return its result.

        Raises `Failed` where there is none: the client refuses, sends a wrong answer, or does not answer.
        """
        if self._is_closed or len(self._open) >= _MAX_OPEN:
            raise _no_answer("too much is asked on this connection" if self._open else "the client has left")
        # Drawn, so that an answer to an earlier process never matches.
        self._prefix = self._prefix or os.urandom(6).hex()
        self._count += 1
        identifier = f"{self._prefix}-{self._count}"
        if self._node is not None:
            identifier = f"{self._node()}.{identifier}"
        answer: asyncio.Future[JSONObject] = asyncio.get_running_loop().create_future()
        self._open[identifier] = (cast("str", request["method"]), revision, answer)
        try:
            outlet.send(self._written(identifier, request, revision))
            async with asyncio.timeout(_ANSWER_S):
                return await answer
        except TimeoutError:
            self._take_back(identifier, revision, outlet)
            raise _no_answer("the client did not answer in time") from None
        except asyncio.CancelledError:
            self._take_back(identifier, revision, outlet)
            raise
        finally:
            self._open.pop(identifier, None)

    def _written(self, identifier: str, request: JSONObject, revision: Revision) -> bytes:
        try:
            return self._notifications.request(identifier, request, revision)
        except SchemaViolation:
            raise _no_answer(f"{revision.name}, which the client speaks, does not allow it") from None

    def settle(self, message: JSONObject) -> bool:
        """Accept a response; return whether it answers an open request.

        What breaks JSON-RPC does not, even if it has the id of an open request: that request then fails.
        """
        identifier = message.get("id")
        found = self._open.get(identifier) if isinstance(identifier, str) else None
        if found is None or found[2].done():
            return False
        method, revision, answer = found
        if message.get("jsonrpc") != "2.0" or ("result" in message and "error" in message):
            answer.set_exception(_no_answer("the client's answer breaks its contract"))
            return False
        result: JSON = message.get("result")
        if isinstance(result, dict) and self._notifications.is_answer(method, result, revision):
            answer.set_result(result)
        elif "error" in message:
            answer.set_exception(_no_answer("the client answered with an error"))
        else:
            answer.set_exception(_no_answer("the client's answer breaks its contract"))
        return True

    def notify(self, method: str, params: JSONObject, revision: Revision) -> None:
        """Send a notification that belongs to no call, if the client is still there."""
        if not self._is_closed:
            self._emit(self._notifications.notification(method, params, revision), lambda: True)

    def close(self) -> None:
        """Fail every open request: the client has disconnected."""
        self._is_closed = True
        for _, _, answer in self._open.values():
            if not answer.done():
                answer.set_exception(_no_answer("the client has left"))

    def _take_back(self, identifier: str, revision: Revision, outlet: Outlet) -> None:
        params: JSONObject = {"requestId": identifier, "reason": "no longer needed"}
        outlet.tell(self._notifications.notification("notifications/cancelled", params, revision))


def _no_answer(why: str) -> Failed:
    return Failed(Reason.NO_ANSWER, details={"why": why})
