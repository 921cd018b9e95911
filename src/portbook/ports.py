"""What the pipeline needs of the world, as protocols; their implementations live above it."""

from __future__ import annotations

from typing import Any, Protocol

from portbook.model import JSONObject, Report
from portbook.tools.catalog import Tool

__all__ = ["Executor", "Sink"]


class Executor(Protocol):
    """Runs a tool."""

    async def execute(self, tool: Tool, arguments: JSONObject, report: Report | None) -> Any:
        """Run `tool` within its deadline and return what it returned; `report` is for its progress.

        Raises `Refused` where it did not run, `Failed` where it did not end in time, and whatever it raised.
        """
        ...


class Sink(Protocol):
    """Where records go."""

    def mend(self) -> None:
        """Make ready to write again after a failure; does nothing where there was none.

        Raises `OSError` where records still cannot be kept.
        """
        ...

    def write(self, record: JSONObject) -> None:
        """Keep `record`. When this returns, a killed process no longer loses it.

        Raises `OSError` where it cannot be kept.
        """
        ...
