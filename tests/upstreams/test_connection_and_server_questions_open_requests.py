"""Requests under way: each taken once, and each message of the server with the call that it belongs to."""

from __future__ import annotations

import asyncio
from typing import Any

from portbook.model import Identity, Run
from portbook.upstreams.connection_and_server_questions import OpenRequest, OpenRequests
from portbook.upstreams.running_call import RunningCall, UpstreamQuestion


def opened(*numbers: int, aside: tuple[int, ...] = (), tasks: dict[int, str] | None = None) -> Any:
    async def main() -> tuple[OpenRequests, dict[int, RunningCall]]:
        requests, calls = OpenRequests(), dict[int, RunningCall]()
        for number in (*numbers, *aside):
            result = asyncio.get_running_loop().create_future()
            calls[number] = RunningCall(number, None, result, (tasks or {}).get(number))
            requests.put(OpenRequest("tools/call", calls[number], number in aside))
        return requests, calls

    return asyncio.run(main())


def test_a_request_is_taken_once_by_its_number_alone() -> None:
    requests, calls = opened(1)
    for other in ("1", True, None, 2):
        assert requests.take(other) is None
    assert requests.take(1).call is calls[1]
    assert requests.take(1) is None


def test_a_message_belongs_to_its_stream_then_to_its_task_then_to_the_only_call() -> None:
    requests, calls = opened(1, 2, aside=(3,), tasks={2: "t"})
    of_task = {"_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t"}}}
    assert requests.call_of(1, of_task) is calls[1]
    assert requests.call_of(None, of_task) is calls[2]
    assert requests.call_of(None, {}) is calls[1]
    requests.take(2)
    assert requests.call_of(9, {}) is calls[1]


def test_progress_belongs_to_the_first_request_of_its_call() -> None:
    requests, calls = opened(1, 2)
    calls[2].token = 7
    assert [requests.call_under(token) for token in (1, 7, "1", True)] == [calls[1], calls[2], None, None]


def test_what_is_aside_keeps_no_server_busy() -> None:
    assert not opened(aside=(1,))[0].is_busy
    assert opened(1)[0].is_busy


def test_a_question_is_of_the_call_that_waits_for_no_answer_if_all_are_of_one_client() -> None:
    for sessions, is_known in ((("s", "s"), True), (("s", "t"), False)):
        requests, calls = opened(1, 2)
        for number, session in zip(calls, sessions, strict=True):
            calls[number].continue_for(Run(1000, Identity("r", "t", "s"), session=session))
        calls[1].ask(UpstreamQuestion({"method": "roots/list"}, lambda _: None, lambda _: None))
        assert requests.only() is (calls[2] if is_known else None)
        calls[1].end_round()
        calls[2].ask(UpstreamQuestion({"method": "roots/list"}, lambda _: None, lambda _: None))
        assert requests.only() is (calls[2] if is_known else None), "it may ask for more at once"
        for asked in (*calls[1].take_questions(), *calls[2].take_questions()):
            asked.answer({})
        assert requests.only() is None


def test_of_the_calls_of_one_client_a_question_that_names_no_task_is_of_none() -> None:
    requests, calls = opened(1, 2, tasks={1: "t"})
    assert requests.only() is calls[2]
    requests.take(2)
    assert requests.only() is calls[1]
