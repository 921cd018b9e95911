"""What the pipeline needs from outside, as protocols; their implementations live above it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from portbook.audit.record_views_and_fields import RecordLines
from portbook.model import Start
from portbook.tools.catalog import Tool

if TYPE_CHECKING:
    from portbook.access.approval_state_and_binding import Ask

__all__ = ["LARGE_BYTES", "Approvals", "AtOnce", "EndOfTurn", "Executor", "OffLoop", "Sink"]

# Redaction of this much text takes 15 ms in the worst case; a step on the event loop may take 50 ms.
LARGE_BYTES: Final = 32 * 1024

_T = TypeVar("_T")


class Executor(Protocol):
    """Runs tools."""

    def prepare(self, tool: Tool) -> Start:
        """Return how calls of `tool` are run; settled once, because it is the same for all of them."""
        ...


class Approvals(Protocol):
    """Stores approvals and their decisions."""

    async def admit(self, ask: Ask, approval_id: str | None, wait_ms: int | None) -> str:
        """Return the ticket that this call has redeemed; no second call can redeem it.

        Raises `Refused` if the call is not approved: not yet, not for this call, or denied.
        """
        ...

    def may_start(self, approval_id: str) -> bool:
        """Return whether the call of the ticket is still owned here; ask right before it starts."""
        ...

    async def complete(self, approval_id: str) -> None:
        """Store durably that the call of the ticket succeeded."""
        ...

    def finish(self, approval_id: str, *, is_done: bool) -> None:
        """Store that the call of the ticket has ended. Never waits."""
        ...

    async def decide(self, approval_id: str, decision: str, *, by: str, reason: str | None = None) -> object:
        """Approve or deny a ticket.

        Raises `Undecidable` if it is too late.
        """
        ...

    async def restore(self, approval_id: str) -> None:
        """Make the ticket valid again for a call that will run anew; returns when that is stored."""
        ...

    def give_back(self, approval_id: str) -> None:
        """Make the ticket valid again, because its call never ran. Never waits."""
        ...


class OffLoop(Protocol):
    """Does work on values of more than `LARGE_BYTES`, without holding the event loop."""

    async def run(self, work: Callable[[], _T]) -> _T:
        """Return what `work` returns. Raises what it raises."""
        ...


class AtOnce:
    """Does such work at once, where no other call waits."""

    async def run(self, work: Callable[[], _T]) -> _T:
        """Return what `work` returns. Raises what it raises."""
        return work()


class EndOfTurn(Protocol):
    """Does something once for all calls that end at about the same time."""

    async def end(self, finish: Callable[[], None]) -> None:
        """Return after `finish` was called, which the others who wait here call as well."""
        ...


class Sink(Protocol):
    """Writes records."""

    def look(self) -> None:
        """Check, at no cost, that records can be written.

        Raises `OSError` if they cannot.
        """
        ...

    def mend(self) -> None:
        """Recover after a failure; do nothing if there was none.

        Raises `OSError` if records still cannot be written.
        """
        ...

    def intend(self, intent: bytes) -> None:
        """Write durably, as JSON, that a call with effects is about to run.

        Raises `OSError` if it cannot be written.
        """
        ...

    def explain(self, basis: bytes) -> None:
        """Write, as JSON, what a basis that records name is made of.

        Raises `OSError` if it cannot be written.
        """
        ...

    def write_all(self, records: Sequence[RecordLines]) -> Mapping[int, OSError]:
        """Write both lines of each record; return why some could not be written, by their place.

        After this returns, a kill of the process does not lose the others.
        """
        ...
