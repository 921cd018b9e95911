"""The approval of one call: by the operator or, if policy allows it, by the user of the client.

An approval is a ticket in the store, valid for one run of its call. Pure: no I/O; the store is a port.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from portbook.access.approval_state_and_binding import Ask, Undecidable
from portbook.canonical import json_bytes
from portbook.errors import Reason, Refused
from portbook.exception_place import place_of
from portbook.globs import matches
from portbook.model import Call, Caller, Client, InputNeeded, JSONObject
from portbook.policy import Decision
from portbook.stages.ports import Approvals
from portbook.stages.rules_in_force import Rules
from portbook.stages.state import CallState
from portbook.tools.catalog import Tool

if TYPE_CHECKING:
    from portbook.tools.questions import Form

__all__ = ["ApprovalStage", "require_runnable", "require_unchanged", "unusable"]

# Longer than any approval is valid: the wait ends when the approval expires.
_UNTIL_IT_EXPIRES_MS: Final = 10**12

# Who decided, if the user of the client did; and the form that the user sees.
_CLIENT: Final = "client"
_CONSENT_NAME: Final = "portbook_approval"
_CONSENT: Final[JSONObject] = {
    "properties": {"approve": {"type": "boolean", "title": "Allow this call"}},
    "required": ["approve"],
}


class ApprovalStage:
    """Requests approval, and admits a call once it is approved."""

    def __init__(self, approvals: Approvals, warn: Callable[[str], None]) -> None:
        self._approvals = approvals
        self._warn = warn

    async def admit(self, state: CallState, tool: Tool, decision: Decision, caller: Caller) -> str:
        """Return the ticket under which the call may run, once it is approved.

        If policy allows it and the client can ask, its user decides; otherwise the operator does.
        """
        call, ask = state.call, _ask(state, tool, decision, caller)
        client = state.exchange.client() if decision.approver == "client" else None
        form = None if client is None else _consent_form(tool, state)
        if client is None or form is None or client.lacks(form.request()) is not None:
            return await self._await_operator(state, ask)
        try:
            return await self._approve(state, ask, call.approval, 0)
        except Refused as refused:
            if refused.reason is not Reason.APPROVAL_REQUIRED:
                raise
            ticket = cast("str", refused.details["approval_id"])
        is_allowed = await _consented(client, form, ticket)
        try:
            await self._approvals.decide(ticket, "approve" if is_allowed else "deny", by=_CLIENT)
        except Undecidable:
            pass  # the operator was quicker; that decision counts
        except OSError as error:
            raise unusable(error, self._warn) from None
        return await self._approve(state, ask, ticket, 0)

    async def _await_operator(self, state: CallState, ask: Ask) -> str:
        """Return the ticket under which the call may run, once the operator has approved it.

        A client that supports tasks gets one, which resumes after the decision.
        """
        call = state.call
        try:
            return await self._approve(state, ask, call.approval, call.wait_ms or None)
        except Refused as refused:
            client = state.exchange.client() if refused.reason is Reason.APPROVAL_REQUIRED else None
            if client is None or not client.detach(refused.sentence):
                raise
            ticket = cast("str", refused.details["approval_id"])
        admitted = await self._approve(state, ask, ticket, _UNTIL_IT_EXPIRES_MS)
        client.detach(None)  # no longer waits for a decision
        return admitted

    async def _approve(self, state: CallState, ask: Ask, approval: str | None, wait_ms: int | None) -> str:
        """Return the ticket under which the call may run.

        Raises `Refused` if the call is not approved, or not yet.
        """
        try:
            return await self._approvals.admit(ask, approval, wait_ms)
        except Refused as refused:  # the record names the ticket, and why
            named = refused.details.get("approval_id")
            state.approval = named if isinstance(named, str) else None
            refused.note = refused.note or cast("str | None", refused.details.get("why"))
            raise
        except OSError as error:
            raise unusable(error, self._warn) from None


def unusable(error: OSError, warn: Callable[[str], None]) -> Refused:
    """Warn that the store cannot be used, and return the refusal of a call that needs it."""
    warn(f"calls that need the store are refused: {error}")
    return Refused(Reason.STORE_UNUSABLE, note=place_of(error))


def _consent_form(tool: Tool, state: CallState) -> Form:
    from portbook.tools.questions import Form  # late: only where the user of the client decides

    return Form(f"Allow {tool.spec.name} to run with {json_bytes(state.shown()).decode()}?", _CONSENT)


async def _consented(client: Client, form: Form, ticket: str) -> bool:
    """Return whether the user of the client approves the call.

    The answer carries the id of the ticket, which cannot be known before the question, and which is valid for
    one run.

    Raises `InputNeeded` if the answer comes with the next round.
    """
    name = f"{_CONSENT_NAME}_{ticket}"
    try:
        answers = await client.ask({name: form.request()}, lambda _, answer: form.read(answer) is not None)
    except InputNeeded as needed:
        needed.approval = ticket
        raise
    said = form.read(answers[name])
    return said is not None and said.is_accepted and said.content.get("approve") is True


def _ask(state: CallState, tool: Tool, decision: Decision, caller: Caller) -> Ask:
    redactor, session = state.redactor, state.session
    if redactor is not None and session is not None:
        session = redactor.redact_text(session)
    return Ask(
        tool=tool.spec.name,
        arguments=state.call.arguments,
        shown=state.shown(),
        tool_digest=tool.digest,
        policy_digest=state.rules.policy.digest,
        caller=caller.name,
        session=session,
        rule=decision.rule,
        place=decision.place,
    )


def require_unchanged(state: CallState, tool: Tool, ticket: str, rules: Rules, caller: Caller) -> None:
    """Check that the policy of a call and its `caller` have not changed while it waited for approval.

    Raises `Refused` if they have.
    """
    is_same = rules.policy.digest == state.rules.policy.digest
    if not is_same or not matches(caller.tools, tool.spec.name):
        raise Refused(Reason.APPROVAL_REFUSED, details={"approval_id": ticket, "why": "policy"})


def require_runnable(tool: Tool, call: Call) -> None:
    """Raise `Refused` if the tool could not run with these arguments, although its schema allows them.

    Checked before approval is requested; a call without approval finds out when it runs.
    """
    refusal = None if tool.spec.refuse is None else tool.spec.refuse(call.arguments)
    if refusal is not None:
        raise refusal
