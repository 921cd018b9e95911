"""Requests that the server sends to a client, on one connection, until they are answered."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Final, cast

from portbook.errors import Failed, Reason
from portbook.mcp.messages_during_call import Emit, Outlet
from portbook.mcp.notifications_to_client import Notifications
from portbook.model import JSON, JSONObject
from portbook.protocol.revisions import Revision
from portbook.schema.engine import SchemaViolation

__all__ = ["ClientRequests"]

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
