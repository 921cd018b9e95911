"""Connections for calls: to the server of a tool, if it still defines the tool as it did for the decision."""

from __future__ import annotations

import asyncio

from portbook.errors import Reason, Refused
from portbook.executors.unsent import NothingSent
from portbook.model import Run
from portbook.net.time_limit import TimeLimited
from portbook.tools.spec import ToolSpec
from portbook.upstreams.connection import UpstreamConnection
from portbook.upstreams.fleet import Fleet
from portbook.upstreams.instances import InstanceOwner
from portbook.upstreams.supervisor import Supervisor
from portbook.upstreams.transport import NotSent

__all__ = ["UpstreamConnections"]


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
            # Not `asyncio.timeout`: in a call's first step the task is the door's, which it would cancel.
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
