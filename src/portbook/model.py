"""The values that stages pass on: calls, callers, outcomes, answers. Immutable, no logic. Pure: no I/O."""

from __future__ import annotations

import typing
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final, Generic, Literal, Protocol, TypeAlias, TypeVar

from portbook.errors import Failed, Refused
from portbook.text.named_tuple import NamedTuple, new_tuple
from portbook.text.slotted import slotted

__all__ = [
    "ENVELOPE_CONTROLS",
    "JSON",
    "NOBODY",
    "NO_CONTEXT",
    "NO_WISH",
    "Answer",
    "ApiAnswer",
    "Arrival",
    "Call",
    "Caller",
    "CallerContext",
    "Client",
    "Completed",
    "Done",
    "Draft",
    "DraftReport",
    "EnvelopeRequest",
    "IdBytes",
    "Identity",
    "InputNeeded",
    "JSONObject",
    "Kind",
    "Occasion",
    "Outcome",
    "Report",
    "Resumption",
    "Run",
    "Sealed",
    "Start",
]

JSON: TypeAlias = "dict[str, JSON] | list[JSON] | str | int | float | bool | None"
JSONObject: TypeAlias = "dict[str, JSON]"

_T = TypeVar("_T")


class Draft(typing.NamedTuple, Generic[_T]):
    """Something to report, not finished yet: only what is sent is redacted, checked and written."""

    size: int
    """How many bytes it has, about; what waits is limited by it."""
    finish: Callable[[], _T]


# Reports progress: the progress, the total, and a message; the client gets it as a draft. Thread-safe.
Report: TypeAlias = Callable[[float, float | None, str | None], None]
DraftReport: TypeAlias = Callable[[float, float | None, Draft[str] | None], None]


# What a client can call; every kind passes the same stages.
Kind: TypeAlias = Literal["tool", "resource", "prompt", "completion"]


class InputNeeded(BaseException):
    """Raised where a tool needs answers first: the call ends, and the client repeats it with the answers.

    Not an `Exception`, so that a tool's own `except Exception` does not swallow it.
    """

    def __init__(self, requests: Mapping[str, JSONObject]) -> None:
        super().__init__("input is needed")
        self.requests = dict(requests)
        """The requests to the client, by the key under which each answer is expected."""
        self.approval: str | None = None
        """The approval that the call ran under, or that the user is asked for; the next round needs it."""
        self.is_redacted = False
        """Whether a secret was redacted in the requests, or in earlier messages of the call."""
        self.memo: JSON = None
        """What the next round gets back, where the tool continues there and does not begin again."""


class Client(Protocol):
    """The client of a call, as a running tool can use it."""

    @property
    def capabilities(self) -> JSONObject:
        """Return the capabilities that the client declared."""
        ...

    @property
    def is_waiting(self) -> bool:
        """Return whether the tool waits for an answer; its deadline is suspended meanwhile."""
        ...

    def lacks(self, request: JSONObject) -> JSONObject | None:
        """Return the capabilities that the client lacks for `request`; None if it can be asked.

        Empty where the client cannot be asked at all, whatever it declares.
        """
        ...

    def hears(self, level: str) -> bool:
        """Return whether the client asked for log messages of that level."""
        ...

    def log(self, level: str, data: Draft[JSON], logger: str | None) -> None:
        """Send the client a log message of a level that it hears. Thread-safe; a thread may wait for room."""
        ...

    async def room(self) -> None:
        """Let other calls run, and wait for room for the next report, but not for long."""
        ...

    def flush(self) -> None:
        """Send every report that waits."""
        ...

    async def ask(
        self, requests: Mapping[str, JSONObject], is_usable: Callable[[str, JSONObject], bool]
    ) -> dict[str, JSONObject]:
        """Return the answers to `requests`, each under its own key; an unusable answer is not accepted.

        Raises `InputNeeded` where the client answers with its next request, `Failed` where it cannot answer.
        """
        ...

    @property
    def answers_later(self) -> bool:
        """Return whether the client answers with its next request, not while the tool waits."""
        ...

    async def end_round(self, requests: Mapping[str, JSONObject], memo: JSON) -> None:
        """End the round of a client that answers later; its next round gets `memo` with the answers.

        Always raises `InputNeeded`.
        """
        ...

    def detach(self, message: str | None = None) -> bool:
        """Continue as a task where the client supports tasks, and return whether it does.

        The client gets the task now, with a `message` for people, and fetches the result later.
        """
        ...

    def let_go(self) -> None:
        """Close the stream that the client waits on, where it can resume to fetch the answer."""
        ...

    def complete_elicitation(self, identifier: str) -> None:
        """Tell the client that its user is done with the page of this id, where its revision can say so."""
        ...


# The ids of one call, as records have them: its request, its trace and its span.
IdBytes: TypeAlias = tuple[bytes, bytes, bytes]


class Identity(NamedTuple):
    """The ids of one call: UUIDs, the trace and the span without dashes."""

    request: str
    trace: str
    span: str

    @classmethod
    def read(cls, written: IdBytes) -> Identity:
        """Return ids that were written as bytes."""
        request, trace, span = written
        return new_tuple(cls, (request.decode(), trace.decode(), span.decode()))

    @property
    def written(self) -> IdBytes:
        """Return the ids as bytes."""
        return self.request.encode(), self.trace.encode(), self.span.encode()


# Of a call whose function cannot ask for its ids.
NOBODY: Final = Identity("", "", "")


@slotted
class Arrival:
    """How a message arrived: everything that a door reports about it."""

    transport: str
    route: str
    key: str | None = None
    """The credential as sent, not verified."""
    traceparent: str | None = None
    session: str | None = None
    """The transport's session, used where the call itself names none."""
    headers: Mapping[str, str] | None = None
    """The transport's headers, to compare with the message; None where it has no headers."""


class CallerContext(NamedTuple):
    """The caller's own claims about itself and its task, for the record; not verified."""

    agent_id: str | None = None
    task_id: str | None = None
    step_id: int | str = 1
    attempt: int = 1
    prompt_id: str | None = None
    session: str | None = None
    correlation: str | None = None


# Of a caller that claims nothing: nearly every one.
NO_CONTEXT: Final = CallerContext()


@slotted
class Caller:
    """The authenticated caller: the name of its key, and the tools that the key may use."""

    name: str
    tools: tuple[str, ...] = ("*",)
    """Patterns of the tools that it may see; all other tools are hidden from it."""


class EnvelopeRequest(NamedTuple):
    """A caller's wishes for the envelope around its result, not validated."""

    meta: JSON = None
    """The `_meta` beside its call."""
    preferences: JSONObject = {}  # noqa: RUF012 - never written to
    artifacts: tuple[JSON, ...] = ()
    """References to further inputs of the call."""
    request_id: str | None = None
    is_required: bool = False
    """Whether the wire contract always answers with an envelope."""


# The members of `_meta` that ask for an envelope; `envelope/request_for_envelope.py` reads them.
ENVELOPE_CONTROLS: Final = frozenset(
    {"capture_provenance", "capture_artifacts", "provenance_mode", "parents"}
)

# Of a caller that asks for no envelope: nearly every one.
NO_WISH: Final = EnvelopeRequest({})


class Occasion(NamedTuple):
    """Values that differ between runs of the same request, for the provenance of its result."""

    request_id: str | None = None
    """The id that Portbook gave the call."""
    time: str | None = None
    """When it ran, in the form of RFC 3339."""
    duration_ms: float | None = None


@slotted
class Call:
    """One request to the boundary, independent of the wire contract: data alone."""

    arrival: Arrival
    method: str | None
    tool: str | None
    """The tool's name, without the prefix of the wire contracts."""
    arguments: JSONObject
    input_bytes: int
    """The length of the arguments in canonical form, so that it is the same at every door."""
    context: CallerContext
    trace: str | None
    """The W3C trace that this call belongs to, if its sender named one."""
    content: JSON | bytes
    """What identifies equal calls: the message without its id, or the raw bytes where they do not parse. None
    where the exchange of the call makes it when it is asked for."""
    flaw: Refused | None = None
    """Set where the message is not valid: such a call is recorded and refused."""
    contract: str = "1.0.0"
    """The version of the contract that the message was validated against."""
    operator_says: str | None = None
    """The operator's decision, for the record."""
    approval: str | None = None
    """The id of the approval that this call redeems."""
    wait_ms: int = 0
    """How long to wait for an operator's decision before answering that approval is required."""
    kind: Kind = "tool"
    """The kind of entry that `tool` names."""
    wish: EnvelopeRequest | None = None
    """The caller's wishes for an envelope around the result; None where the contract has no envelopes."""


class Resumption(NamedTuple):
    """What a later round of a call continues: what the earlier one kept, and the client's answers to it."""

    memo: JSON
    answers: Mapping[str, JSONObject]


class ApiAnswer(NamedTuple):
    """What an API said beside the body that is a result."""

    status: int
    links: tuple[JSONObject, ...] = ()
    """Its `Link` header: an object with `url`, `rel` and further attributes for each."""


class Run(NamedTuple):
    """What an executor gets about the call that it runs, beside the tool and its arguments."""

    timeout_ms: int
    """The time left; the executor enforces the deadline."""
    identity: Identity
    session: str | None = None
    correlation: str | None = None
    report: Report | None = None
    reach: Callable[[], Client | None] = lambda: None
    """Returns the client, where the tool can reach it."""
    heard: Callable[[ApiAnswer], None] = lambda _: None
    """Takes what an API said beside the result."""
    caller: str | None = None
    resumption: Resumption | None = None
    """Set where this round continues an earlier one."""
    is_approved: bool = False
    """Whether a person approved the call; the approval is for the tool as it was defined then."""


# Runs a tool with arguments within the time that a `Run` gives it, and returns what it returned. Where it has
# to wait, returns a coroutine that does the rest; no tool returns one. Raises `Refused` if it did not run,
# `Failed` if it did not end in time, and any exception of the tool.
Start: TypeAlias = "Callable[[JSONObject, Run], Any | Coroutine[Any, Any, Any]]"


# A result in the form of a wire contract: its bytes, or the pieces of them.
Sealed: TypeAlias = bytes | tuple[bytes, ...]


class Done(NamedTuple):
    """The tool ran and its result passed every check."""

    body: bytes
    """The result as JSON, serialized once."""
    sealed: Sealed | None = None
    """The result in the wire contract's form, where that differs."""
    envelope: bytes | None = None
    """The result in its envelope, where one was asked for and `sealed` does not have it."""
    is_asking: bool = False
    """Whether the call is not complete: the caller has to answer first, then repeat it."""

    @property
    def wire(self) -> bytes:
        """Return the bytes to send."""
        if self.sealed is not None:
            return b"".join(self.sealed) if isinstance(self.sealed, tuple) else self.sealed
        return self.body if self.envelope is None else self.envelope


Outcome: TypeAlias = "Done | Refused | Failed"


class Completed(NamedTuple):
    """A completed call: its outcome, its ids in the record, and whether it was redacted or approved."""

    outcome: Outcome
    identity: Identity
    duration_ms: float
    is_redacted: bool = False
    approval: str | None = None
    links: list[JSON] | None = None
    """What the caller gets of the links in an API's response."""


class Answer(NamedTuple):
    """The response that a door sends."""

    body: bytes | None
    status: int
    """The HTTP status, for doors that have one."""
    is_notification: bool = False
    """Whether the message was a notification: doors without a status send no response."""
    identity: Identity | None = None
    """The call's ids in the record."""
    retry_after_s: int | None = None
    """How long to wait before a retry, where that is known."""
    is_redacted: bool = False
    """Whether a secret was redacted in what the caller gets."""
