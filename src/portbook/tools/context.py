"""What a running tool can say of its call: `Context`, for functions that ask for one by type hint."""

from __future__ import annotations

from contextvars import ContextVar

from portbook.model import Report

__all__ = ["Context", "reporting"]

# Set around a call whose sender asked for progress; worker threads and tasks inherit it.
reporting: ContextVar[Report | None] = ContextVar("portbook_reporting", default=None)


class Context:
    """The call that a tool runs for. A parameter of this type gets it; callers do not see that parameter."""

    __slots__ = ("_report",)

    def __init__(self) -> None:
        self._report = reporting.get()

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Tell the caller how far the tool has come; does nothing where the caller did not ask.

        May be called from any thread.
        """
        if self._report is not None:
            self._report(progress, total, message)
