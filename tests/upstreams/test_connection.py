"""One connection to a server: its own request gets each answer, and nothing else of it is believed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from portbook.upstreams.answer_checks import BadAnswer, RpcError
from portbook.upstreams.transport import ConnectionLost, NotSent
from support.fake_upstream import FakeLink, Told, connected, text

CALL = {"name": "echo", "arguments": {}}


def run(main: Any) -> Any:
    return asyncio.run(main())


def test_answers_find_their_requests_in_any_order() -> None:
    async def main() -> None:
        link = FakeLink()
        connection = await connected(link)
        first = connection.begin("tools/call", lambda _: dict(CALL), None)
        second = connection.begin("tools/call", lambda _: dict(CALL), None)
        link.say({"id": second.number, "result": text("two")})
        link.say({"id": first.number, "result": text("one")})
        assert (await first.result)["content"][0]["text"] == "one"
        assert (await second.result)["content"][0]["text"] == "two"
        assert not connection.is_busy

    run(main)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ({"result": {"content": "a text"}}, BadAnswer),
        ({"result": 5}, BadAnswer),
        ({"error": {"code": -32000, "message": "no"}}, RpcError),
        ({"error": {"code": "x", "message": "no"}}, BadAnswer),
        ({"error": {"code": 1, "message": "no"}, "result": {}}, BadAnswer),
    ],
)
def test_an_answer_that_is_none_fails_its_request(answer: dict[str, Any], error: type[Exception]) -> None:
    async def main() -> None:
        link = FakeLink()
        connection = await connected(link)
        call = connection.begin("tools/call", lambda _: dict(CALL), None)
        link.say({"id": call.number, **answer})
        with pytest.raises(error):
            await call.result

    run(main)


def test_what_belongs_to_nothing_is_dropped_and_counted() -> None:
    async def main() -> None:
        link, told = FakeLink(), Told()
        connection = await connected(link, told)
        call = connection.begin("tools/call", lambda _: dict(CALL), None)
        for odd in ({"id": 99, "result": {}}, {"method": 5}, {"method": "notifications/made/up"}):
            link.say(odd)
        link.say(b"starting up...")
        link.say(b"[1]")
        assert len(told.odd) == 5
        assert not call.result.done()

    run(main)


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


def test_a_cancelled_call_is_cancelled_there_and_its_late_answer_dropped() -> None:
    async def main() -> None:
        link, told = FakeLink(), Told()
        connection = await connected(link, told)
        call = connection.begin("tools/call", lambda _: dict(CALL), None)
        connection.forget(call, is_cancelled=True)
        assert link.sent[-1]["method"] == "notifications/cancelled"
        assert link.sent[-1]["params"]["requestId"] == call.number
        assert link.abandoned == [call.number]
        link.say({"id": call.number, "result": text("late")})
        assert told.odd == ["it answered a request that is not open"]

    run(main)


def test_when_the_server_is_gone_every_request_fails_and_none_is_sent() -> None:
    async def main() -> None:
        link, told = FakeLink(), Told()
        connection = await connected(link, told)
        call = connection.begin("tools/call", lambda _: dict(CALL), None)
        connection.lost("its process ended")
        with pytest.raises(ConnectionLost, match="ended"):
            await call.result
        with pytest.raises(NotSent):
            connection.begin("tools/call", lambda _: dict(CALL), None)
        connection.lost("again")
        assert told.lost == ["its process ended"]

    run(main)


def test_what_the_official_schema_forbids_is_not_sent() -> None:
    async def main() -> None:
        link = FakeLink()
        connection = await connected(link)
        with pytest.raises(BadAnswer):
            connection.begin("tools/call", lambda _: {"name": 5}, None)
        assert link.sent == []

    run(main)


def test_changed_lists_and_resources_are_told() -> None:
    async def main() -> None:
        link, told = FakeLink(), Told()
        await connected(link, told)
        link.say({"method": "notifications/tools/list_changed"})
        link.say({"method": "notifications/resources/updated", "params": {"uri": "a://b"}})
        assert [method for method, _ in told.changed] == [
            *("notifications/tools/list_changed", "notifications/resources/updated")
        ]

    run(main)
