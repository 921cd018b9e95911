"""A session of the official Python SDK's client over several servers; runs in an environment with that SDK.

Reads its orders as JSON from standard input: the `url`, and the `modes` in which to connect. Writes what it
saw as JSON to standard output, by mode.
"""

from __future__ import annotations

import json
import sys
import warnings
from typing import Any

import anyio
import mcp_types as types
from mcp import Client

SECONDS = 60


async def answer(context: Any, params: Any) -> Any:
    return types.ElicitResult(action="accept", content={"name": "Ada"})


async def complete(context: Any, params: Any) -> Any:
    content = types.TextContent(type="text", text="Paris")
    return types.CreateMessageResult(role="assistant", content=content, model="m")


async def talk(url: str, mode: str) -> dict[str, Any]:
    steps: list[float] = []
    updates: list[str] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async def hear(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            updates.append(message.params.uri)

    seen: dict[str, Any] = {}
    async with Client(
        url,
        mode=mode,
        read_timeout_seconds=SECONDS,
        elicitation_callback=answer,
        sampling_callback=complete,
        message_handler=hear,
        cache=None,
    ) as client:
        seen["version"] = client.protocol_version
        seen["tools"] = len((await client.list_tools()).tools)
        seen["answerers"] = sorted({_text(await client.call_tool("pid", {})) for _ in range(6)})
        seen["elicitation"] = [_text(await client.call_tool("ask", {})).split()[0] for _ in range(3)]
        seen["sampling"] = [_text(await client.call_tool("sample", {})) for _ in range(3)]
        await client.call_tool("count", {}, progress_callback=listen)
        seen["progress"] = steps
        if mode == "legacy":
            seen["resumed"] = [_text(await client.call_tool("go_away", {})) for _ in range(3)]
            await client.subscribe_resource("node://thing")
            for _ in range(3):  # the session's own stream is held by one of the servers
                heard = len(updates)
                await client.call_tool("touch", {})
                with anyio.fail_after(SECONDS):
                    while len(updates) == heard:
                        await anyio.sleep(0.02)
            seen["updates"] = updates
    return seen


def _text(result: Any) -> str:
    return result.content[0].text


async def talk_in_every_mode(orders: dict[str, Any]) -> dict[str, Any]:
    return {mode: await talk(orders["url"], mode) for mode in orders["modes"]}


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the SDK marks what newer revisions dropped
    json.dump(anyio.run(talk_in_every_mode, json.load(sys.stdin)), sys.stdout)
