"""The values that travel along the path. Immutable, no behaviour beyond reading themselves. Pure: no I/O."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from portbook.errors import Failed, Refused

__all__ = [
    "JSON",
    "Answer",
    "Arrival",
    "Call",
    "Caller",
    "CallerContext",
    "Client",
    "Done",
    "EnvelopeRequest",
    "Identity",
    "InputNeeded",
    "JSONObject",
    "Kind",
    "Outcome",
    "Report",
    "Run",
    "is_trace_id",
    "trace_of",
]

JSON: TypeAlias = "dict[str, JSON] | list[JSON] | str | int | float | bool | None"
JSONObject: TypeAlias = "dict[str, JSON]"

# How far a tool has come: so much of a total, and a word about it.
Report: TypeAlias = Callable[[float, float | None, str | None], None]


# What can be called: all of it is governed alike.
Kind: TypeAlias = Literal["tool", "resource", "prompt", "completion"]


class InputNeeded(BaseException):
    """A tool cannot go on before its caller has answered; the call ends, and is made again with the answers.

    Not an `Exception`: what a tool catches for reasons of its own must not swallow it.
    """

    def __init__(self, requests: Mapping[str, JSONObject]) -> None:
        super().__init__("input is needed")
        self.requests = dict(requests)
        """What to ask, by the key under which the answer is expected."""
        self.approval: str | None = None
        """The ticket that the call ran under, or that the person is asked about: the next round needs it."""


class Client(Protocol):
    """The other end of a call, as far as a running tool can talk to it."""

    @property
    def capabilities(self) -> JSONObject:
        """Return what the client said that it can do."""
        ...

    @property
    def is_waiting(self) -> bool:
        """Return whether the tool waits for an answer: its deadline does not run out meanwhile."""
        ...

    def lacks(self, request: JSONObject) -> JSONObject | None:
        """Return what the client would have to declare to be asked with `request`; None if it can be asked.

        Empty where it could declare whatever it likes: there is no way to ask it.
        """
        ...

    def log(self, level: str, data: JSON, logger: str | None) -> None:
        """Tell the client something, if it wants to hear of that level. From any thread."""
        ...

    async def ask(
        self, requests: Mapping[str, JSONObject], is_usable: Callable[[str, JSONObject], bool]
    ) -> dict[str, JSONObject]:
        """Return the answers to `requests`, each under its own key; only what is usable counts as one.

        Raises `InputNeeded` where the client answers with its next request, `Failed` where it cannot answer.
        """
        ...

    def detach(self, message: str | None = None) -> bool:
        """Go on as a task, where the client knows those, and return whether it does.

        The client is told now, with a `message` for people, and fetches the result later.
        """
        ...

    def let_go(self) -> None:
        """Close the stream that the client waits on, where it can come back for the answer."""
        ...


_TRACE_DIGITS = 32
_HEX = frozenset("0123456789abcdef")


def is_trace_id(text: str) -> bool:
    """Return whether `text` is a trace as W3C has it: 32 hexadecimal digits in lower case, not all zero."""
    return len(text) == _TRACE_DIGITS and _HEX.issuperset(text) and text != "0" * _TRACE_DIGITS


class Identity(NamedTuple):
    """The names of one call: UUIDs, the trace and the span without dashes."""

    request: str
    trace: str
    span: str

    @property
    def traceparent(self) -> str:
        """Return the W3C header of this call, in which a span has half a UUID's length.

        A trace that its sender named in another form has a number made of that name.
        """
        trace = self.trace.replace("-", "").lower()
        if not is_trace_id(trace):
            trace = hashlib.sha256(self.trace.encode()).hexdigest()[:_TRACE_DIGITS]
        return f"00-{trace}-{self.span[:16]}-01"


class Arrival(NamedTuple):
    """How a message came in: all that a door tells about it."""

    transport: str
    route: str
    key: str | None = None
    """The credential as presented, unchecked."""
    traceparent: str | None = None
    session: str | None = None
    """The session that the transport names, where the call itself names none."""
    headers: Mapping[str, str] | None = None
    """What the transport says of the message, for a contract to compare; None where it has no headers."""


class CallerContext(NamedTuple):
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


class EnvelopeRequest(NamedTuple):
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
    context: CallerContext
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
    kind: Kind = "tool"
    """What `tool` is the name of."""
    client: Client | None = None
    """The other end, where a tool can talk to it."""
    pause: Callable[[InputNeeded], bytes] | None = None
    """Puts what a tool needs to know into the wire contract's form."""
    began: Callable[[], None] | None = None
    """Told when everything was checked and the call is about to run."""
    wish: EnvelopeRequest | None = None
    """What is asked of an envelope around the result; None where nothing can be asked."""


class Run(NamedTuple):
    """What an executor is told of the call that it runs, beside the tool and its arguments."""

    timeout_ms: int
    """What is left to it; a deadline is kept by the executor."""
    identity: Identity
    session: str | None = None
    correlation: str | None = None
    report: Report | None = None
    client: Client | None = None


class Done(NamedTuple):
    """It ran and its result passed every check."""

    body: bytes
    """The result as JSON, serialised once."""
    sealed: bytes | None = None
    """The result in the wire contract's form, where that is another."""
    envelope: bytes | None = None
    """The result in its envelope, where one was asked for."""
    is_asking: bool = False
    """Whether it is not over: its caller has to answer first, and makes the call again."""

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
