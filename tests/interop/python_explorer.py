"""Lists and uses all that a server offers, with the official Python SDK's client alone.

Reads its orders as JSON from standard input, a list of visits: the `name` of each, where the server is (its
`url`, or a `command` and its `cwd` and `env`), the `mode` in which to connect, and what to `call`, `read`,
`get` and `complete`; or `call_each`, the arguments of tools, to call all that are listed. Writes what it saw
as JSON to standard output, by name.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Awaitable
from typing import Any

import anyio
import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters

SECONDS = 100  # a busy machine starts three servers for the first answer
ROOTS = [types.Root(uri="file:///work/first", name="first")]


class Explorer:
    """One session."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.logged: list[Any] = []
        self.content: dict[str, Any] = {}
        self.at = "before the calls"

    async def elicit(self, context: Any, params: Any) -> Any:
        self.asked.append("elicitation/create")
        is_form = getattr(params, "mode", None) != "url"
        return types.ElicitResult(action="accept", content=self.content if is_form else None)

    async def sample(self, context: Any, params: Any) -> Any:
        self.asked.append("sampling/createMessage")
        said = types.TextContent(type="text", text="Paris")
        return types.CreateMessageResult(
            role="assistant", content=said, model="a-model", stop_reason="endTurn"
        )

    async def list_roots(self, context: Any) -> Any:
        self.asked.append("roots/list")
        return types.ListRootsResult(roots=ROOTS)

    async def log(self, params: Any) -> None:
        self.logged.append([params.level, params.data])

    async def call(self, client: Client, order: dict[str, Any]) -> dict[str, Any]:
        """Call a tool, and return its result with what happened on the way."""
        steps: list[Any] = []

        async def listen(progress: float, total: float | None, message: str | None) -> None:
            steps.append([progress, total])

        self.at = order["name"]
        self.asked.clear()
        self.content = order.get("content", {})
        call = client.call_tool(order["tool"], order.get("arguments", {}), progress_callback=listen)
        return {**await outcome(call), "asked": list(self.asked), "progress": steps}

    async def explore(self, server: Any, mode: str, orders: dict[str, Any]) -> dict[str, Any]:
        async with Client(
            server,
            mode=mode,
            read_timeout_seconds=SECONDS,
            elicitation_callback=self.elicit,
            sampling_callback=self.sample,
            list_roots_callback=self.list_roots,
            logging_callback=self.log,
            log_level="debug",
            cache=None,
        ) as client:
            can = client.server_capabilities
            seen: dict[str, Any] = {
                "version": client.protocol_version,
                "capabilities": _plain(can),
                "instructions": client.instructions,
                "tools": _plain(await client.list_tools())["tools"],
            }
            calls = list(orders["call"])
            if (given := orders.get("call_each")) is not None:
                names = [tool["name"] for tool in seen["tools"]]
                calls += [{"name": name, "tool": name, "arguments": given.get(name, {})} for name in names]
            seen["calls"] = {each["name"]: await self.call(client, each) for each in calls}
            self.at = "after the calls"
            if can.resources is not None:
                seen["resources"] = _plain(await client.list_resources())["resources"]
                seen["templates"] = _plain(await client.list_resource_templates())["resourceTemplates"]
                seen["reads"] = {uri: await outcome(client.read_resource(uri)) for uri in orders["read"]}
            if can.prompts is not None:
                seen["prompts"] = _plain(await client.list_prompts())["prompts"]
                seen["gets"] = {
                    each["name"]: await outcome(client.get_prompt(each["name"], each.get("arguments")))
                    for each in orders["get"]
                }
            seen["completions"] = {
                each["name"]: await self.complete(client, each) for each in orders["complete"]
            }
            seen["logged"] = self.logged
        return seen

    async def complete(self, client: Client, order: dict[str, Any]) -> dict[str, Any]:
        reference = order["ref"]
        kind = types.PromptReference if reference["type"] == "ref/prompt" else types.ResourceTemplateReference
        given: dict[str, str] | None = order.get("context")
        return await outcome(
            client.complete(kind.model_validate(reference), order["argument"], context_arguments=given)
        )


async def outcome(request: Awaitable[Any]) -> dict[str, Any]:
    """Await a request, and return its result or its error as the wire had it."""
    try:
        return {"result": _plain(await request)}
    except MCPError as error:
        return {"error": {"code": error.error.code, "message": error.error.message}}


def _plain(value: Any) -> Any:
    return value and value.model_dump(mode="json", by_alias=True, exclude_none=True)


async def visit(order: dict[str, Any]) -> dict[str, Any]:
    server: Any = order.get("url")
    if server is None:
        command, *arguments = order["command"]
        server = StdioServerParameters(
            command=command, args=arguments, cwd=order["cwd"], env=order.get("env")
        )
    explorer = Explorer()
    try:
        with anyio.fail_after(2 * SECONDS):
            return await explorer.explore(server, order["mode"], order)
    except Exception as error:
        return {"failed": [f"{order['name']}, {explorer.at}: {leaf}" for leaf in _leaves(error)]}


async def visit_all(orders: list[dict[str, Any]]) -> dict[str, Any]:
    return {order["name"]: await visit(order) for order in orders}


def _leaves(error: BaseException) -> list[str]:
    """Take the real errors out of the groups that anyio wraps them in."""
    if isinstance(error, BaseExceptionGroup):
        return [line for inner in error.exceptions for line in _leaves(inner)]
    return [f"{type(error).__name__}: {error}"]


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the SDK marks what newer revisions dropped
    json.dump(anyio.run(visit_all, json.load(sys.stdin)), sys.stdout)
