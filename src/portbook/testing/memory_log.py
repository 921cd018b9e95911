"""Records in memory, and which of them belong to which call, even where calls run side by side."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from portbook.audit.memory_sink import MemorySink

__all__ = ["Noted", "RecordsByCall", "noting"]


@dataclass(slots=True)
class Noted:
    """What one call left behind while it ran."""

    records: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    executions: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    """What the server said before its answer."""
    faults: list[Exception] = field(default_factory=list[Exception])
    """What the tool raised."""
    mistakes: list[Exception] = field(default_factory=list[Exception])
    """What the test's own functions raised."""


# Set around a call; the threads and tasks that run for it inherit it.
noting: ContextVar[Noted | None] = ContextVar("portbook_testing_noting", default=None)


class RecordsByCall(MemorySink):
    """Keeps records in lists, and notes them for the call that they are about."""

    def write(self, envelope: bytes, execution: bytes) -> None:
        """Keep both views."""
        super().write(envelope, execution)
        noted = noting.get()
        if noted is not None:
            noted.records.append(self.records[-1])
            noted.executions.append(self.executions[-1])
