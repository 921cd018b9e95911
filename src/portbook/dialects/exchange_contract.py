"""The contract between a dialect and the pipeline: what to run, and how its outcome is written. Pure: no I/O.

A dialect reads a message into an `Exchange`. Its `call` is data alone; the methods of the exchange say how
the dialect puts an outcome into its own form, and how a running tool reaches the client. The defaults are
those of a contract without a form of its own, without questions and without reports.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from portbook.errors import Ending
from portbook.model import (
    JSON,
    Answer,
    Arrival,
    Call,
    Caller,
    Client,
    Completed,
    Draft,
    DraftReport,
    InputNeeded,
    JSONObject,
    Outcome,
    Resumption,
    Sealed,
)
from portbook.text.named_tuple import new_tuple
from portbook.tools.catalog import Tool
from portbook.wire.jsonrpc import NO_ID, Id

__all__ = [
    "BoundaryQuestion",
    "Dialect",
    "Exchange",
    "HeardExchange",
    "Listener",
    "MessageExchange",
    "OperatorAction",
    "answer_of",
]


class Exchange:
    """One message: the call that it is, and how its outcome is written."""

    __slots__ = ("act", "call", "handler", "is_heeded", "report")

    def __init__(self, call: Call) -> None:
        self.call = call
        self.handler: Callable[[Caller], JSON] | None = None
        """Set where the request is about the boundary itself: it answers, and no tool is resolved."""
        self.act: Callable[[], Awaitable[JSON]] | None = None
        """Set where an operator decides an approval: it applies the decision, and needs the operator key."""
        self.is_heeded = False
        """Whether the contract does something when the tool is about to run (`began`)."""
        self.report: DraftReport | None = None
        """Reports progress to the caller, where it asked for it."""

    @property
    def resumption(self) -> Resumption | None:
        """Return what the message continues, where it is a later round of its call."""
        return None

    @property
    def content(self) -> JSON | bytes:
        """Return what identifies equal calls."""
        return self.call.content

    @property
    def missing_servers(self) -> Sequence[str]:
        """Return the MCP servers that the list in the answer has nothing of, for its record."""
        return ()

    def client(self) -> Client | None:
        """Return the client, where a tool can reach it; made when it is first asked for."""
        return None

    def began(self, tool: Tool) -> None:
        """Do what the contract does when all checks have passed and the tool is about to run.

        Raises `Refused` where the call may not run after all.
        """

    def send_reports(self) -> None:
        """Send the reports that wait: how the call ended says, too, whether one of them was redacted."""

    def seal(
        self,
        tool: Tool | None,
        result: Any,
        body: bytes,
        envelope: JSONObject | None,
        is_redacted: bool,
        links: list[JSON] | None = None,
        text: str | None = None,
    ) -> Sealed | None:
        """Return a validated result in the contract's form; None where that is the result itself.

        `body` is its JSON, and `text` what that says, where it was decoded. Raises `Failed` where the result
        does not fit.
        """
        return None

    def pause(self, needed: InputNeeded) -> bytes | None:
        """Return a tool's questions in the contract's form; None where the caller cannot be asked.

        Raises `Failed` where they do not fit.
        """
        return None

    def body(self, outcome: Outcome) -> bytes | None:
        """Return the message that answers this one; None where none does."""
        return None

    def pieces(self, outcome: Outcome) -> tuple[bytes, ...]:
        """Return that message in pieces, which a door need not join; without any where there is none."""
        body = self.body(outcome)
        return () if body is None else (body,)

    def write(self, completed: Completed) -> Answer:
        """Return the answer to the message, for a door that sends more than the body."""
        return answer_of(completed, self.body(completed.outcome), 202, is_notification=True)


class BoundaryQuestion(Exchange):
    """A request about the boundary itself."""

    __slots__ = ()

    def __init__(self, call: Call, handler: Callable[[Caller], JSON]) -> None:
        super().__init__(call)
        self.handler = handler


class OperatorAction(Exchange):
    """An operator's decision on an approval."""

    __slots__ = ()

    def __init__(self, call: Call, act: Callable[[], Awaitable[JSON]]) -> None:
        super().__init__(call)
        self.act = act


class Listener(Client, Protocol):
    """A client that hears of progress, too, without having asked for it."""

    def progress(self, progress: float, total: float | None, message: Draft[str] | None) -> None:
        """Show progress. Thread-safe."""
        ...


class HeardExchange(Exchange):
    """A call that did not come as a message, and whose reports somebody hears."""

    __slots__ = ("_listener",)

    def __init__(self, call: Call, listener: Listener) -> None:
        super().__init__(call)
        self._listener = listener
        self.report = listener.progress

    def client(self) -> Client:
        """Return who hears."""
        return self._listener

    def send_reports(self) -> None:
        """Say that no more reports come."""
        self._listener.flush()


class MessageExchange(Exchange):
    """A message that is answered alone, without a connection."""

    __slots__ = ("_dialect", "_identifier")

    def __init__(self, call: Call, dialect: Dialect, identifier: Id) -> None:
        super().__init__(call)
        self._dialect = dialect
        self._identifier = identifier

    def body(self, outcome: Outcome) -> bytes | None:
        """Return the message that answers this one; None where it expects none."""
        if self._identifier is NO_ID:
            return None
        return self._dialect.write(outcome, self._identifier, self.call.method)[0]

    def write(self, completed: Completed) -> Answer:
        """Return the answer to the message."""
        body, status = self._dialect.write(completed.outcome, self._identifier, self.call.method)
        return answer_of(completed, body, status, is_notification=self._identifier is NO_ID)


def answer_of(
    completed: Completed, body: bytes | None, status: int, *, is_notification: bool = False
) -> Answer:
    """Return the answer with this body to a completed call."""
    seconds = (
        completed.outcome.details.get("retry_after_s") if isinstance(completed.outcome, Ending) else None
    )
    retry_after_s = seconds if isinstance(seconds, int) else None
    return new_tuple(
        Answer, (body, status, is_notification, completed.identity, retry_after_s, completed.is_redacted)
    )


class Dialect(Protocol):
    """A wire contract whose messages need no connection."""

    def read(self, message: JSONObject, identifier: Id, arrival: Arrival) -> MessageExchange:
        """Return `message` as an exchange; where it breaks the contract, its call has that flaw."""
        ...

    def write(self, outcome: Outcome, identifier: Id, method: str | None) -> tuple[bytes, int]:
        """Return the answer to a message of this method, and its HTTP status."""
        ...
