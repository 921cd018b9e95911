"""What a server asks: answered where it belongs to one call, refused with the reason everywhere else."""

from __future__ import annotations

import asyncio
from typing import Any

from support.fake_upstream import FakeLink, connected

CALL = {"name": "echo", "arguments": {}}


def run(main: Any) -> Any:
    return asyncio.run(main())


def test_requests_of_the_server_that_nobody_can_answer_are_refused() -> None:
    async def main() -> None:
        link = FakeLink()
        connection = await connected(link)
        link.say({"id": "p", "method": "ping"})
        link.say({"id": "x", "method": "made/up"})
        link.say({"id": "r", "method": "roots/list"})
        assert [("result" in each, each["id"]) for each in link.sent] == [
            (True, "p"),
            (False, "x"),
            (False, "r"),
        ]
        assert "no call is under way" in link.sent[-1]["error"]["message"]
        assert not connection.is_busy

    run(main)


def test_with_several_calls_under_way_a_question_belongs_to_none() -> None:
    async def main() -> None:
        link = FakeLink()
        connection = await connected(link)
        calls = [connection.begin("tools/call", lambda _: dict(CALL), None) for _ in range(2)]
        link.say({"id": "r", "method": "roots/list"})
        assert "several calls" in link.sent[-1]["error"]["message"]
        link.say({"id": "s", "method": "roots/list"}, of=calls[1].number)
        assert [len(call.questions) for call in calls] == [0, 1]

    run(main)


def test_a_question_that_the_official_schema_does_not_allow_reaches_nobody() -> None:
    async def main() -> None:
        link = FakeLink()
        connection = await connected(link)
        call = connection.begin("tools/call", lambda _: dict(CALL), None)
        link.say({"id": "e", "method": "elicitation/create", "params": {"message": 5}})
        assert (link.sent[-1]["id"], link.sent[-1]["error"]["code"]) == ("e", -32602)
        assert call.questions == []

    run(main)
