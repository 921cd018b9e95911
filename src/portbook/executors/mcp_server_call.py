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
from functools import partial
from typing import Any, cast

from portbook.errors import Failed, Reason, Refused
from portbook.executors.cancelled_before_sending import NothingSent
from portbook.executors.mcp_server_questions import (
    MAX_ROUNDS,
    HeldCall,
    HeldCalls,
    any_answer,
    askable,
    deliver,
    gathered,
)
from portbook.executors.mcp_server_request_and_result import (
    UpstreamRequest,
    capabilities_of,
    ending_by,
    params_of,
    require_own_addresses,
    result_in,
)
from portbook.executors.mcp_server_tasks import begin_result, follow_task
from portbook.model import Client, InputNeeded, JSONObject, Run
from portbook.net.destinations import Destinations
from portbook.net.taskless_waits import TimeLimited
from portbook.protocol.message_validation import INPUT_REQUIRED
from portbook.tools.catalog import Tool
from portbook.tools.spec import ToolSpec
from portbook.upstreams.all_servers import Fleet
from portbook.upstreams.connection_and_server_questions import UpstreamConnection
from portbook.upstreams.message_checks_and_meta import TASK, BadAnswer, RpcError, is_created_task
from portbook.upstreams.running_call import RunningCall, UpstreamQuestion
from portbook.upstreams.session_isolation import InstanceOwner
from portbook.upstreams.supervisor import Supervisor
from portbook.upstreams.transport import ConnectionLost, NotSent, SessionLost

__all__ = ["McpServerExecutor", "UpstreamConnections"]


class McpServerExecutor:
    """Executes what MCP servers offer."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._connections = UpstreamConnections(fleet)
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
        connection = (
            await self._connections.connected(server, tool.spec, run) if held is None else held.connection
        )
        way = UpstreamRequest(tool, entry, arguments, run, connection, server.declared.may_ask)
        if held is not None:
            return await self._resume(way, held)
        answers, state = _round_of(run)
        try:
            return await self._call(way, answers, state)
        except SessionLost:  # it did not look at the request: a new session does
            way.connection = await self._connections.connected(server, tool.spec, run)
        try:
            return await self._call(way, answers, state)
        except SessionLost as error:
            raise Refused(Reason.UPSTREAM_ERROR, happened=str(error), is_retryable=True) from None

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

    # -- rounds

    async def _call(
        self, way: UpstreamRequest, answers: Mapping[str, JSONObject] | None, state: str | None
    ) -> Any:
        """Send the request, and answer what the server asks, until there is a result."""
        for _ in range(MAX_ROUNDS):
            call = self._begin(way, answers, state)
            result = await self._follow(way, call)
            if way.connection.revision.has_handshake:
                return self._checked(way, await self._ended(way, call, result))
            if result.get("resultType") == TASK:
                result = await self._follow_task(way, result)
            if result.get("resultType") != INPUT_REQUIRED:
                return self._checked(way, result)
            answers = await self._answers(way, result)
            given = result.get("requestState")
            state = given if isinstance(given, str) else None
        raise Failed(Reason.UPSTREAM_ERROR, happened=f"it asked for input more than {MAX_ROUNDS} times")

    def _begin(
        self, way: UpstreamRequest, answers: Mapping[str, JSONObject] | None, state: str | None
    ) -> RunningCall:
        try:
            return way.connection.begin(
                way.method, lambda number: params_of(way, number, answers, state), way.run
            )
        except NotSent as error:
            raise Refused(Reason.UPSTREAM_ERROR, happened=str(error), is_retryable=True) from None
        except BadAnswer as error:
            raise Refused(Reason.BAD_ARGUMENTS, error.findings) from None

    def _checked(self, way: UpstreamRequest, result: JSONObject) -> Any:
        """Return what the pipeline takes as the result.

        Raises `Failed` where the tool reports an error, or content claims to be at an address of others.
        """
        value = result_in(result, way.tool)
        if way.tool.spec.kind == "resource":
            require_own_addresses(value, partial(self._fleet.is_of_others, way.entry.server))
        return value

    async def _answers(self, way: UpstreamRequest, result: JSONObject) -> dict[str, JSONObject]:
        """Return the client's answers to the questions in a result.

        Raises `InputNeeded` where the client answers with its next request.
        """
        requests = cast("dict[str, JSONObject]", result.get("inputRequests") or {})
        client = askable(way, requests.values())
        if not client.answers_later:
            return await client.ask(requests, any_answer)
        await client.end_round(requests, {"round": result.get("requestState")})
        raise AssertionError("a round has ended")  # pragma: no cover - end_round raises

    async def _ended(self, way: UpstreamRequest, call: RunningCall, result: JSONObject) -> JSONObject:
        """Return the result of a call, or of the task that it created, as 2025-11-25 has them."""
        if way.tool.spec.kind != "tool" or not is_created_task(result):
            return result
        return await self._follow_on(way, begin_result(way.connection, call, result, way.run))

    async def _follow_task(self, way: UpstreamRequest, created: JSONObject) -> JSONObject:
        async def ask(requests: dict[str, JSONObject]) -> dict[str, JSONObject]:
            client = askable(way, requests.values())
            return await client.ask(requests, any_answer)

        timeout_s = way.run.timeout_ms / 1000
        capabilities = capabilities_of(way)
        try:
            return await follow_task(way.connection, created, way.run.reach(), ask, capabilities, timeout_s)
        except NotSent as error:  # the call was sent before
            raise Failed(Reason.UPSTREAM_ERROR, happened=str(error)) from None
        except (RpcError, BadAnswer, ConnectionLost) as error:
            raise ending_by(error, way.tool, way.connection.revision) from None
        except TimeoutError:
            raise Failed(Reason.TIMEOUT) from None

    # -- one request

    async def _follow(self, way: UpstreamRequest, call: RunningCall) -> JSONObject:
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
            raise ending_by(error, way.tool, way.connection.revision) from None
        except BaseException:
            way.connection.forget(call, is_cancelled=not call.result.done())
            raise

    async def _follow_on(self, way: UpstreamRequest, call: RunningCall) -> JSONObject:
        """Follow what belongs to a call that was sent before: it may have run, and is not sent again."""
        try:
            return await self._follow(way, call)
        except SessionLost as error:
            raise Failed(Reason.UPSTREAM_ERROR, happened=str(error)) from None

    async def _attend(self, way: UpstreamRequest, call: RunningCall) -> None:
        """Answer the questions of a server that keeps a connection."""
        client, asked = await gathered(way, call)
        if client is None or not asked:
            return
        requests = {key: each.request for key, each in asked.items()}
        if client.answers_later:
            await self._hold(way, call, asked, client, requests)
        asking = asyncio.ensure_future(client.ask(requests, any_answer))
        try:
            await asyncio.wait((asking, call.result), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not asking.done():
                asking.cancel()
        deliver(asking, asked)

    async def _hold(
        self,
        way: UpstreamRequest,
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

    async def _resume(self, way: UpstreamRequest, held: HeldCall) -> Any:
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
        result = await self._follow_on(way, held.call)
        return self._checked(way, await self._ended(way, held.call, result))


async def _first_of(call: RunningCall, timeout_s: float) -> None:
    """Wait for the result or for a question, whichever comes first.

    Raises `Failed` where neither comes in time.
    """
    if not await call.hear(timeout_s):
        raise Failed(Reason.TIMEOUT)


def _round_of(run: Run) -> tuple[Mapping[str, JSONObject] | None, str | None]:
    """Return the answers and the server's own state that a later round brings."""
    resumption = run.resumption
    if resumption is None:
        return None, None
    state = resumption.memo.get("round") if isinstance(resumption.memo, dict) else None
    return resumption.answers, state if isinstance(state, str) else None


# Connections for calls: to the server of a tool, if it still defines the tool as it did for the decision.


class UpstreamConnections:
    """The connections to all servers."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    async def connected(self, server: Supervisor, spec: ToolSpec, run: Run) -> UpstreamConnection:
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
            # Not `asyncio.timeout`: a call's first step has no task, which it would need.
            until = asyncio.get_running_loop().time() + run.timeout_ms / 1000
            return await TimeLimited(server.connected(owner), until)
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
        if run.is_approved and is_same:
            pin = f"`portbook pin {'' if spec.upstream is None else spec.upstream.server}`"
            happened = f"its words have changed since; approve them with {pin}, and then this call anew"
            raise Refused(Reason.APPROVAL_REFUSED, happened=happened)
        if not is_same:
            happened = "its definition has changed since; list the tools again"
            raise Refused(Reason.UPSTREAM_ERROR, happened=happened, is_retryable=True)
