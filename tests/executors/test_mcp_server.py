"""Calls of a server's tools: refused where nothing was sent, failed where it was, cancelled where it ends."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from portbook.errors import Failed, Reason, Refused
from portbook.executors.mcp_server import McpServerExecutor
from portbook.model import Identity, Run
from portbook.tools.catalog import Tool
from portbook.tools.spec import Effect, ToolSpec
from portbook.tools.upstream_entry import UpstreamEntry
from portbook.upstreams.connection import UpstreamConnection
from portbook.upstreams.declared_upstream import DeclaredUpstream
from portbook.upstreams.transport import NotSent
from support.fake_upstream import FakeLink, connected, text


class Answering(FakeLink):
    """Answers each call with the same."""

    def __init__(self, *answers: dict[str, Any]) -> None:
        super().__init__()
        self._answers = answers

    def answer(self, message: dict[str, Any]) -> None:
        for each in self._answers if message.get("method") == "tools/call" else ():
            self.say({"id": message["id"], **each})


class Server:
    """A supervised server, as far as calls need one."""

    def __init__(self, connection: UpstreamConnection | None) -> None:
        self.declared = DeclaredUpstream("s", "stdio")
        self._connection = connection

    def ready(self, owner: Any = None) -> UpstreamConnection | None:
        return self._connection

    async def connected(self, owner: Any = None) -> UpstreamConnection:
        if self._connection is None:
            raise NotSent("it cannot be started")
        return self._connection


def call(link: FakeLink | None, timeout_ms: int = 5000) -> Any:
    async def main() -> Any:
        fleet = {"s": Server(None if link is None else await connected(link))}
        entry, unused = UpstreamEntry("s", "echo", {}), cast("Any", None)
        tool = Tool(ToolSpec("s.echo", "", {}, True, Effect.READ, upstream=entry), unused, unused, "s__echo")
        run = Run(timeout_ms, Identity("r", "t", "0" * 32))
        return await McpServerExecutor(cast("Any", fleet)).execute(tool, {"a": 1}, run)

    return asyncio.run(main())


def test_a_call_is_sent_with_the_servers_own_name() -> None:
    link = Answering({"result": text("x")})
    assert call(link) == text("x")
    assert (link.sent[0]["params"]["name"], link.sent[0]["params"]["arguments"]) == ("echo", {"a": 1})
    assert "traceparent" in link.sent[0]["params"]["_meta"]


def test_where_nothing_was_sent_the_call_is_refused_and_may_be_retried() -> None:
    with pytest.raises(Refused) as caught:
        call(None)
    assert (caught.value.reason, caught.value.is_retryable) == (Reason.UPSTREAM_ERROR, True)


def test_a_call_that_takes_too_long_is_cancelled_at_the_server() -> None:
    link = Answering()
    with pytest.raises(Failed) as caught:
        call(link, 50)
    assert caught.value.reason is Reason.TIMEOUT
    assert link.sent[-1]["method"] == "notifications/cancelled"


def test_a_question_that_nobody_can_answer_is_refused_and_the_call_goes_on() -> None:
    link = Answering({"id": "q", "method": "roots/list"})
    with pytest.raises(Failed):
        call(link, 100)
    [refused] = [each for each in link.sent if each.get("id") == "q"]
    assert "does not offer roots/list" in refused["error"]["message"]
