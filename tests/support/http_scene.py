"""An HTTP tool, its executor, and an API that says what it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from portbook.apis.gateway import Gateway
from portbook.errors import Failed
from portbook.executors.http import HttpExecutor
from portbook.model import JSON, Identity, JSONObject, Run
from portbook.net.destinations import Destinations
from portbook.tools.catalog import Catalog, Tool
from portbook.tools.http_operation import HttpOperation
from portbook.tools.spec import Effect, ToolSpec
from support.scripted_api import Answer, Upstream

IDENTITY = Identity("11111111-2222-4333-a444-555555555555", "a" * 32, "b" * 32)
LONG_MS = 30_000  # never waited for: where a test would, it has failed


def make_tool(
    base_url: str,
    method: str = "GET",
    path: str = "/orders/{id}",
    effect: Effect = Effect.READ,
    **options: Any,
) -> Tool:
    options = {"is_idempotent": method == "GET", **options}
    operation = HttpOperation("orders", base_url, method, path, **options)
    tool = Catalog([ToolSpec("orders.tool", "", {}, True, effect, operation=operation)]).find("orders.tool")
    assert tool is not None
    return tool


def make_run(timeout_ms: int = LONG_MS, **options: Any) -> Run:
    return Run(timeout_ms, IDENTITY, **options)


class Scene:
    """An API, an executor that may call it, and a tool of it."""

    def __init__(self, upstream: Upstream, executor: HttpExecutor, tool: Tool) -> None:
        self.upstream = upstream
        self.executor = executor
        self.tool = tool

    async def call(self, arguments: JSONObject | None = None, **options: Any) -> JSON:
        return await self.executor.execute(self.tool, arguments or {"id": "A-1"}, make_run(**options))


def play(
    main: Callable[[Scene], Coroutine[Any, Any, None]],
    *answers: Answer,
    gateway: dict[str, Any] | None = None,
    environ: dict[str, str] | None = None,
    destinations: Destinations | None = None,
    max_attempts: int | None = 3,
    **options: Any,
) -> Upstream:
    async def scene() -> Upstream:
        async with Upstream(*answers) as upstream:
            executor = HttpExecutor(
                [Gateway("orders", upstream.url, **(gateway or {}))],
                destinations=destinations or Destinations.of_base_urls([upstream.url]),
                max_attempts=max_attempts,
                environ=environ or {},
            )
            try:
                await main(Scene(upstream, executor, make_tool(upstream.url, **options)))
            finally:
                await executor.close()
            return upstream

    return asyncio.run(scene())


def result(*answers: Answer, arguments: JSONObject | None = None, **options: Any) -> tuple[JSON, Upstream]:
    found: list[JSON] = []

    async def main(scene: Scene) -> None:
        found.append(await scene.call(arguments))

    upstream = play(main, *answers, **options)
    return found[0], upstream


def failure(*answers: Answer, timeout_ms: int = LONG_MS, **options: Any) -> tuple[Failed, Upstream]:
    found: list[Failed] = []

    async def main(scene: Scene) -> None:
        with pytest.raises(Failed) as caught:
            await scene.call(timeout_ms=timeout_ms)
        found.append(caught.value)

    upstream = play(main, *answers, **options)
    return found[0], upstream
