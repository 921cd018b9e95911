"""A request under way: what comes before its answer goes to its caller's client."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from portbook.model import Identity, Run
from portbook.upstreams.running_call import RunningCall, UpstreamQuestion


class Client:
    def __init__(self, level: str) -> None:
        self.level = level
        self.logged: list[Any] = []

    def hears(self, level: str) -> bool:
        return level == self.level

    def log(self, level: str, data: Any, logger: str | None) -> None:
        self.logged.append((level, data.finish(), logger))


def call_with(**run: Any) -> RunningCall:
    result: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    return RunningCall(1, Run(1000, Identity("r", "t", "s"), **run), result)


def test_progress_goes_to_whoever_asked_for_it() -> None:
    async def main() -> None:
        told: list[Any] = []
        call = call_with(report=lambda *each: told.append(each))
        call.progress({"progress": 1, "total": 2, "message": "half"})
        call.progress({"progress": 2})
        assert told == [(1, 2, "half"), (2, None, None)]
        call_with().progress({"progress": 1})

    asyncio.run(main())


def test_logs_go_to_clients_that_want_their_level() -> None:
    async def main() -> None:
        client = Client("warning")
        call = call_with(reach=lambda: client)
        for level in ("info", "warning", "made-up"):
            call.log({"level": level, "data": {"a": 1}, "logger": "x"})
        assert client.logged == [("warning", {"a": 1}, "x")]

    asyncio.run(main())


def test_what_is_reported_between_two_rounds_goes_to_the_second_in_order() -> None:
    async def main() -> None:
        first, second, client = list[Any](), list[Any](), Client("warning")
        call = call_with(report=lambda *each: first.append(each), reach=lambda: client)
        call.progress({"progress": 1})
        call.end_round()
        call.progress({"progress": 2})
        for level in ("info", "warning"):
            call.log({"level": level, "data": "kept"})
        assert client.logged == []
        run = Run(
            1000, Identity("r", "t", "s"), report=lambda *each: second.append(each), reach=lambda: client
        )
        call.continue_for(run)
        call.progress({"progress": 3})
        assert (first, second) == ([(1, None, None)], [(2, None, None), (3, None, None)])
        assert client.logged == [("warning", "kept", None)]

    asyncio.run(main())


@pytest.mark.parametrize("what", ["result", "error", "question", "nothing"])
def test_whoever_runs_a_call_hears_of_its_end_and_of_questions(what: str) -> None:
    async def main() -> None:
        call = call_with()
        happen: dict[str, Any] = {
            "result": lambda: call.settle({}),
            "error": lambda: call.fail(ValueError("x")),
            "question": lambda: call.ask(UpstreamQuestion({}, lambda _: None, lambda _: None)),
            "nothing": lambda: None,
        }
        asyncio.get_running_loop().call_soon(happen[what])
        is_heard = await call.hear(0.05 if what == "nothing" else 20)
        assert is_heard is (what != "nothing")
        assert call.result.done() is (what in ("result", "error"))
        if what == "error":
            assert isinstance(call.result.exception(), ValueError)

    asyncio.run(main())


def test_questions_wait_within_limits_and_are_taken_once() -> None:
    async def main() -> None:
        call, refused = call_with(), []
        question = UpstreamQuestion({"method": "roots/list"}, lambda _: None, refused.append)
        for _ in range(17):
            call.ask(question)
        assert refused == ["too much is asked at once"]
        assert len(call.take_questions()) == 16
        assert call.take_questions() == []

    asyncio.run(main())


def test_what_was_asked_and_waits_is_refused_when_the_call_ends() -> None:
    async def main() -> None:
        for end in (lambda call: call.settle({}), lambda call: call.fail(ValueError())):
            call, refused = call_with(), list[str]()
            call.ask(UpstreamQuestion({"method": "roots/list"}, lambda _: None, refused.append))
            end(call)
            assert (refused, call.questions) == (["the call has ended"], [])

    asyncio.run(main())
