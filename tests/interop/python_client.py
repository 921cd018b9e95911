"""A session with the official Python SDK's client; runs in an environment with that SDK alone.

Reads its orders as JSON from standard input: `command` and `cwd` of the server, the `revisions` to speak
one after the other, the `calls` to make by name, and a file (`flag`) for the calls that wait. Writes what
it saw as JSON to standard output, by revision.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import mcp_types as types
from mcp import Client, ClientSession, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

SECONDS = 30  # for one answer, on a busy machine
TOGETHER = 20  # calls in flight at once


@asynccontextmanager
async def connect(
    server: StdioServerParameters, revision: str, heard: list[str]
) -> AsyncIterator[ClientSession]:
    """Open a session at one revision, the way that revision opens one."""

    async def listen(message: Any) -> None:
        if not isinstance(message, types.ProgressNotification):  # those were asked for
            heard.append(f"{type(message).__name__}: {message}")

    if revision not in HANDSHAKE_PROTOCOL_VERSIONS:
        # `auto` asks `server/discover` and falls back to a handshake; the version seen tells which it was.
        async with Client(
            server, mode="auto", read_timeout_seconds=SECONDS, message_handler=listen, cache=None
        ) as client:
            yield client.session
        return
    async with (
        stdio_client(server) as (read, write),
        ClientSession(read, write, read_timeout_seconds=SECONDS, message_handler=listen) as session,
    ):
        # `session.initialize()` offers the newest handshake revision only.
        info = types.Implementation(name="portbook-interop", version="0")
        params = types.InitializeRequestParams(
            protocol_version=revision, capabilities=types.ClientCapabilities(), client_info=info
        )
        result = await session.send_request(types.InitializeRequest(params=params), types.InitializeResult)
        session.adopt(result)
        await session.send_notification(types.InitializedNotification())
        yield session


async def outcome(request: Any) -> dict[str, Any]:
    """Await a request, and return its result or its error as the wire had it."""
    try:
        result = await request
    except MCPError as error:
        return {"error": {"code": error.error.code, "message": error.error.message}}
    return {"result": _plain(result)}


async def give_up(session: ClientSession, flag: anyio.Path) -> dict[str, Any]:
    """Cancel a call while its tool runs; the session must go on, and the late result must not arrive."""
    async with anyio.create_task_group() as group:
        group.start_soon(session.call_tool, "wait_for", {"path": str(flag)})
        with anyio.fail_after(SECONDS):
            while not await flag.exists():
                await anyio.sleep(0.005)
        group.cancel_scope.cancel()
    meanwhile = await outcome(session.call_tool("echo", {"text": "meanwhile"}))
    await flag.unlink()
    return meanwhile


async def follow(session: ClientSession, flag: anyio.Path) -> dict[str, Any]:
    """Make a call that reports progress and ends only after the last report was heard."""
    steps: list[Any] = []

    async def listen(progress: float, total: float | None, message: str | None) -> None:
        steps.append([progress, total, message])
        if progress == total:
            await flag.unlink()

    ended = await outcome(session.call_tool("three_steps", {"path": str(flag)}, progress_callback=listen))
    return {**ended, "steps": steps}


async def together(session: ClientSession) -> list[Any]:
    """Make many calls at once, and return their results in the order of asking."""
    results: list[Any] = [None] * TOGETHER

    async def one(number: int) -> None:
        tool = "echo_in_thread" if number % 2 else "echo_later"
        results[number] = await outcome(session.call_tool(tool, {"text": f"call {number}"}))

    async with anyio.create_task_group() as group:
        for number in range(TOGETHER):
            group.start_soon(one, number)
    return results


async def talk(orders: dict[str, Any], revision: str) -> dict[str, Any]:
    command, *arguments = orders["command"]
    server = StdioServerParameters(command=command, args=arguments, cwd=orders["cwd"])
    seen: dict[str, Any] = {"heard": []}
    async with connect(server, revision, seen["heard"]) as session:
        seen["version"] = session.protocol_version
        seen["server"] = _plain(session.server_info)
        seen["capabilities"] = _plain(session.server_capabilities)
        seen["tools"] = _plain(await session.list_tools())["tools"]
        seen["calls"] = {
            name: await outcome(session.call_tool(*call)) for name, call in orders["calls"].items()
        }
        if revision in HANDSHAKE_PROTOCOL_VERSIONS:  # later ones have no ping
            seen["ping"] = await outcome(session.send_ping())
        if orders.get("flag"):
            flag = anyio.Path(orders["flag"])
            seen["progress"] = await follow(session, flag)
            seen["together"] = await together(session)
            seen["meanwhile"] = await give_up(session, flag)
        seen["last"] = await outcome(session.call_tool("echo", {"text": "last"}))
    return seen


async def talk_at_every_revision(orders: dict[str, Any]) -> dict[str, Any]:
    seen: dict[str, Any] = {}
    for revision in orders["revisions"]:
        try:
            with anyio.fail_after(3 * SECONDS):
                seen[revision] = await talk(orders, revision)
        except Exception as error:
            seen[revision] = {"failed": list(_leaves(error))}
    return seen


def _plain(value: Any) -> Any:
    return value and value.model_dump(mode="json", by_alias=True, exclude_none=True)


def _leaves(error: BaseException) -> list[str]:
    """Take the real errors out of the groups that anyio wraps them in."""
    if isinstance(error, BaseExceptionGroup):
        return [line for inner in error.exceptions for line in _leaves(inner)]
    return [f"{type(error).__name__}: {error}"]


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # the SDK marks what newer revisions dropped
    run: Callable[..., Any] = anyio.run
    json.dump(run(talk_at_every_revision, json.load(sys.stdin)), sys.stdout)
