"""Calls that go on as tasks, as a client makes and watches them."""

from __future__ import annotations

import asyncio
from typing import Any

from support.mcp_http_client import Client, capable

TASKS = "io.modelcontextprotocol/tasks"
KNOWS = capable(elicitation={}, extensions={TASKS: {}})


async def begun(client: Client, tool: str, **arguments: Any) -> Any:
    return await client.result("tools/call", {"name": tool, "arguments": arguments, **KNOWS})


async def seen(client: Client, task_id: str, *statuses: str) -> Any:
    """The task, once it has one of these statuses."""
    while True:
        state = await client.result("tasks/get", {"taskId": task_id, **KNOWS})
        if state["status"] in statuses:
            return state
        await asyncio.sleep(0.01)
