"""States of a server's task: what is in them is checked before anybody uses it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from portbook.executors.mcp_server_tasks import asked_in, require_state, result_of_state
from portbook.protocol.revisions_and_methods import REVISIONS
from portbook.upstreams.connection_and_server_questions import UpstreamConnection
from portbook.upstreams.message_checks_and_meta import BadAnswer, RpcError
from support.fake_upstream import FakeLink, connected, text


def connection() -> UpstreamConnection:
    async def main() -> UpstreamConnection:
        made = await connected(FakeLink())
        made.agree(REVISIONS["2026-07-28"])
        return made

    return asyncio.run(main())


@pytest.mark.parametrize("status", [5, None, "resting", ["working"]])
def test_a_status_is_one_of_a_task(status: Any) -> None:
    with pytest.raises(BadAnswer) as caught:
        require_state({"status": status})
    assert caught.value.findings[0].pointer == "/status"


def test_the_result_of_a_task_is_that_of_its_tool() -> None:
    assert result_of_state(connection(), {"status": "completed", "result": text("x")})["content"]
    for state, pointer in (
        ({"status": "completed"}, "/result"),
        ({"status": "completed", "result": {"resultType": "task"}}, "/result/resultType"),
        ({"status": "completed", "result": {"content": 5}}, "/content"),
        ({"status": "failed", "error": {"code": "x", "message": "m"}}, "/error"),
        ({"status": "cancelled"}, "/status"),
    ):
        with pytest.raises(BadAnswer) as caught:
            result_of_state(connection(), state)
        assert caught.value.findings[0].pointer == pointer
    with pytest.raises(RpcError):
        result_of_state(connection(), {"status": "failed", "error": {"code": 1, "message": "m"}})


def test_what_a_task_asks_is_a_question() -> None:
    asked = {"q": {"method": "roots/list"}}
    assert asked_in(connection(), {"inputRequests": asked}) == asked
    for wrong in (["x"], {"q": 5}, {"q": {}}, {"q": {"method": "made/up"}}):
        with pytest.raises(BadAnswer):
            asked_in(connection(), {"inputRequests": wrong})
