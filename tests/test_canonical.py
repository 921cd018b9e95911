"""One strict writer: equal values give equal bytes, and what JSON cannot hold is refused."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import hashlib
import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from portbook.canonical import NotJSON, canonical_bytes, fingerprint, is_same_json, json_bytes
from portbook.wire.parsing import parse


class Text(str):
    __slots__ = ()


class Whole(int):
    pass


class Real(float):
    pass


class Members(dict[str, Any]):
    pass


class Items(list[Any]):
    pass


@dataclasses.dataclass
class Point:
    x: int


Pair = collections.namedtuple("Pair", "a b")  # noqa: PYI024 - the plainest subclass of tuple


def nested(depth: int, inner: object, *, in_objects: bool = False) -> object:
    for _ in range(depth):
        inner = {"a": inner} if in_objects else [inner]
    return inner


def circle() -> list[Any]:
    made: list[Any] = []
    made.append(made)
    return made


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        case("null", None, b"null"),
        case("booleans", [True, False], b"[true,false]"),
        case("integers", [0, -1, 2**53 + 1], b"[0,-1,9007199254740993]"),
        case("the edges of 64 bits", [2**64 - 1, -(2**63)], b"[18446744073709551615,-9223372036854775808]"),
        case("2^64", 2**64, b"18446744073709551616"),
        case("-2^63 - 1", -(2**63) - 1, b"-9223372036854775809"),
        case("a float that is whole", 1.0, b"1.0"),
        case("minus zero", -0.0, b"-0.0"),
        case("a float", 0.1, b"0.1"),
        case(
            "a string is UTF-8, not escaped",
            "é\u2028\N{GRINNING FACE}",
            '"é\u2028\N{GRINNING FACE}"'.encode(),
        ),
        case("what must be escaped is", '"\\\n\x00\x1f', b'"\\"\\\\\\n\\u0000\\u001f"'),
        case("what need not be escaped is not", "/\x7f", b'"/\x7f"'),
        case("a tuple is an array", (1, (2,)), b"[1,[2]]"),
        case("empty containers", [{}, [], ()], b"[{},[],[]]"),
        case("keys are sorted", {"b": 1, "a": 2, "B": 3, "": 4}, b'{"":4,"B":3,"a":2,"b":1}'),
        case("keys are sorted deep inside", [{"z": {"b": 1, "a": 2}}], b'[{"z":{"a":2,"b":1}}]'),
        case(
            "keys are sorted by code point",
            {"\uffff": 1, "\N{GRINNING FACE}": 2},
            '{"\uffff":1,"😀":2}'.encode(),
        ),
        case(
            "keys beside a big integer are sorted too",
            {"b": 2**64, "a": 1},
            b'{"a":1,"b":18446744073709551616}',
        ),
        case("the word null in a string", ["null"], b'["null"]'),
        case("the word null in a key", {"null": 1.5}, b'{"null":1.5}'),
    ],
)
def test_the_canonical_form_is_compact_and_sorted(value: object, written: bytes) -> None:
    assert canonical_bytes(value) == written


def test_the_plain_form_keeps_the_order_it_was_given() -> None:
    assert json_bytes({"b": 1, "a": [2, None]}) == b'{"b":1,"a":[2,null]}'
    assert json_bytes({"b": 2**64, "a": 1}) == b'{"b":18446744073709551616,"a":1}'


@pytest.mark.parametrize("digits", [20, 100, 4299, 4300])
def test_integers_are_written_exactly(digits: int) -> None:
    number = int("9" * digits)
    assert canonical_bytes([number, -number]) == b"[%d,-%d]" % (number, number)


REFUSED = [
    case("NaN", math.nan),
    case("infinity", math.inf),
    case("minus infinity", -math.inf),
    case("a set", {1}),
    case("bytes", b"x"),
    case("a bytearray", bytearray(b"x")),
    case("a complex number", 1j),
    case("a decimal", decimal.Decimal(1)),
    case("a dataclass", Point(1)),
    case("a datetime", dt.datetime(2024, 1, 1, tzinfo=dt.UTC)),
    case("a date", dt.date(2024, 1, 1)),
    case("a time", dt.time(1)),
    case("a subclass of str", Text("x")),
    case("a subclass of int", Whole(1)),
    case("a subclass of float", Real(1)),
    case("a subclass of dict", Members()),
    case("a subclass of list", Items()),
    case("a named tuple", Pair(1, 2)),
    case("a generator", (item for item in ())),
    case("a function", len),
    case("a class", int),
    case("an ellipsis", ...),
    case("a lone high surrogate", "\ud800"),
    case("a lone low surrogate", "a\udc00b"),
    case("a lone surrogate in a key", {"\ud800": 1}),
    case("a number as a key", {1: 1}),
    case("null as a key", {None: 1}),
    case("a boolean as a key", {True: 1}),
    case("a tuple as a key", {(1,): 1}),
    case("a subclass of str as a key", {Text("x"): 1}),
    case("4,301 digits", 10**4300),
    case("a value in itself", circle()),
    case("300 arrays", nested(300, 1)),
    case("300 objects", nested(300, 1, in_objects=True)),
    case("300 arrays around null", nested(300, None)),
    case("300 arrays around a big integer", nested(300, 2**64)),
    case("100,000 arrays", nested(100_000, 1)),
    case("100,000 objects", nested(100_000, {}, in_objects=True)),
]


@pytest.mark.parametrize("write", [json_bytes, canonical_bytes, fingerprint])
@pytest.mark.parametrize("value", REFUSED)
def test_what_json_cannot_hold_is_refused_wherever_it_stands(
    value: object, write: Callable[[object], object]
) -> None:
    # A null or a big integer beside it takes the writer down another road to the same verdict.
    for around in (
        value,
        [value],
        {"a": value},
        [None, value],
        [value, None],
        [2**64, value],
        [value, 2**64],
    ):
        with pytest.raises(NotJSON):
            write(around)


def test_a_refusal_says_nothing_of_the_value() -> None:
    for value in (
        Text("canary"),
        {"canary": {1}},
        {Text("canary"): 1},
        ["canary", math.nan],
        [2**64, "canary\ud800"],
    ):
        with pytest.raises(NotJSON) as raised:
            json_bytes(value)
        assert "canary" not in str(raised.value)


def test_what_the_parser_takes_the_writer_takes() -> None:
    for frame in (
        b"[" * 201 + b"]" * 201,
        b"[" * 200 + b"null" + b"]" * 200,
        b"[" * 200 + b"9" * 4300 + b"]" * 200,
    ):
        assert json_bytes(parse(frame)) == frame


# --- properties


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
exact = st.one_of(
    st.none(), st.booleans(), st.integers(), st.integers(min_value=2**64, max_value=2**80), text
)


def made_of(scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        scalars,
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(text, inner, max_size=5)),
        max_leaves=12,
    )


values = made_of(exact | st.floats(allow_nan=False, allow_infinity=False))


def reordered(value: Any) -> Any:
    """The same value, every object's members the other way round."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(value)}
    return [reordered(item) for item in value] if isinstance(value, list) else value


def is_sorted_throughout(value: Any) -> bool:
    if isinstance(value, dict):
        return list(value) == sorted(value) and all(map(is_sorted_throughout, value.values()))
    return all(map(is_sorted_throughout, value)) if isinstance(value, list) else True


@settings(deadline=None)
@given(values)
def test_equal_values_have_equal_bytes_and_fingerprints_in_whatever_order_they_were_built(
    value: object,
) -> None:
    written = canonical_bytes(value)
    assert canonical_bytes(reordered(value)) == written
    assert canonical_bytes(parse(written)) == written
    assert fingerprint(reordered(value)) == fingerprint(value) == hashlib.sha256(written).hexdigest()


@settings(deadline=None)
@given(values)
def test_both_forms_are_read_again_as_the_value_and_are_of_equal_length(value: object) -> None:
    plain, canonical = json_bytes(value), canonical_bytes(value)
    assert repr(json.loads(plain)) == repr(value)
    assert json.loads(canonical) == value
    assert is_sorted_throughout(json.loads(canonical))
    assert len(plain) == len(canonical)


@settings(deadline=None)
@given(made_of(exact))  # floats have two spellings: 1e-6, and 1e-06 where a big integer is part of the value
def test_a_value_is_written_the_same_beside_a_big_integer(value: object) -> None:
    assert canonical_bytes([value, 2**64]) == b"[" + canonical_bytes(value) + b"," + b"%d]" % 2**64


@settings(deadline=None)
@given(values, values)
def test_different_values_have_different_fingerprints(one: object, other: object) -> None:
    # By what they spell: to Python 1, 1.0 and True are equal, to JSON they are not.
    assert (fingerprint(one) == fingerprint(other)) == (
        json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    )


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        ({"a": 1, "b": [2]}, {"b": [2], "a": 1}, True),
        ({"a": 1}, {"a": 1.0}, False),
        ([0], [False], False),
        ([0.0], [-0.0], False),
        ([2**64], [2**64], True),
        ([2**64], [2**64 + 1], False),
        (None, None, True),
    ],
)
def test_two_values_are_the_same_where_json_writes_them_so(one: object, other: object, verdict: bool) -> None:
    assert is_same_json(one, other) is verdict
