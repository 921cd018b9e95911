"""A session over HTTP with the official Python SDK's client; runs in an environment with that SDK alone.

Reads its orders as JSON from standard input: the `url` of the server, and the `modes` in which to connect.
Writes what it saw as JSON to standard output, by mode.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import anyio
import mcp_types as types
from mcp import Client

SECONDS = 40


async def answer(context: Any, params: Any) -> Any:
    """Fill in whatever form is shown."""
    return types.ElicitResult(action="accept", content={"name": "Alice"})


async def talk(url: str, mode: str) -> dict[str, Any]:
    steps: list[Any] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        steps.append([progress, total])

    seen: dict[str, Any] = {}
    async with Client(
        url, mode=mode, read_timeout_seconds=SECONDS, elicitation_callback=answer, cache=None
    ) as client:
        seen["version"] = client.protocol_version
        seen["tools"] = [tool.name for tool in (await client.list_tools()).tools]
        seen["call"] = _text(await client.call_tool("greet", {"name": "World"}))
        seen["resource"] = (await client.read_resource("test://template/7/data")).contents[0].text
        given = {"arg1": "a", "arg2": "b"}
        prompt = await client.get_prompt("test_prompt_with_arguments", given)
        seen["prompt"] = prompt.messages[0].content.text
        seen["elicitation"] = _text(await client.call_tool("test_input_required_result_elicitation", {}))
        await client.call_tool("test_tool_with_progress", {}, progress_callback=listen)
        seen["progress"] = steps
        with anyio.move_on_after(0.3):
            await client.call_tool("slow_compute", {"seconds": 60, "label": "given up"})
        seen["last"] = _text(await client.call_tool("greet", {"name": "again"}))
    return seen


def _text(result: Any) -> str:
    return result.content[0].text


async def talk_in_every_mode(orders: dict[str, Any]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for mode in orders["modes"]:
        try:
            with anyio.fail_after(3 * SECONDS):
                seen[mode] = await talk(orders["url"], mode)
        except Exception as error:
            seen[mode] = {"failed": list(_leaves(error))}
    return seen


def _leaves(error: BaseException) -> list[str]:
    """Take the real errors out of the groups that anyio wraps them in."""
    if isinstance(error, BaseExceptionGroup):
        return [line for inner in error.exceptions for line in _leaves(inner)]
    return [f"{type(error).__name__}: {error}"]


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the SDK marks what newer revisions dropped
    json.dump(anyio.run(talk_in_every_mode, json.load(sys.stdin)), sys.stdout)
