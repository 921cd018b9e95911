"""`ServerRequests`: what a server asks us. A question is for the client of the call that it belongs to."""

from __future__ import annotations

import contextlib
from typing import Final

from portbook.canonical import json_bytes
from portbook.errors import REASONS, Reason
from portbook.model import JSON, JSONObject
from portbook.protocol.revisions_and_methods import Revision, Sender, method_of
from portbook.upstreams.answer_checks import AnswerChecks
from portbook.upstreams.open_requests import OpenRequests
from portbook.upstreams.running_call import RunningCall, UpstreamQuestion
from portbook.upstreams.transport import NotSent, UpstreamLink

__all__ = ["ServerRequests"]

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
