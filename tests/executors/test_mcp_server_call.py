"""Calls of a server's tools: refused where nothing was sent, failed where it was, cancelled where it ends."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from portbook.errors import Failed, Reason, Refused
from portbook.executors.mcp_server_call import McpServerExecutor
from portbook.model import Identity, InputNeeded, Run
from portbook.tools.catalog import Tool
from portbook.tools.spec import Effect, ToolSpec
from portbook.tools.upstream_entries import UpstreamEntry
from portbook.upstreams.connection_and_server_questions import UpstreamConnection
from portbook.upstreams.mcp_table import DeclaredUpstream
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


class LaterClient:
    """A client that answers with its next request."""

    answers_later = True

    def __init__(self) -> None:
        self.capabilities = {"roots": {}, "elicitation": {}}

    def lacks(self, request: Any) -> None:
        """Offer all."""

    async def end_round(self, requests: Any, memo: Any) -> None:
        raise InputNeeded(requests)


def call(link: FakeLink | None, timeout_ms: int = 5000, client: Any = None) -> Any:
    async def main() -> Any:
        fleet = {"s": Server(None if link is None else await connected(link))}
        entry, unused = UpstreamEntry("s", "echo", {}), cast("Any", None)
        tool = Tool(ToolSpec("s.echo", "", {}, True, Effect.READ, upstream=entry), unused, unused, "s__echo")
        run = Run(timeout_ms, Identity("r", "t", "0" * 32), reach=lambda: client)
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


class Asking(FakeLink):
    """Asks twice, one after the other, and then does `then`."""

    def __init__(self, then: dict[str, Any] | None = None) -> None:
        super().__init__()
        self._then = then

    def answer(self, message: dict[str, Any]) -> None:
        if message.get("method") == "tools/call":
            later = asyncio.get_running_loop().call_soon
            self.say({"id": "first", "method": "roots/list"})
            later(later, self.say, {"id": "second", "method": "roots/list"})
            if self._then is not None:
                later(later, self.say, {"id": message["id"], **self._then})


def test_what_a_server_asks_at_once_is_one_round_for_a_client_that_answers_later() -> None:
    with pytest.raises(InputNeeded) as caught:
        call(Asking(), client=LaterClient())
    assert list(caught.value.requests) == ["question_1", "question_2"]


def test_of_several_questions_those_are_asked_that_the_client_can_answer() -> None:
    sampling = {"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 5}
    questions = (
        {"id": "one", "method": "sampling/createMessage", "params": sampling},
        {"id": "two", "method": "roots/list"},
    )
    link = Answering(*questions)
    with pytest.raises(InputNeeded) as caught:
        call(link, client=LaterClient())
    assert [each["method"] for each in caught.value.requests.values()] == ["roots/list"]
    [refused] = [each for each in link.sent if each.get("id") == "one"]
    assert "may_ask does not allow sampling" in refused["error"]["message"]


def test_a_server_that_does_not_wait_for_its_answers_ends_the_call_without_a_round() -> None:
    link = Asking({"result": text("done")})
    assert call(link, client=LaterClient()) == text("done")
    refused = [each["error"]["message"] for each in link.sent if each.get("id") in ("first", "second")]
    assert refused == ["the call has ended", "the call has ended"]
