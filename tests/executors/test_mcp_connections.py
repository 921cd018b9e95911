"""The connection for a call: refused where there is none, or the tool is not what was decided on."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from portbook.doors.taskless_calls import Remainder
from portbook.errors import Reason, Refused
from portbook.executors.cancelled_before_sending import NothingSent
from portbook.executors.mcp_server_call import UpstreamConnections
from portbook.model import Identity, Run
from portbook.tools.spec import Effect, Switch, ToolSpec

SPEC = ToolSpec("s.echo", "", {}, True, Effect.READ, switch=Switch())


def connect(spec: ToolSpec, now: ToolSpec | None, start: Any = None, **run: Any) -> Any:
    """Return what a call gets whose server is ready; or is started by `start`."""
    server = SimpleNamespace(
        declared=SimpleNamespace(isolation="shared"),
        ready=lambda _: None if start else "ready",
        connected=start,
    )
    fleet = SimpleNamespace(offers=SimpleNamespace(find=lambda *_: (now, None)))
    connections = UpstreamConnections(cast("Any", fleet))
    call = Run(run.pop("timeout_ms", 5000), Identity("r", "t", "0" * 32), **run)
    return asyncio.run(connections.connected(cast("Any", server), spec, call))


def changed(**changes: Any) -> tuple[ToolSpec, ToolSpec]:
    """Return a spec that was switched off while its call was decided, and what took its place."""
    off = Switch()
    off.is_on = False
    return replace(SPEC, switch=off), replace(SPEC, **changes)


def test_a_tool_whose_words_alone_changed_is_called() -> None:
    assert connect(*changed(description="other words")) == "ready"


def test_a_tool_that_is_defined_differently_now_is_not_called() -> None:
    for changes, run in (
        ({"input_schema": {"type": "object"}}, {}),
        ({"effect": Effect.DESTRUCTIVE}, {}),
    ):
        with pytest.raises(Refused) as caught:
            connect(*changed(**changes), **run)
        assert (caught.value.reason, caught.value.is_retryable) == (Reason.UPSTREAM_ERROR, True)


def test_a_tool_whose_words_were_approved_differently_is_not_called() -> None:
    with pytest.raises(Refused) as caught:
        connect(*changed(description="other words"), is_approved=True)
    assert (caught.value.reason, caught.value.is_retryable) == (Reason.APPROVAL_REFUSED, False)


def test_a_tool_that_is_gone_is_not_called() -> None:
    with pytest.raises(Refused) as caught:
        connect(changed()[0], None)
    assert (caught.value.reason, caught.value.is_retryable) == (Reason.UPSTREAM_ERROR, False)


def test_a_start_that_takes_too_long_or_is_cancelled_sent_nothing() -> None:
    async def forever(_: Any) -> None:
        await asyncio.Event().wait()

    async def cancelled(_: Any) -> None:
        raise asyncio.CancelledError

    with pytest.raises(Refused) as caught:
        connect(SPEC, SPEC, forever, timeout_ms=10)
    assert caught.value.reason is Reason.TIMEOUT
    with pytest.raises(NothingSent):
        connect(SPEC, SPEC, cancelled)


def test_a_start_that_takes_too_long_cancels_nobody_but_its_call() -> None:
    async def forever(_: Any) -> None:
        await asyncio.Event().wait()

    server = SimpleNamespace(
        declared=SimpleNamespace(isolation="shared"), ready=lambda _: None, connected=forever
    )
    connections = UpstreamConnections(cast("Any", SimpleNamespace()))

    async def door() -> None:
        call = Run(10, Identity("r", "t", "0" * 32))
        calling = connections.connected(cast("Any", server), SPEC, call)
        rest = Remainder(calling, calling.send(None))  # the first step is the door's

        async def finish() -> None:
            with pytest.raises(Refused):
                await rest

        await asyncio.create_task(finish())
        await asyncio.sleep(0)

    asyncio.run(door())
