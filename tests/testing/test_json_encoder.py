"""JSON of what a test gives, and the names of what is none."""

from __future__ import annotations

import enum
import uuid
from datetime import date
from typing import Any

import pytest

from portbook import NotJSON
from portbook.testing.json_encoder import json_of

HINT = "convert it first"


class Size(enum.Enum):
    LARGE = "L"


def arguments(value: Any) -> dict[str, Any]:
    return {"method": "tools/call", "params": {"arguments": {"customer": value}, "_meta": {}}}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (float("nan"), "/customer: JSON has no number that is not finite"),
        ({1, 2}, f"/customer: JSON cannot hold this set; {HINT}"),
        (date(2026, 1, 1), f"/customer: JSON cannot hold this datetime.date; {HINT}"),
        ([{"a/b": b""}], f"/customer/0/a~1b: JSON cannot hold this bytes; {HINT}"),
        ((1, date(2026, 1, 1)), f"/customer/1: JSON cannot hold this datetime.date; {HINT}"),
        ("\ud800", f"/customer: JSON cannot hold this str; {HINT}"),
        ({5: "five"}, "/customer: a key is int; JSON has keys of str alone"),
    ],
    ids=["nan", "set", "date", "inside", "tuple", "lone surrogate", "key"],
)
def test_what_is_not_json_is_named_with_its_place_and_type(value: Any, words: str) -> None:
    with pytest.raises(NotJSON) as raised:
        json_of(arguments(value))
    assert str(raised.value) == f"argument {words}"


def test_beside_arguments_the_place_is_that_in_the_message() -> None:
    with pytest.raises(NotJSON, match=f"^/params/_meta/day: JSON cannot hold this datetime.date; {HINT}"):
        json_of({"params": {"arguments": {}, "_meta": {"day": date(2026, 1, 1)}}})
    with pytest.raises(NotJSON, match=rf"^\(root\): JSON cannot hold this object; {HINT}"):
        json_of(object())


def test_what_contains_itself_is_nested_too_deeply() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(NotJSON, match="nested too deeply"):
        json_of(arguments(endless))


def test_what_json_can_hold_is_written() -> None:
    held = [1, 2**70, 0.5, None, (True,), Size.LARGE, uuid.UUID(int=0)]
    assert json_of({"held": held[:5]}) == b'{"held":[1,1180591620717411303424,0.5,null,[true]]}'
    assert json_of(held[5:]) == b'["L","00000000-0000-0000-0000-000000000000"]'
