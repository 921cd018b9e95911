"""Approval tickets: one call that needs approval, its state, and whether the approval covers a call.

A ticket is bound to everything the decision depends on (the tool and its definition, the arguments, the
policy, the caller), expires, and is valid for one execution. It holds a keyed digest of the arguments to
compare with, and a redacted copy for people to read.

Times are ISO 8601 in UTC with milliseconds, as `clock.Clock.now` returns them: they compare as text.

Pure: no I/O; the clock, the key and the ids are arguments. `stores.approvals` stores tickets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from portbook.canonical import canonical_bytes
from portbook.errors import Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.text.late_pattern import late_pattern
from portbook.text.named_tuple import NamedTuple
from portbook.text.sha256 import hmac_sha256, is_same_digest

__all__ = [
    "DECISIONS",
    "TRANSITIONS",
    "Ask",
    "State",
    "Ticket",
    "Undecidable",
    "as_json",
    "binding",
    "decided",
    "is_id",
    "refuse",
    "seen",
]


class State(StrEnum):
    """The state of a ticket."""

    PENDING = "pending"
    """Not decided yet."""
    APPROVED = "approved"
    DENIED = "denied"
    RUNNING = "running"
    """Redeemed: its call is running."""
    DONE = "done"
    FAILED = "failed"
    """Its call ran, or may have run, and failed."""
    UNKNOWN = "unknown"
    """Its call was running when its process died; how far it got is unknown."""
    EXPIRED = "expired"


# Which state can follow which. `expired` and `unknown` are never written: time and a dead process make them.
TRANSITIONS: Final[Mapping[State, frozenset[State]]] = {
    State.PENDING: frozenset({State.APPROVED, State.DENIED, State.EXPIRED}),
    State.APPROVED: frozenset({State.RUNNING, State.DENIED, State.EXPIRED}),
    # Back to approved: the call was redeemed, and then refused before it ran.
    State.RUNNING: frozenset({State.DONE, State.FAILED, State.UNKNOWN, State.APPROVED}),
    State.DENIED: frozenset(),
    State.DONE: frozenset(),
    State.FAILED: frozenset(),
    State.UNKNOWN: frozenset(),
    State.EXPIRED: frozenset(),
}

# The decisions of an operator, and the state that each leads to.
DECISIONS: Final[Mapping[str, State]] = {"approve": State.APPROVED, "deny": State.DENIED}

# Names the form of the binding, so that a digest of a different form never matches.
_BINDING_FORM: Final = "portbook.approval.1"

_ID: Final = late_pattern(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


class Ask(NamedTuple):
    """A call that needs approval, with everything the approval depends on."""

    tool: str
    arguments: JSONObject
    """The arguments of the call. They are digested, and never stored."""
    shown: JSON
    """The redacted arguments, for people to read."""
    tool_digest: str
    policy_digest: str
    caller: str
    session: str | None = None
    rule: str = ""
    """The rule that asks for approval."""
    place: str = ""
    """The file and line of that rule."""


class Ticket(NamedTuple):
    """One call that needs approval, and its state."""

    id: str
    state: State
    binding: str
    tool: str
    shown: JSON
    tool_digest: str
    policy_digest: str
    caller: str
    session: str | None
    rule: str
    place: str
    asked_at: str
    expires_at: str
    decided_at: str | None = None
    decided_by: str | None = None
    reason: str | None = None
    """The reason that the operator gave."""
    owner: str | None = None
    """The process that redeemed it."""
    started_at: str | None = None
    ended_at: str | None = None


class Undecidable(Exception):
    """A ticket that cannot be decided; `state` is its state, or None if there is no such ticket."""

    def __init__(self, state: State | None) -> None:
        super().__init__("there is no such approval" if state is None else _TOO_LATE[state])
        self.state = state


_TOO_LATE: Final[Mapping[State, str]] = {
    State.PENDING: "it is not decided yet",
    State.APPROVED: "it has already been approved",
    State.DENIED: "it was denied; the caller has to request a new approval",
    State.RUNNING: "its call is already running",
    State.DONE: "its call has already run",
    State.FAILED: "its call has already run, and failed",
    State.UNKNOWN: "its call was running when its process died; check what it did before repeating it",
    State.EXPIRED: "it has expired; the caller has to request a new approval",
}


def binding(key: bytes, ask: Ask) -> str:
    """Return the keyed digest of everything an approval of `ask` depends on.

    Keyed, so that a reader of the digest cannot find out arguments by trying likely ones.
    """
    bound = [_BINDING_FORM, ask.tool, ask.tool_digest, ask.policy_digest, ask.caller, ask.arguments]
    return hmac_sha256(key, canonical_bytes(bound)).hexdigest()


def is_id(text: str) -> bool:
    """Return whether `text` is a valid ticket id; an invalid one is neither looked up nor repeated."""
    return _ID.fullmatch(text) is not None


def refuse(ticket: Ticket | None, ask: Ask, bound: str, now: str, presented: str = "") -> Refused | None:
    """Return why `ticket` does not allow `ask` to run, or None if it does.

    `bound` is the binding of `ask`, `presented` the id that its caller gave.

    1. It does not exist, or belongs to a different caller, which must not be learned: `unknown`.
    2. It was denied: `denied`.
    3. It was redeemed before, with any outcome: `used`.
    4. It has expired: `expired`.
    5. It is for a different tool, or the definition of the tool has changed since: `tool`.
    6. The policy has changed since: `policy`.
    7. It is for different arguments: `arguments`.
    8. It is not decided yet: approval is still required.

    First what no call could fix, then what does not match, so that no caller waits for a decision that would
    not help.
    """
    if ticket is None or ticket.caller != ask.caller:
        return _refused("unknown", presented)
    state = seen(ticket, now).state
    why = _ENDED.get(state)
    if why is None and (ticket.tool, ticket.tool_digest) != (ask.tool, ask.tool_digest):
        why = "tool"
    if why is None and ticket.policy_digest != ask.policy_digest:
        why = "policy"
    if why is None and not is_same_digest(ticket.binding, bound):
        why = "arguments"
    if why is not None:
        return _refused(why, ticket.id)
    if state is State.PENDING:
        return Refused(
            Reason.APPROVAL_REQUIRED, details={"approval_id": ticket.id, "expires_at": ticket.expires_at}
        )
    return None


_ENDED: Final[Mapping[State, str]] = {
    State.DENIED: "denied",
    State.RUNNING: "used",
    State.DONE: "used",
    State.FAILED: "used",
    State.UNKNOWN: "used",
    State.EXPIRED: "expired",
}


def _refused(why: str, approval_id: str) -> Refused:
    named = {"approval_id": approval_id} if is_id(approval_id) else {}
    reason = Reason.APPROVAL_DENIED if why == "denied" else Reason.APPROVAL_REFUSED
    return Refused(reason, details={**named, "why": why})


def seen(ticket: Ticket, now: str, *, is_owner_alive: bool = True) -> Ticket:
    """Return `ticket` as it is at `now`: it may have expired, or the process of its call may have died."""
    if ticket.state in (State.PENDING, State.APPROVED) and now >= ticket.expires_at:
        return ticket._replace(state=State.EXPIRED)
    if ticket.state is State.RUNNING and not is_owner_alive:
        return ticket._replace(state=State.UNKNOWN)
    return ticket


def decided(ticket: Ticket | None, decision: str, *, now: str, by: str, reason: str | None = None) -> Ticket:
    """Return `ticket` with the operator's decision; an approved ticket that is not used can still be denied.

    Raises `Undecidable` if there is no ticket or it is too late, `KeyError` for an unknown decision.
    """
    state = DECISIONS[decision]
    if ticket is None:
        raise Undecidable(None)
    current = seen(ticket, now).state
    if current is State.RUNNING or state not in TRANSITIONS[current]:
        raise Undecidable(current)
    return ticket._replace(state=state, decided_at=now, decided_by=by, reason=reason)


def as_json(ticket: Ticket) -> JSONObject:
    """Return `ticket` as operators see it: everything but the digest of its arguments."""
    return {
        "approval_id": ticket.id,
        "state": ticket.state.value,
        "tool": ticket.tool,
        "arguments": ticket.shown,
        "caller": ticket.caller,
        "session_id": ticket.session,
        "rule": ticket.rule,
        "place": ticket.place,
        "asked_at": ticket.asked_at,
        "expires_at": ticket.expires_at,
        "decided_at": ticket.decided_at,
        "decided_by": ticket.decided_by,
        "reason": ticket.reason,
        "started_at": ticket.started_at,
        "ended_at": ticket.ended_at,
        "tool_digest": ticket.tool_digest,
        "policy_digest": ticket.policy_digest,
    }
