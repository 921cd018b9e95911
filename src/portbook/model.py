"""The values that travel along the path. Immutable, no behaviour beyond reading themselves. Pure: no I/O."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeAlias

from portbook.clock import Identity
from portbook.errors import Failed, Refused

__all__ = [
    "JSON",
    "Answer",
    "Arrival",
    "Call",
    "Caller",
    "Context",
    "Done",
    "JSONObject",
    "Outcome",
    "Report",
    "Run",
    "Wish",
    "trace_of",
]

JSON: TypeAlias = "dict[str, JSON] | list[JSON] | str | int | float | bool | None"
JSONObject: TypeAlias = "dict[str, JSON]"

# How far a tool has come: so much of a total, and a word about it.
Report: TypeAlias = Callable[[float, float | None, str | None], None]


class Arrival(NamedTuple):
    """How a message came in: all that a door tells about it."""

    transport: str
    route: str
    key: str | None = None
    """The credential as presented, unchecked."""
    traceparent: str | None = None
    session: str | None = None
    """The session that the transport names, where the call itself names none."""


class Context(NamedTuple):
    """Who says to be calling, and where in its work: the caller's own words, for the record."""

    agent_id: str | None = None
    task_id: str | None = None
    step_id: int | str = 1
    attempt: int = 1
    prompt_id: str | None = None
    session: str | None = None
    correlation: str | None = None


class Caller(NamedTuple):
    """Whose key it was, as far as we know, and what that key is for."""

    name: str
    tools: tuple[str, ...] = ("*",)
    """Patterns of the tools that it may see; of all others it learns nothing."""


class Wish(NamedTuple):
    """What a caller asks of an envelope around its result, in its own words."""

    meta: JSON = None
    """The `_meta` beside its call."""
    preferences: JSONObject = {}  # noqa: RUF012 - nobody writes to it
    artifacts: tuple[JSON, ...] = ()
    """References to what else went into the call."""
    request_id: str | None = None
    is_required: bool = False
    """Whether the contract's answer is an envelope, whatever is asked for."""


class Call(NamedTuple):
    """One thing asked of the boundary, in no wire contract's words."""

    arrival: Arrival
    method: str | None
    tool: str | None
    """The tool's slug; the wire contracts' prefix is gone."""
    arguments: JSONObject
    input_bytes: int
    """The length of the arguments in canonical form, so that it is the same through every door."""
    context: Context
    trace: str | None
    """The W3C trace this call belongs to, if its sender named one."""
    content: JSON | bytes
    """What makes this call the same as another: its message without the id, or bytes that are no message."""
    flaw: Refused | None = None
    """Set where the message could not be read: such a call is recorded and refused."""
    contract: str = "1.0.0"
    """The version of the contract that the message was checked against."""
    handler: Callable[[Caller], JSON] | None = None
    """Set where the question is about the boundary itself: nothing is resolved, this answers."""
    act: Callable[[], Awaitable[JSON]] | None = None
    """Set where an operator decides on something: it needs the operator's key, and this does it."""
    operator_says: str | None = None
    """What the operator decides, for the record."""
    seal: Callable[[Any, bytes, JSONObject | None], bytes] | None = None
    """Puts a checked result (its bytes, its envelope) into the wire contract's form, or finds that it does
    not fit."""
    report: Report | None = None
    """Tells the caller of progress, where it asked for that."""
    approval: str | None = None
    """The ticket that this call redeems, where a person had to approve it."""
    wait_ms: int = 0
    """How long to wait for a person's decision before answering that one is needed."""
    wish: Wish | None = None
    """What is asked of an envelope around the result; None where nothing can be asked."""


class Run(NamedTuple):
    """What an executor is told of the call that it runs, beside the tool and its arguments."""

    timeout_ms: int
    """What is left to it; a deadline is kept by the executor."""
    identity: Identity
    session: str | None = None
    correlation: str | None = None
    report: Report | None = None


class Done(NamedTuple):
    """It ran and its result passed every check."""

    body: bytes
    """The result as JSON, serialised once."""
    sealed: bytes | None = None
    """The result in the wire contract's form, where that is another."""
    envelope: bytes | None = None
    """The result in its envelope, where one was asked for."""

    @property
    def wire(self) -> bytes:
        """Return the result as it goes out."""
        if self.sealed is not None:
            return self.sealed
        return self.body if self.envelope is None else self.envelope


Outcome: TypeAlias = "Done | Refused | Failed"


class Answer(NamedTuple):
    """What goes back through the door."""

    body: bytes | None
    status: int
    """The HTTP status, for doors that have one."""
    is_notification: bool = False
    """Nobody waits for it: doors without a status stay silent."""
    identity: Identity | None = None
    """The call's names in the record."""
    retry_after_s: int | None = None
    """When to try again, where that is known."""


_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}(-.*)?", re.ASCII)


def trace_of(traceparent: object) -> str | None:
    """Return the trace id of a W3C `traceparent`, or None where it is not a valid one."""
    if not isinstance(traceparent, str):
        return None
    match = _TRACEPARENT.fullmatch(traceparent)
    if match is None:
        return None
    version, trace, parent, rest = match.groups()
    # W3C Trace Context 3.2.2: version ff is forbidden, version 00 ends here, all-zero ids are invalid.
    if version == "ff" or (version == "00" and rest) or not trace.strip("0") or not parent.strip("0"):
        return None
    return trace
