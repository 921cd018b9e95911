"""Clients as tools see them: one that stays connected, and one that answers with its next request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final

from portbook.errors import Failed, Reason
from portbook.mcp.client_requests import ClientRequests
from portbook.mcp.messages_during_call import Outlet
from portbook.mcp.notifications import Notifications
from portbook.mcp.rounds import Carried
from portbook.mcp.task_board import Task
from portbook.model import JSON, Draft, InputNeeded, JSONObject
from portbook.protocol.extensions import META_CAPABILITIES, TASKS, declares
from portbook.protocol.mcp_methods import method_of
from portbook.protocol.negotiated_session import LEVELS, Session
from portbook.protocol.revisions import Revision
from portbook.tools.client_capabilities import missing_for

__all__ = ["LiveClient", "RoundClient"]

_META_LEVEL: Final = "io.modelcontextprotocol/logLevel"
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
        return LEVELS.index(level) >= LEVELS.index(self._session.level)

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
            # Not a `TaskGroup`: in a call's first step the task is the door's, which it would cancel.
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
        declared, level = meta.get(META_CAPABILITIES), meta.get(_META_LEVEL)
        self.capabilities: JSONObject = declared if isinstance(declared, dict) else {}
        self._level = level if isinstance(level, str) and level in LEVELS else None
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
        return self._level is not None and LEVELS.index(level) >= LEVELS.index(self._level)

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
