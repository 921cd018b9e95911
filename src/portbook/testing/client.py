"""`TestClient`: tools tested through the whole boundary, for plain tests."""

from __future__ import annotations

import asyncio
import contextvars
import warnings
from collections.abc import Coroutine, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from portbook.testing.base_client import Approval, BaseTestClient, Decided
from portbook.testing.call_result import CallResult
from portbook.testing.world import World

__all__ = ["TestClient"]

_T = TypeVar("_T")


class TestClient(BaseTestClient):
    """Calls tools through the whole boundary: schemas, policy, approvals, redaction, records.

    Each of the `toolsets` is a `Toolset`, a Python file or the name of a module. They are served instead of
    those that the settings name. `config` is a settings file; `settings` are given inline, nested as in that
    file, and win over it. `policy` is short for `settings={"policy": …}`.

    `callers` are names, each with the patterns of the tools that it may call: `{"ada": ["orders.*"]}`, or
    `["ada"]` for one that may call all. `answers` answers what tools ask: a mapping fills in forms by the
    names of their fields, a function gets each `Inquiry`. `upstream` stands for every HTTP API: a function
    that gets an `ApiRequest` and returns JSON or an `ApiResponse`. `environ` is the environment for the
    settings, with its `PORTBOOK_…` variables; that of the process is ignored. `revision` is the revision of
    MCP that the client speaks.

    No file is written and no network connection is opened. Records, approvals and keys are in memory, the
    clock stands still, and ids count up. Unless `settings` say otherwise, `docs.search` is off and calls do
    not wait for approval (`approvals.wait_s` is 0). `with` closes the client.

    Raises `BadSettings`, `BadTool` or `BadBundle` for what cannot be served, `LookupError` for a revision
    that does not exist, and `TypeError` for `callers`, `answers` or an `upstream` of the wrong type.
    """

    def call(self, tool: str, arguments: Mapping[str, Any] | None = None, /, **named: Any) -> CallResult:
        """Call a `tool`, by any of its names, with `arguments`, or with those `named`.

        Raises `NotJSON` for arguments that JSON cannot hold, with the place and its type, and what `answers`
        or `upstream` raise.
        """
        return self._run(self._call(tool, {**(arguments or {}), **named}))

    def read(self, uri: str) -> CallResult:
        """Read the resource at `uri`."""
        return self._run(self._read(uri))

    def prompt(self, name: str, arguments: Mapping[str, Any] | None = None, /, **named: Any) -> CallResult:
        """Get the prompt called `name`, with `arguments`, or with those `named`."""
        return self._run(self._prompt(name, {**(arguments or {}), **named}))

    def tools(self) -> dict[str, dict[str, Any]]:
        """Return the tools that the caller sees, each as MCP lists it, by the listed name.

        Raises `NoResult` where the caller may not list them.
        """
        return self._run(self._tools())

    def resources(self) -> dict[str, dict[str, Any]]:
        """Return the resources that the caller sees, by URI, and the templates, by their template.

        Raises `NoResult` where the caller may not list them.
        """
        return self._run(self._resources())

    def prompts(self) -> dict[str, dict[str, Any]]:
        """Return the prompts that the caller sees, by name.

        Raises `NoResult` where the caller may not list them.
        """
        return self._run(self._prompts())

    def approve(self, approval: Decided = None, *, reason: str | None = None) -> Approval:
        """Approve a call as the operator, who gives a `reason` or none; the same call then runs, once.

        `approval` is the result that needs it, one of `pending`, an id, or the name of a tool with one
        pending approval; without it, the only pending approval.

        Raises `LookupError` if nothing matches, or more than one, and `Undecidable` if it was decided already
        or has expired.
        """
        return self._run(self._decide(approval, "approve", reason))

    def deny(self, approval: Decided = None, *, reason: str | None = None) -> Approval:
        """Deny a call as the operator; `approval` and `reason` are those of `approve`.

        Raises what `approve` raises.
        """
        return self._run(self._decide(approval, "deny", reason))

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request of MCP with this `method` and these `params`; return the whole answer.

        It is sent in the client's revision, as if the handshake had been made where there is one.

        Raises `ValueError` for a notification, which has no answer: `send` it.
        """
        return self._run(self._request(method, params))

    def send(self, message: bytes | str | Mapping[str, Any] | list[Any]) -> Any:
        """Send one `message` of any contract as it is; return the answer, or None where there is none.

        It goes over a connection of its own, on which nothing was agreed before.
        """
        return self._run(self._speaker.send(message))

    def close(self) -> None:
        """Close it, and every client that was made from it; doing it twice does nothing."""
        if not self._world.is_closed:
            _require_no_loop()
            try:
                self._run(self._world.close())
            finally:
                self._world.runner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, place: TracebackType | None
    ) -> None:
        self.close()

    def _watch_over(self) -> None:
        self._guard = _Guard(self._world, type(self).__name__)

    def _run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        try:
            self._world.require_open()
            _require_no_loop()
        except RuntimeError:
            coroutine.close()
            raise
        # A runner keeps the context of its first run: what the caller has set since would not be seen.
        return self._world.runner.run(coroutine, context=contextvars.copy_context())


class _Guard:
    """Warns when the last client of a world is gone and none was closed. Only clients refer to it."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name

    def __del__(self) -> None:
        if not self._world.is_closed:
            try:
                sentence = f"unclosed {self._name}; use it in `with`, or call close()"
                warnings.warn(sentence, ResourceWarning, stacklevel=2, source=self)
            finally:
                self._world.abandon()


def _require_no_loop() -> None:
    """Raise `RuntimeError` where an event loop runs already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("an event loop is running here; use AsyncTestClient in tests that are coroutines")
