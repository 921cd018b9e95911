"""What the pipeline needs of the world, as protocols; their implementations live above it."""

from __future__ import annotations

from typing import Any, Protocol

from portbook.access.approval_ticket import Ask
from portbook.model import JSONObject, Run
from portbook.tools.catalog import Tool

__all__ = ["Approvals", "Executor", "Sink"]


class Executor(Protocol):
    """Runs a tool."""

    async def execute(self, tool: Tool, arguments: JSONObject, run: Run) -> Any:
        """Run `tool` within the time that `run` gives it and return what it returned.

        Raises `Refused` where it did not run, `Failed` where it did not end in time, and whatever it raised.
        """
        ...


class Approvals(Protocol):
    """Where people say yes or no to calls."""

    async def admit(self, ask: Ask, approval_id: str | None, wait_ms: int | None) -> str:
        """Return the ticket that this call has taken for itself; nobody else ever gets it.

        Raises `Refused` where a person has not said yes: not yet, not to this call, or no.
        """
        ...

    async def complete(self, approval_id: str) -> None:
        """Note that the call which took the ticket has ended well; from then on a kill does not lose that."""
        ...

    def finish(self, approval_id: str, *, is_done: bool) -> None:
        """Note that the call which took the ticket has ended. Never waits."""
        ...

    async def decide(self, approval_id: str, decision: str, *, by: str, reason: str | None = None) -> object:
        """Approve or deny a ticket.

        Raises `Undecidable` where that is too late.
        """
        ...

    async def restore(self, approval_id: str) -> None:
        """Note that the call which took the ticket will run anew; when this returns, it is good again."""
        ...

    def give_back(self, approval_id: str) -> None:
        """Note that the call which took the ticket never ran, so that it is good again. Never waits."""
        ...


class Sink(Protocol):
    """Where records go."""

    def look(self) -> None:
        """Do nothing where records can be kept, as far as can be told at no cost.

        Raises `OSError` where they cannot.
        """
        ...

    def mend(self) -> None:
        """Make ready to write again after a failure; does nothing where there was none.

        Raises `OSError` where records still cannot be kept.
        """
        ...

    def intend(self, intent: JSONObject) -> None:
        """Keep the note that a call with effects is about to run: from then on a kill does not lose it.

        Raises `OSError` where it cannot be kept.
        """
        ...

    def write(self, envelope: JSONObject, execution: JSONObject) -> None:
        """Keep both views of a record. When this returns, a killed process no longer loses them.

        Raises `OSError` where they cannot be kept.
        """
        ...
