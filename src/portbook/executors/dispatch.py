"""`Dispatch`: passes each tool to its executor: for Python functions, for HTTP APIs, or for MCP servers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from portbook.executors.python import PythonExecutor
from portbook.model import Start
from portbook.tools.catalog import Tool

if TYPE_CHECKING:
    from portbook.executors.http import HttpExecutor
    from portbook.executors.mcp_server_call import McpServerExecutor

__all__ = ["Dispatch"]


class Dispatch:
    """Runs any tool."""

    def __init__(
        self,
        python: PythonExecutor,
        http: HttpExecutor | None = None,
        servers: McpServerExecutor | None = None,
    ) -> None:
        """Use these executors; `http` is None where no API is declared, `servers` where no MCP server is."""
        self.python = python
        self.http = http
        self.servers = servers

    @property
    def has_strays(self) -> bool:
        """Return whether an abandoned call still runs, because it ignores cancellation."""
        return self.python.has_strays

    def secrets(self) -> list[str]:
        """Return every secret value that an API or a server is called with."""
        http = [] if self.http is None else self.http.secrets()
        return http if self.servers is None else [*http, *self.servers.secrets()]

    def prepare(self, tool: Tool) -> Start:
        """Return what runs `tool` within a deadline, and returns its result or a coroutine that waits for it.

        It raises `Refused` where the tool did not run, `Failed` where it did not end in time, any exception
        of the tool, and `NothingSent` where it was cancelled before a request was sent.
        """
        if tool.spec.operation is not None:
            assert self.http is not None
            return partial(self.http.execute, tool)
        if tool.spec.upstream is not None:
            assert self.servers is not None
            return partial(self.servers.execute, tool)
        return self.python.prepare(tool)

    async def close(self) -> None:
        """Close connections that are kept between calls, and end the worker threads."""
        self.python.close()
        if self.servers is not None:
            await self.servers.close()
        if self.http is not None:
            await self.http.close()
