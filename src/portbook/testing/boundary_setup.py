"""A whole boundary for one test: its settings, its time, its records; nothing of the machine around it.

Rules it keeps: no file is written and none read but those that the test names; the environment is the one
that the test gives; nothing is dialled.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Final, cast

from portbook.access.approval_state_and_binding import Ticket, Undecidable, as_json
from portbook.app.assemble import assemble
from portbook.app.running_app import App
from portbook.app.start_warnings import OPERATOR_KEY
from portbook.errors import Reason, Refused
from portbook.exception_place import Fault
from portbook.mcp.connection import McpConnection
from portbook.model import JSON, Arrival
from portbook.settings import Settings, by_key, load_settings
from portbook.stores.caller_keys import AllowedKey, digest_of_key
from portbook.testing.call_result import RecordsByCall, noting
from portbook.testing.fake_http_api import FunctionHttpClient, Upstream, require_upstream
from portbook.testing.fixed_time import CountingBytes, CountingIds, FixedClock
from portbook.tools.toolset import Toolset

__all__ = ["NamedCallers", "Source", "World", "key_of", "make_world"]

# The name of the transport in records.
_TRANSPORT: Final = "test"

# Long enough that no warning says that it can be guessed.
_OPERATORS_KEY: Final = "operator-of-portbook-testing"
_OPERATOR: Final = "operator (test)"


def _runner() -> asyncio.Runner:
    # With a factory of its own it does not become the thread's loop, which others may have set.
    return asyncio.Runner(loop_factory=asyncio.new_event_loop)


def _has_runner() -> None:
    """Do nothing: a client for plain tests brings its own event loop."""


@dataclass(slots=True)
class World:
    """A boundary, and what a test sees of it and does to it."""

    app: App
    clock: FixedClock
    log: RecordsByCall
    callers: tuple[str, ...]
    warnings: list[str]
    operator_key: str
    runner: asyncio.Runner = field(default_factory=_runner)
    """The event loop of a client for plain tests; made when it is first used."""
    connections: list[McpConnection] = field(default_factory=list[McpConnection])
    is_closed: bool = False
    require_loop: Callable[[], None] = _has_runner
    """Raises `RuntimeError` where the event loop that runs is not one for its client."""

    def require_open(self) -> None:
        """Raise `RuntimeError` where it is closed."""
        if self.is_closed:
            raise RuntimeError("the test client is closed")

    def require_ready(self) -> None:
        """Raise `RuntimeError` where it is closed, or where its client cannot wait for answers."""
        self.require_open()
        self.require_loop()

    def arrival(self, key: str | None) -> Arrival:
        """Return how messages come in of whoever has this key."""
        return Arrival(_TRANSPORT, _TRANSPORT, key=key)

    async def decide(self, approval_id: str, decision: str, reason: str | None) -> Ticket:
        """Decide on an approval as the operator; it is recorded as such.

        Raises `Undecidable` where it is too late, or there is no such approval, and `RuntimeError` where the
        boundary refuses the operator.
        """
        self.require_ready()
        why = None if reason is None else self.app.boundary.without_secrets(reason)
        decided: list[Ticket | Undecidable] = []

        async def act() -> JSON:
            try:
                ticket = await self.app.approvals.decide(approval_id, decision, by=_OPERATOR, reason=why)
            except Undecidable as error:
                decided.append(error)
                raise Refused(Reason.APPROVAL_SETTLED) from None
            decided.append(ticket)
            return as_json(ticket)

        arrival = self.arrival(self.operator_key)
        answer = await self.app.boundary.operate("approvals.decide", arrival, act, approval_id, decision)
        if not decided:
            refused = json.loads(answer.body or b"{}").get("error", {})
            raise RuntimeError(f"the decision was refused: {refused.get('code')}: {refused.get('message')}")
        [ended] = decided
        if isinstance(ended, Undecidable):
            raise ended
        return ended

    def abandon(self) -> None:
        """Let go of the toolsets and the event loop, without running it: nobody is left to close the rest."""
        self.is_closed = True
        self.app.unwatch()
        loop = self.runner.get_loop()
        if not loop.is_running():
            loop.close()

    async def close(self) -> None:
        """Close everything; doing it twice does nothing."""
        if not self.is_closed:
            self.is_closed = True
            for connection in self.connections:
                connection.close()
            await self.app.close()


def make_world(
    sources: Sequence[Source],
    *,
    config: str | PathLike[str] | None,
    settings: Mapping[str, Any] | None,
    policy: Mapping[str, Any] | None,
    callers: NamedCallers,
    upstream: Upstream | None,
    environ: Mapping[str, str] | None,
) -> World:
    """Return the boundary that a test describes.

    Raises `BadTool`, `BadBundle` or `BadSettings` for what cannot be served.
    """
    require_upstream(upstream)
    given = dict(environ or {})
    operator_key = given[OPERATOR_KEY] = given.get(OPERATOR_KEY) or _OPERATORS_KEY
    loaded = settings_of_test(sources, config, settings, policy, callers, given)
    clock, log = FixedClock(), RecordsByCall()
    warnings: list[str] = []
    app = assemble(
        loaded,
        is_exposed=False,
        sink=log,
        clock=clock,
        ids=CountingIds(),
        warn=warnings.append,
        toolsets=[source for source in sources if isinstance(source, Toolset)],
        environ=given,
        draw=CountingBytes().draw,
        http=lambda: FunctionHttpClient(upstream),
        on_fault=_note_fault,
    )
    warnings[:0] = app.warnings
    names = dict.fromkeys(key.name for key in loaded.allowed_keys)
    return World(app, clock, log, tuple(names), warnings, operator_key)


def _note_fault(fault: Fault) -> None:
    noted = noting.get()
    if noted is not None and not fault.is_meant:
        noted.faults.append(fault.error)


# The settings of a test, and how they differ from those of a server.


# What `app/official_schema_override.py` would open a connection for.
_REMOTE: Final = re.compile("https?:", re.IGNORECASE)

# A toolset, or where one is: a Python file or a module's name.
Source = Toolset | str | PathLike[str]

# Names of callers, each with the patterns of the tools that it may call.
NamedCallers = Mapping[str, Sequence[str]] | Iterable[str]


def key_of(caller: str) -> str:
    """Return the key that a caller has in tests."""
    return f"key of {caller}"


def settings_of_test(
    sources: Sequence[Source],
    config: str | PathLike[str] | None,
    settings: Mapping[str, Any] | None,
    policy: Mapping[str, Any] | None,
    callers: NamedCallers,
    environ: Mapping[str, str],
) -> Settings:
    """Return the settings of a test: its own, and defaults that leave out the machine around it.

    Raises `BadSettings` for what cannot be used.
    """
    flags: dict[str, Any] = {"docs.enabled": False, "approvals.wait_s": 0}
    rules = by_key({"policy": policy or {}}, "policy=")
    flags |= by_key(settings or {}, "settings=") | rules
    flags["store.path"] = ":memory:"
    if sources:
        named = [fspath(source) for source in sources if not isinstance(source, Toolset)]
        flags["python.toolsets"] = named
    file = None if config is None else Path(config)
    loaded = load_settings(file, environ, flags, None, lambda key: "policy=" if key in rules else "settings=")
    if loaded.asset_schemas is None and loaded.asset_examples is None and loaded.assets_enabled is None:
        loaded = loaded._replace(assets_enabled=False)  # they would be looked for around the test
    known = [key._replace(sha256=digest_of_key(key_of(key.name))) for key in loaded.allowed_keys]
    _require_local(loaded)
    return loaded._replace(allowed_keys=(*known, *_keys(callers)))


def _require_local(settings: Settings) -> None:
    """Raise `BadSettings` where the settings would have something fetched."""
    if _REMOTE.match(settings.schema_override_uri or ""):
        sentence = "is fetched over the network, which tests do not use; name a file"
        raise settings.complain(("schema_override_uri",), sentence)


def _keys(callers: NamedCallers) -> tuple[AllowedKey, ...]:
    given: Any = callers
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(
            'callers= is a list of names, or a mapping of names to patterns: ["ada"] or {"ada": ["orders.*"]}'
        )
    patterns: dict[str, Sequence[str]] = dict.fromkeys(callers, ("*",))
    if isinstance(callers, Mapping):
        patterns |= cast("Mapping[str, Sequence[str]]", callers)
    tables = [
        {
            "name": name,
            "sha256": digest_of_key(key_of(name)),
            "tools": (tools,) if isinstance(tools, str) else tools,
        }
        for name, tools in patterns.items()
    ]
    return load_settings(None, {}, {"keys.allow": tables}, None, lambda _: "callers=").allowed_keys
