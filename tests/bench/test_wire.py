from __future__ import annotations

import json
from typing import get_args

import pytest

from bench.child import WrongAnswer
from bench.wire import Dialect, check, frames


def answer(number: int, text: str) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": {"text": text}}).encode() + b"\n"


def test_answers_may_come_in_any_order() -> None:
    check(answer(2, "message 2") + answer(1, "message 1"), [1, 2])


@pytest.mark.parametrize(
    "answers",
    [
        answer(1, "message 1"),
        answer(1, "message 1") + answer(1, "message 1"),
        answer(1, "message 1") + answer(2, "message 3"),
        answer(1, "message 1") + b'{"jsonrpc":"2.0","id":2,"error":{"message":"message 2"}}\n',
    ],
    ids=["one is missing", "one came twice", "one is not its echo", "one is an error"],
)
def test_a_wrong_answer_stops_the_bench(answers: bytes) -> None:
    with pytest.raises(WrongAnswer):
        check(answers, [1, 2])


@pytest.mark.parametrize("dialect", get_args(Dialect))
def test_every_call_has_its_number_in_its_text(dialect: Dialect) -> None:
    for number, frame in zip([7, 8], frames(dialect, "echo", [7, 8], meta={"a": 1}), strict=True):
        assert json.loads(frame)["id"] == number
        assert f'"text":"message {number}"'.encode() in frame
        assert b'"_meta":{"a":1}' in frame


def test_items_are_followed_by_the_number() -> None:
    [frame] = frames("mcp", "echo_items", [7], items=["a"])
    assert json.loads(frame)["params"]["arguments"] == {"items": ["a", "message 7"]}
