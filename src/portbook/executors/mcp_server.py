"""`McpServerExecutor`: runs tools, resources and prompts of MCP servers behind Portbook.

A call of which nothing was sent is refused, whatever the cause. What the server asks while it works goes to
the caller's client, in whichever era each of the two is:

- A server that keeps a connection asks during the call. A client that does, too, is asked while the call
  waits. For a client that answers with its next request, the call is held open, and its next round finds it.
- A server without one answers with its questions. A client that can be asked is asked, and the request sent
  again with the answers, a few times. For a client that answers later, the questions are its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from portbook.errors import Failed, Finding, Reason, Refused
from portbook.executors.held_calls import HeldCall, HeldCalls
from portbook.executors.unsent import NothingSent
from portbook.executors.upstream_results import ending_by, result_in
from portbook.executors.upstream_tasks import begin_result, follow_task, runs_as_task
from portbook.model import JSON, Client, InputNeeded, JSONObject, Run
from portbook.net.destinations import Destinations
from portbook.protocol.conformance import INPUT_REQUIRED
from portbook.protocol.extensions import META_CAPABILITIES, TASKS, declares
from portbook.protocol.log_levels import LEVELS
from portbook.tools.catalog import Tool
from portbook.tools.spec import ToolSpec
from portbook.tools.upstream_entry import UpstreamEntry
from portbook.tools.uri_templates import UriTemplate
from portbook.upstreams.answer_checks import TASK, BadAnswer, RpcError, is_created_task
from portbook.upstreams.connection import UpstreamConnection
from portbook.upstreams.fleet import Fleet
from portbook.upstreams.instances import InstanceOwner
from portbook.upstreams.request_meta import meta_for
from portbook.upstreams.running_call import RunningCall, UpstreamQuestion
from portbook.upstreams.supervisor import Supervisor
from portbook.upstreams.transport import ConnectionLost, NotSent, SessionLost
from portbook.wire.trace_context import traceparent_of

__all__ = ["McpServerExecutor"]

# How often a server may answer with questions before a call ends.
_MAX_ROUNDS: Final = 10

_METHODS: Final = {
    "tool": "tools/call",
    "resource": "resources/read",
    "prompt": "prompts/get",
    "completion": "completion/complete",
}


@dataclass(slots=True)
class _Way:
    """A call on its way: what it calls, for whom, over which connection."""

    tool: Tool
    entry: UpstreamEntry
    arguments: JSONObject
    run: Run
    connection: UpstreamConnection
    may_ask: frozenset[str]

    @property
    def method(self) -> str:
        return _METHODS[self.tool.spec.kind]


class McpServerExecutor:
    """Executes what MCP servers offer."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._held = HeldCalls()

    async def execute(self, tool: Tool, arguments: JSONObject, run: Run) -> Any:
        """Call `tool` at its server within the deadline of `run` and return its result.

        Raises `Refused` where nothing was sent, `Failed` where it was called without a result, `InputNeeded`
        where the client has to answer first.
        """
        entry = tool.spec.upstream
        assert entry is not None
        server = self._fleet[entry.server]
        held = self._continued(run)
        connection = await self._connected(server, tool.spec, run) if held is None else held.connection
        way = _Way(tool, entry, arguments, run, connection, server.declared.may_ask)
        if held is not None:
            return await self._resume(way, held)
        answers, state = _round_of(run)
        try:
            return await self._call(way, answers, state)
        except SessionLost:  # it did not look at the request: a new session does
            way.connection = await self._connected(server, tool.spec, run)
            return await self._call(way, answers, state)

    def permit(self, destinations: Destinations) -> None:
        """Set where connections may go, from now on."""
        self._fleet.permit(destinations)

    def secrets(self) -> list[str]:
        """Return every secret value that a server was given."""
        return self._fleet.secrets()

    async def close(self) -> None:
        """End every held call, and every server."""
        self._held.close()
        await self._fleet.close()

    async def _connected(self, server: Supervisor, spec: ToolSpec, run: Run) -> UpstreamConnection:
        """Return a connection to the server, begun now if there is none; then it said what it offers.

        Raises `Refused` where there is none, or the server defines the tool differently by now.
        """
        connection = await self._begun(server, run)
        if not spec.is_on:
            self._require_same(spec, run)
        return connection

    async def _begun(self, server: Supervisor, run: Run) -> UpstreamConnection:
        owner = None if server.declared.isolation == "shared" else InstanceOwner(run.caller, run.session)
        ready = server.ready(owner)
        if ready is not None:
            return ready
        try:
            async with asyncio.timeout(run.timeout_ms / 1000):
                return await server.connected(owner)
        except NotSent as error:
            raise Refused(Reason.UPSTREAM_ERROR, happened=str(error), is_retryable=True) from None
        except TimeoutError:
            raise Refused(Reason.TIMEOUT, happened="the server did not start in time") from None
        except asyncio.CancelledError:
            raise NothingSent from None

    def _require_same(self, spec: ToolSpec, run: Run) -> None:
        """Check that a call may go on although the definition of its tool has changed: only its words have.

        An approval is for the definition that a person saw, words included.

        Raises `Refused` otherwise.
        """
        now, withheld = self._fleet.offers.find(spec.kind, spec.name)
        if withheld is not None:
            raise withheld.refusal()
        if now is None:
            raise Refused(Reason.UPSTREAM_ERROR, happened="its server no longer offers it")
        is_same = (now.input_schema, now.output_schema, now.effect) == (
            spec.input_schema,
            spec.output_schema,
            spec.effect,
        )
        if run.is_approved or not is_same:
            happened = "its definition has changed since; list the tools again"
            raise Refused(Reason.UPSTREAM_ERROR, happened=happened, is_retryable=True)

    # -- rounds

    async def _call(self, way: _Way, answers: Mapping[str, JSONObject] | None, state: str | None) -> Any:
        """Send the request, and answer what the server asks, until there is a result."""
        for _ in range(_MAX_ROUNDS):
            call = self._begin(way, answers, state)
            result = await self._follow(way, call)
            if result.get("resultType") == TASK:
                result = await self._follow_task(way, result)
            elif is_created_task(result):
                result = await self._follow(way, begin_result(way.connection, call, result, way.run))
            if result.get("resultType") != INPUT_REQUIRED:
                return self._checked(way, result)
            answers = await self._answers(way, result)
            given = result.get("requestState")
            state = given if isinstance(given, str) else None
        raise Failed(Reason.UPSTREAM_ERROR, happened=f"it asked for input more than {_MAX_ROUNDS} times")

    def _begin(self, way: _Way, answers: Mapping[str, JSONObject] | None, state: str | None) -> RunningCall:
        def params(number: int) -> JSONObject:
            wanted = _params_of(way)
            if runs_as_task(way.entry, way.connection):
                wanted["task"] = {"ttl": way.run.timeout_ms}
            meta = _meta(way, number)
            if meta:
                wanted["_meta"] = meta
            if answers is not None and not way.connection.revision.has_handshake:
                wanted["inputResponses"] = cast("JSON", dict(answers))
            if state is not None:
                wanted["requestState"] = state
            return wanted

        try:
            return way.connection.begin(way.method, params, way.run)
        except NotSent as error:
            raise Refused(Reason.UPSTREAM_ERROR, happened=str(error), is_retryable=True) from None
        except BadAnswer as error:
            raise Refused(Reason.BAD_ARGUMENTS, error.findings) from None

    def _checked(self, way: _Way, result: JSONObject) -> Any:
        """Return what the pipeline takes as the result.

        Raises `Failed` where the tool reports an error, or content claims to be at an address of others.
        """
        value = result_in(result, way.tool)
        if way.tool.spec.kind == "resource":
            for at, part in enumerate(cast("list[JSONObject]", value)):
                if self._fleet.is_of_others(way.entry.server, str(part.get("uri"))):
                    finding = Finding(f"/contents/{at}/uri", "is an address of others", "uri", "")
                    raise Failed(Reason.BAD_RESULT, (finding,))
        return value

    async def _answers(self, way: _Way, result: JSONObject) -> dict[str, JSONObject]:
        """Return the client's answers to the questions in a result.

        Raises `InputNeeded` where the client answers with its next request.
        """
        requests = cast("dict[str, JSONObject]", result.get("inputRequests") or {})
        client = _askable(way, requests.values())
        if not client.answers_later:
            return await client.ask(requests, _any_answer)
        await client.end_round(requests, {"round": result.get("requestState")})
        raise AssertionError("a round has ended")  # pragma: no cover - end_round raises

    async def _follow_task(self, way: _Way, created: JSONObject) -> JSONObject:
        async def ask(requests: dict[str, JSONObject]) -> dict[str, JSONObject]:
            client = _askable(way, requests.values())
            return await client.ask(requests, _any_answer)

        timeout_s = way.run.timeout_ms / 1000
        capabilities = _capabilities(way)
        try:
            return await follow_task(way.connection, created, way.run.reach(), ask, capabilities, timeout_s)
        except (RpcError, BadAnswer, NotSent, ConnectionLost) as error:
            raise ending_by(error, way.tool) from None
        except TimeoutError:
            raise Failed(Reason.TIMEOUT) from None

    # -- one request

    async def _follow(self, way: _Way, call: RunningCall) -> JSONObject:
        """Return the result of a request; whatever the server asks meanwhile is answered.

        Raises `Failed`, and `InputNeeded` with the call held open.
        """
        try:
            while not call.result.done():
                if call.questions:
                    await self._attend(way, call)
                    continue
                await _first_of(call, way.run.timeout_ms / 1000)
            return call.result.result()
        except (InputNeeded, SessionLost):  # it stays open, or never began
            raise
        except (RpcError, BadAnswer, NotSent, ConnectionLost) as error:
            raise ending_by(error, way.tool) from None
        except BaseException:
            way.connection.forget(call, is_cancelled=not call.result.done())
            raise

    async def _attend(self, way: _Way, call: RunningCall) -> None:
        """Answer the questions of a server that keeps a connection."""
        asked = {f"question_{at}": each for at, each in enumerate(call.take_questions(), 1)}
        requests = {key: each.request for key, each in asked.items()}
        try:
            client = _askable(way, requests.values())
        except Failed as failure:
            for each in asked.values():
                each.refuse(str(failure.details.get("why", "the client cannot be asked")))
            return
        if client.answers_later:
            await self._hold(way, call, asked, client, requests)
        asking = asyncio.ensure_future(client.ask(requests, _any_answer))
        try:
            await asyncio.wait((asking, call.result), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not asking.done():
                asking.cancel()
        _deliver(asking, asked)

    async def _hold(
        self,
        way: _Way,
        call: RunningCall,
        asked: dict[str, UpstreamQuestion],
        client: Client,
        requests: dict[str, JSONObject],
    ) -> None:
        handle = self._held.put(HeldCall(way.connection, call, asked, requests))
        try:
            await client.end_round(requests, {"held": handle})
        except InputNeeded:
            raise
        except BaseException:
            self._held.drop(handle)
            raise

    def _continued(self, run: Run) -> HeldCall | None:
        """Return the call that this round continues, None where it begins one.

        Raises `Failed` where it is gone.
        """
        memo = None if run.resumption is None else run.resumption.memo
        handle = memo.get("held") if isinstance(memo, dict) else None
        if not isinstance(handle, str):
            return None
        held = self._held.take(handle)
        if held is None:
            happened = "the call that waited for this answer is gone; whether it had effects is unknown"
            raise Failed(Reason.UPSTREAM_ERROR, happened=happened)
        return held

    async def _resume(self, way: _Way, held: HeldCall) -> Any:
        """Deliver the answers of this round into the open call, and follow it."""
        assert way.run.resumption is not None
        held.call.continue_for(way.run)
        missing = dict(held.asked)
        for key, answer in way.run.resumption.answers.items():
            question = missing.pop(key, None)
            if question is not None:
                question.answer(answer)
        if missing:  # the client answered some of them only
            client = way.run.reach()
            assert client is not None
            requests = {key: held.requests[key] for key in missing}
            await self._hold(way, held.call, missing, client, requests)
        result = await self._follow(way, held.call)
        return self._checked(way, result)


def _round_of(run: Run) -> tuple[Mapping[str, JSONObject] | None, str | None]:
    """Return the answers and the server's own state that a later round brings."""
    resumption = run.resumption
    if resumption is None:
        return None, None
    state = resumption.memo.get("round") if isinstance(resumption.memo, dict) else None
    return resumption.answers, state if isinstance(state, str) else None


def _params_of(way: _Way) -> JSONObject:
    """Return what is requested, in the words of the server."""
    spec, entry, arguments = way.tool.spec, way.entry, way.arguments
    if spec.kind == "resource":
        uri = entry.name
        return {"uri": UriTemplate(uri).expand(arguments) if UriTemplate.is_one(uri) else uri}
    if spec.kind == "completion":
        reference: JSONObject = (
            {"type": "ref/prompt", "name": entry.name}
            if spec.completes == "prompt"
            else {"type": "ref/resource", "uri": entry.name}
        )
        typed: JSONObject = {name: arguments[name] for name in ("name", "value")}
        if "given" not in arguments or not way.connection.revision.has_completion_context:
            return {"ref": reference, "argument": typed}
        return {"ref": reference, "argument": typed, "context": {"arguments": arguments["given"]}}
    return {"name": entry.name, "arguments": arguments}


def _meta(way: _Way, number: int) -> JSONObject:
    run, revision = way.run, way.connection.revision
    level: str | None = None
    client = None if revision.has_handshake else run.reach()
    if client is not None:
        level = next((each for each in LEVELS if client.hears(each)), None)
    return meta_for(
        revision,
        capabilities=None if revision.has_handshake else _capabilities(way),
        traceparent=traceparent_of(run.identity),
        progress_token=number if run.report is not None else None,
        level=level,
    )


def _capabilities(way: _Way) -> JSONObject:
    """Return what the caller's client can do, as far as the server may use it.

    Tasks are ours to follow, so a client that keeps a connection need not know them; one that answers later
    says for itself whether it takes a task for an answer.
    """
    client = way.run.reach()
    declared = {} if client is None else client.capabilities
    mirrored = {name: declared[name] for name in sorted(way.may_ask) if name in declared}
    if client is None or not client.answers_later or declares({META_CAPABILITIES: declared}, TASKS):
        mirrored["extensions"] = {TASKS: {}}
    return mirrored


def _askable(way: _Way, requests: Any) -> Client:
    """Return the client, if it may and can be asked all this.

    Raises `Failed` where it may not, or cannot.
    """
    client = way.run.reach()
    for request in requests:
        method = str(request.get("method"))
        if not _is_showable(request):
            raise Failed(Reason.NO_ANSWER, details={"why": "only web pages are shown to a user"})
        if method.partition("/")[0] not in way.may_ask:
            why = f"mcp.{way.entry.server}.may_ask does not allow {method}"
            raise Failed(Reason.NO_ANSWER, details={"why": why})
        if client is None or client.lacks(request) is not None:
            raise Failed(Reason.NO_ANSWER, details={"why": f"the client does not offer {method}"})
    if client is None:
        raise Failed(Reason.NO_ANSWER, details={"why": "no client can be asked"})
    return client


def _is_showable(request: JSONObject) -> bool:
    """Return whether a question is no page, or a web page: a client opens what it is given."""
    params = request.get("params")
    if not isinstance(params, dict) or params.get("mode") != "url":
        return True
    return str(params.get("url")).lower().startswith(("https://", "http://"))


def _deliver(asking: asyncio.Future[dict[str, JSONObject]], asked: dict[str, UpstreamQuestion]) -> None:
    """Pass the client's answers on to the server, or that there are none."""
    if asking.cancelled() or not asking.done():
        return
    failure = asking.exception()
    if failure is None:
        for key, answer in asking.result().items():
            asked[key].answer(answer)
        return
    if not isinstance(failure, Failed):
        raise failure
    for question in asked.values():
        question.refuse(str(failure.details.get("why", "the client did not answer")))


async def _first_of(call: RunningCall, timeout_s: float) -> None:
    """Wait for the result or for a question, whichever comes first.

    Raises `Failed` where neither comes in time.
    """
    if not await call.hear(timeout_s):
        raise Failed(Reason.TIMEOUT)


def _any_answer(key: str, answer: JSONObject) -> bool:
    return True  # whether it is one, the server says that asked
