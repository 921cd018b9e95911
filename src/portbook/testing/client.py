"""`TestClient`: tools tested through the whole boundary, for plain tests; what both clients have alike."""

from __future__ import annotations

import asyncio
import contextvars
import copy
import warnings
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from types import TracebackType
from typing import Any, Self, TypeAlias, TypeVar, cast

from portbook.access.approval_state_and_binding import State, Ticket
from portbook.canonical import json_bytes
from portbook.mcp.results import value_of
from portbook.testing.boundary_setup import NamedCallers, Source, World, key_of, make_world
from portbook.testing.call_result import CallResult, result_of
from portbook.testing.fake_http_api import Upstream
from portbook.testing.fixed_time import FixedClock
from portbook.testing.mcp_requests import Replied, Speaker, Voice
from portbook.testing.questions_and_answers import Answers

__all__ = ["Approval", "BaseTestClient", "Decided", "TestClient"]


@dataclass(frozen=True, slots=True)
class Approval:
    """A call that needs approval, and its state."""

    id: str
    """Its `approval_id`."""
    state: str
    """`pending`, `approved`, `denied`, `running`, `done`, `failed` or `expired`."""
    tool: str
    """The tool that is called."""
    arguments: Any
    """The arguments, without secrets: as the operator sees them."""
    caller: str
    """Who calls."""
    rule: str
    """The rule that wants it approved."""
    expires_at: str
    """When it expires, by the client's clock."""
    reason: str | None
    """Why the operator decided so."""


Decided: TypeAlias = CallResult | Approval | str | None
"""An approval to decide: the result of the call that needs it, the `Approval`, its id, or the name of a tool
with one pending approval. None is the only pending approval."""


class BaseTestClient:
    """What both test clients have alike."""

    __test__ = False  # pytest would collect what a test module imports under such a name

    def __init__(
        self,
        *toolsets: Source,
        config: str | PathLike[str] | None = None,
        settings: Mapping[str, Any] | None = None,
        policy: Mapping[str, Any] | None = None,
        callers: NamedCallers = (),
        answers: Answers | None = None,
        upstream: Upstream | None = None,
        environ: Mapping[str, str] | None = None,
        revision: str = "2026-07-28",
    ) -> None:
        voice = Voice(revision, answers=answers)  # first: nothing is open yet that a mistake would leave so
        self._world = make_world(
            toolsets,
            config=config,
            settings=settings,
            policy=policy,
            callers=callers,
            upstream=upstream,
            environ=environ,
        )
        self._speaker = Speaker(self._world, voice)
        self._watch_over()

    def _watch_over(self) -> None:
        """Prepare for being forgotten; a client of the test's own event loop has nothing to leave open."""

    # -- whose calls, and how

    def as_caller(self, name: str) -> Self:
        """Return a client that calls as `name`, with that caller's key; all else is shared.

        Callers are those of `callers` and of the settings' `[[keys.allow]]`, with their tool patterns.

        Raises `LookupError` for a caller that is not among them.
        """
        if name not in self._world.callers:
            known = ", ".join(self._world.callers) or "none"
            raise LookupError(f"there is no caller {name!r} in callers= or the settings; known: {known}")
        return self.with_key(key_of(name))

    def with_key(self, key: str | None) -> Self:
        """Return a client that calls with this `key`, right or wrong, or with none; all else is shared."""
        return self._speaking(key=key)

    def with_meta(self, meta: Mapping[str, Any]) -> Self:
        """Return a client that sends `meta` in the `_meta` of each request; all else is shared.

        `{"capture_provenance": True}` asks for an envelope, `{"portbook/session_id": "s-1"}` names a session.
        """
        return self._speaking(meta={**self._speaker.voice.meta, **meta})

    def with_answers(self, answers: Answers | None) -> Self:
        """Return a client with other `answers` to what tools ask; all else is shared.

        Raises `TypeError` for what is neither a mapping nor a function.
        """
        return self._speaking(answers=answers)

    def in_revision(self, revision: str) -> Self:
        """Return a client that speaks another `revision` of MCP, such as `2025-11-25`; all else is shared.

        Raises `LookupError` for one that there is not.
        """
        return self._speaking(revision=revision)

    def _speaking(self, **changes: Any) -> Self:
        other = copy.copy(self)
        vars(other)["_speaker"] = Speaker(self._world, replace(self._speaker.voice, **changes))
        return other

    # -- what can be seen

    @property
    def clock(self) -> FixedClock:
        """The clock of the boundary: it stands still until `clock.advance(seconds)`."""
        return self._world.clock

    @property
    def records(self) -> list[dict[str, Any]]:
        """Every record so far, of all callers, in order."""
        return [*self._world.log.records]

    @property
    def executions(self) -> list[dict[str, Any]]:
        """The same records in the execution view, with the caller, the decision and the rule."""
        return [*self._world.log.executions]

    @property
    def intents(self) -> list[dict[str, Any]]:
        """The intents: the notes written before calls with effects ran."""
        return [*self._world.log.intents]

    @property
    def record_bytes(self) -> bytes:
        """Every record so far as JSON Lines: the same bytes in every run, to compare with a golden file."""
        return b"".join(json_bytes(record) + b"\n" for record in self._world.log.records)

    @property
    def notifications(self) -> list[dict[str, Any]]:
        """The notifications that the server sent to this client, progress and log messages among them."""
        return [*self._speaker.notifications]

    @property
    def warnings(self) -> list[str]:
        """The warnings for the operator, since the start."""
        return [*self._world.warnings]

    # -- approvals

    def approvals(self, state: str | None = None) -> list[Approval]:
        """Return the approvals in one `state`, or in any, the oldest first.

        Raises `ValueError` for a state that there is not.
        """
        if state is not None and state not in tuple(State):
            raise ValueError(f"no approval is ever {state!r}; the states are {', '.join(State)}")
        found = self._world.app.approvals.tickets(None if state is None else State(state), limit=None)
        return [_approval(ticket) for ticket in reversed(found)]

    @property
    def pending(self) -> list[Approval]:
        """The approvals without a decision, the oldest first."""
        return self.approvals("pending")

    def _id_of(self, decided: Decided) -> str:
        """Return the id of the approval that is meant.

        Raises `LookupError` where that is none, or more than one.
        """
        if isinstance(decided, Approval):
            return decided.id
        if isinstance(decided, CallResult):
            if decided.approval_id is None:
                raise LookupError(f"{decided!r} has no approval to decide on")
            return decided.approval_id
        pending = self.pending
        tool = None if decided is None else self._world.app.catalog.canonical_name(decided)
        meant = [each.id for each in pending if decided in (None, each.id, each.tool) or each.tool == tool]
        if len(meant) == 1:
            return meant[0]
        if decided is not None and self._world.app.approvals.ticket(decided) is not None:
            return decided
        waiting = ", ".join(f"{each.tool} ({each.id})" for each in pending) or "none"
        of = "" if decided is None else f" of {decided!r}"
        number = "more than one approval" if meant else "no approval"
        raise LookupError(f"{number}{of} is pending; pending: {waiting}")

    async def _decide(self, decided: Decided, decision: str, reason: str | None) -> Approval:
        return _approval(await self._world.decide(self._id_of(decided), decision, reason))

    # -- requests

    async def _call(self, tool: str, arguments: Mapping[str, Any]) -> CallResult:
        replied = await self._speaker.request("tools/call", {"name": tool, "arguments": dict(arguments)})
        catalog = self._world.app.catalog
        found = catalog.find(catalog.canonical_name(tool) or tool)
        result = replied.answer.get("result")
        value = None
        if found is not None and result is not None and not result.get("isError"):
            value = value_of(found, result, self._speaker.revision)
        return _result(tool, replied, value)

    async def _read(self, uri: str) -> CallResult:
        replied = await self._speaker.request("resources/read", {"uri": uri})
        return _result(uri, replied, replied.answer.get("result", {}).get("contents"))

    async def _prompt(self, name: str, arguments: Mapping[str, Any]) -> CallResult:
        params = {"name": name, "arguments": dict(arguments)}
        replied = await self._speaker.request("prompts/get", params)
        return _result(name, replied, replied.answer.get("result", {}).get("messages"))

    async def _request(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        return (await self._speaker.request(method, params or {})).answer

    async def _tools(self) -> dict[str, dict[str, Any]]:
        return await self._listed("tools/list", "tools", "name")

    async def _resources(self) -> dict[str, dict[str, Any]]:
        found = await self._listed("resources/list", "resources", "uri")
        return found | await self._listed("resources/templates/list", "resourceTemplates", "uriTemplate")

    async def _prompts(self) -> dict[str, dict[str, Any]]:
        return await self._listed("prompts/list", "prompts", "name")

    async def _listed(self, method: str, member: str, name: str) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        params: dict[str, Any] = {}
        while True:
            replied = await self._speaker.request(method, params)
            _result(method, replied, None).raise_for_refusal()
            page = cast("dict[str, Any]", replied.answer["result"])
            found |= {each[name]: each for each in cast("Sequence[dict[str, Any]]", page[member])}
            if "nextCursor" not in page:
                return found
            params = {"cursor": page["nextCursor"]}


def _result(name: str, replied: Replied, value: Any) -> CallResult:
    return result_of(name, replied.answer, replied.noted, replied.asked, value)


def _approval(ticket: Ticket) -> Approval:
    return Approval(
        ticket.id,
        ticket.state.value,
        ticket.tool,
        ticket.shown,
        ticket.caller,
        ticket.rule,
        ticket.expires_at,
        ticket.reason,
    )


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
