"""One connection to a server: its own request gets each answer, and nothing else of it is believed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from portbook.protocol.revisions_and_methods import REVISIONS
from portbook.upstreams import connection_and_server_questions as module
from portbook.upstreams.message_checks_and_meta import BadAnswer, RpcError
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


@pytest.mark.parametrize(
    ("line", "fails"),
    [
        (b'{"jsonrpc":"2.0","id":%d,"result":{"n":1,"n":2}}', True),
        (b'{"result":{"n":1e400},"jsonrpc":"2.0","id": %d}', True),
        (b'{"jsonrpc":"2.0","id":%d.5,"result":{"n":1,"n":2}}', False),
        (b'{"jsonrpc":"2.0","result":{"n":1,"n":2}}', False),
    ],
)
def test_an_unreadable_answer_fails_the_request_that_it_names(line: bytes, fails: bool) -> None:
    async def main() -> None:
        link = FakeLink()
        connection = await connected(link)
        first, second = (connection.begin("tools/call", lambda _: dict(CALL), None) for _ in range(2))
        link.say(line % second.number if b"%d" in line else line)
        assert (first.result.done(), second.result.done()) == (False, fails)
        if fails:
            with pytest.raises(BadAnswer):
                await second.result

    run(main)


def test_a_request_aside_that_is_never_answered_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ASIDE_S", 0.0)
    monkeypatch.setattr(module, "_MAX_OPEN", 2)

    async def main() -> None:
        connection = await connected(FakeLink())
        stream = connection.request_aside("subscriptions/listen", {}, is_stream=True)
        assert stream is not None
        for _ in range(5):
            call = connection.request_aside("tasks/cancel", {"taskId": "t"})
            assert call is not None
            await asyncio.wait((call.result,))
        assert not stream.result.done()
        connection.begin("tools/call", lambda _: dict(CALL), None)

    run(main)


def test_an_unreadable_list_fails_at_once() -> None:
    async def main() -> None:
        link = FakeLink()
        connection = await connected(link)
        listing = asyncio.ensure_future(connection.request("tools/list", {}, 30))
        await asyncio.sleep(0)
        link.say(b'{"jsonrpc":"2.0","result":{"tools":1,"tools":2}}')
        with pytest.raises(BadAnswer):
            await listing

    run(main)


def test_a_batch_is_taken_in_the_one_revision_that_has_them() -> None:
    async def main() -> None:
        for revision, is_taken in (("2025-03-26", True), ("2025-06-18", False)):
            link = FakeLink()
            connection = await connected(link)
            connection.agree(REVISIONS[revision])
            call = connection.begin("tools/call", lambda _: dict(CALL), None)
            link.say(json.dumps([{"jsonrpc": "2.0", "id": call.number, "result": text("x")}]).encode())
            assert (call.result.exception() is None) == is_taken

    run(main)
