"""JSON documents of vendors: one value that no program can hold costs itself, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.apis.openapi.document_files import parse_json
from portbook.errors import Refused


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1e999, "b": -1E+999, "c": 1.5}', {"a": None, "b": None, "c": 1.5}),
        (f'{{"a": {"9" * 5000}, "b": {2**70}}}', {"a": None, "b": 2**70}),
        (r'{"a": "x\ud800y", "b": ["\udc00", ["\ud83d\ude00", 1]]}', {"a": "x�y", "b": ["�", ["😀", 1]]}),
        (r'{"\ud800": {"\udfff": "ä"}}', {"�": {"�": "ä"}}),
    ],
)
def test_a_value_that_no_program_can_hold_is_read_harmlessly(text: str, expected: Any) -> None:
    assert parse_json(text.encode()) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (r'{"a": "\ud800", "b": 1, "b": 2}', "half of a surrogate pair"),
        (r'{"a": "\ud800", "\udc00": 1, "\udc01": 2}', "half of a surrogate pair"),
        ('{"a": 1e999, "b": NaN}', "JSON value is expected"),
        ('{"a": 1e999, "b": Infinity}', "JSON value is expected"),
        (r'{"a": "\ud800", "b": ' + "[" * 300 + "]" * 300 + "}", "half of a surrogate pair"),
        (r'{"a": "\ud800", "b": ' + "[" * 100_000, "half of a surrogate pair"),
        ('{"a": 1e999,}', "trailing comma"),
        ('{"a": 1, "a": 2}', "same key twice"),
    ],
)
def test_every_other_rule_holds_beside_it(text: str, message: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_json(text.encode())
    assert message in caught.value.findings[0].message


def test_bytes_that_are_no_text_are_refused() -> None:
    for data in (b'{"a": 1e999, "b": "\xff"}', b'\xef\xbb\xbf{"a": 1e999}'):
        with pytest.raises(Refused):
            parse_json(data)
