"""`AsyncTestClient`: tools tested through the whole boundary, for tests that are coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from portbook.testing.call_result import CallResult
from portbook.testing.client import Approval, BaseTestClient, Decided

__all__ = ["AsyncTestClient"]


class AsyncTestClient(BaseTestClient):
    """`TestClient` for tests that are coroutines: what it takes, has and does is the same.

    `async with` closes it. Whatever makes a request is awaited, and calls can run side by side. It needs an
    event loop of asyncio.
    """

    def _watch_over(self) -> None:
        """Have every request made in the test's own event loop; so nothing is left open."""
        self._world.require_loop = _require_asyncio

    async def call(
        self, tool: str, arguments: Mapping[str, Any] | None = None, /, **named: Any
    ) -> CallResult:
        """Call a `tool` with `arguments`, or with those `named`."""
        return await self._call(tool, {**(arguments or {}), **named})

    async def read(self, uri: str) -> CallResult:
        """Read the resource at `uri`."""
        return await self._read(uri)

    async def prompt(
        self, name: str, arguments: Mapping[str, Any] | None = None, /, **named: Any
    ) -> CallResult:
        """Get the prompt called `name`, with `arguments`, or with those `named`."""
        return await self._prompt(name, {**(arguments or {}), **named})

    async def tools(self) -> dict[str, dict[str, Any]]:
        """Return the tools that the caller sees, by name."""
        return await self._tools()

    async def resources(self) -> dict[str, dict[str, Any]]:
        """Return the resources that the caller sees, by URI; templates by their template."""
        return await self._resources()

    async def prompts(self) -> dict[str, dict[str, Any]]:
        """Return the prompts that the caller sees, by name."""
        return await self._prompts()

    async def approve(self, approval: Decided = None, *, reason: str | None = None) -> Approval:
        """Approve a call as the operator; `approval` and `reason` are those of `TestClient.approve`."""
        return await self._decide(approval, "approve", reason)

    async def deny(self, approval: Decided = None, *, reason: str | None = None) -> Approval:
        """Deny a call as the operator; `approval` and `reason` are those of `TestClient.approve`."""
        return await self._decide(approval, "deny", reason)

    async def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request of MCP with this `method` and these `params`; return the whole answer."""
        return await self._request(method, params)

    async def send(self, message: bytes | str | Mapping[str, Any] | list[Any]) -> Any:
        """Send one `message` of any contract as it is; return the answer, or None where there is none."""
        return await self._speaker.send(message)

    async def close(self) -> None:
        """Close it, and every client that was made from it; doing it twice does nothing."""
        _require_asyncio()
        await self._world.close()

    async def __aenter__(self) -> Self:
        _require_asyncio()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        await self.close()


def _require_asyncio() -> None:
    """Raise `RuntimeError` where no event loop of asyncio runs, as under trio."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise RuntimeError(
            "AsyncTestClient needs asyncio: run the test with pytest-asyncio or anyio's asyncio backend, "
            "or use TestClient in tests that are not coroutines"
        ) from None
