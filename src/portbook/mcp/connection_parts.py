"""What all connections of a boundary share."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from portbook.dialects.dialect_choice import DialectName
from portbook.mcp.dialect import McpDialect
from portbook.mcp.list_and_resource_changes import ChangeFeed
from portbook.mcp.task_board import TaskBoard
from portbook.model import Answer, Arrival, Call, JSONObject
from portbook.pipeline import Pipeline
from portbook.stages.state import CallState
from portbook.text.named_tuple import NamedTuple
from portbook.wire.jsonrpc import Id

__all__ = ["Parts", "Servers"]


class Servers(Protocol):
    """The MCP servers behind the boundary: what they offer has to be known before a call can be read."""

    @property
    def is_settled(self) -> bool:
        """Return whether it is known."""
        ...

    async def settle(self) -> None:
        """Wait until it is."""
        ...

    def late_servers_of(self, call: Call) -> Callable[[], Coroutine[Any, Any, object]] | None:
        """Return a wait for those that start slowly and may serve what `call` names, None where none may."""
        ...

    def end_session(self, session: str) -> None:
        """End what only a session had, which has ended."""
        ...

    def watch(self, uri: str) -> Callable[[], None]:
        """Hear of changes of a resource while one of them offers it; return the function that stops it."""
        ...


class Parts(NamedTuple):
    """What all connections of a boundary share."""

    pipeline: Pipeline
    official: McpDialect
    asset_tools: frozenset[str]
    """The names of the tools that are called by their names alone."""
    answer_alone: Callable[
        [JSONObject, Id, Arrival, DialectName | None], CallState | Coroutine[Any, Any, Answer]
    ]
    """Answers a message that is not MCP."""
    tasks: TaskBoard
    changes: ChangeFeed
    servers: Servers | None = None
