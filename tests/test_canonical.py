"""One strict writer: equal values give equal bytes, and what JSON cannot hold is refused."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import hashlib
import json
import math
import struct
from collections.abc import Callable
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given, settings
from hypothesis import strategies as st

from portbook.canonical import (
    NotJSON,
    canonical_bytes,
    digest,
    fingerprint,
    is_same_json,
    jcs_bytes,
    json_bytes,
    rewritten_bytes,
)
from portbook.wire.parsing import parse
from support.counts import count


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


@pytest.mark.parametrize("write", [json_bytes, canonical_bytes, fingerprint, jcs_bytes, digest])
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


def canonical(test: Any) -> Any:
    return pytest.mark.soak("canonical forms")(settings(max_examples=count("canonical forms"))(test))


@canonical
@given(values)
def test_equal_values_have_equal_bytes_and_fingerprints_in_whatever_order_they_were_built(
    value: object,
) -> None:
    written = canonical_bytes(value)
    assert canonical_bytes(reordered(value)) == written
    assert canonical_bytes(parse(written)) == written
    assert fingerprint(reordered(value)) == fingerprint(value) == hashlib.sha256(written).hexdigest()


@canonical
@given(values)
def test_both_forms_are_read_again_as_the_value_and_are_of_equal_length(value: object) -> None:
    plain, canonical = json_bytes(value), canonical_bytes(value)
    assert repr(json.loads(plain)) == repr(value)
    assert json.loads(canonical) == value
    assert is_sorted_throughout(json.loads(canonical))
    assert len(plain) == len(canonical)


@canonical
@given(made_of(exact))  # floats have two spellings: 1e-6, and 1e-06 where a big integer is part of the value
def test_a_value_is_written_the_same_beside_a_big_integer(value: object) -> None:
    assert canonical_bytes([value, 2**64]) == b"[" + canonical_bytes(value) + b"," + b"%d]" % 2**64


@canonical
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


# --- RFC 8785


@pytest.mark.parametrize(
    ("bits", "written"),
    [  # RFC 8785, appendix B
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("ffefffffffffffff", "-1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("c340000000000000", "-9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("44b52d02c7e14af7", "1.0000000000000001e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef4f", "999999999999999900000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555553", "333333333.3333332"),
        ("41b3de4355555554", "333333333.33333325"),
        ("41b3de4355555555", "333333333.3333333"),
        ("41b3de4355555556", "333333333.3333334"),
        ("41b3de4355555557", "333333333.33333343"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_a_double_is_written_as_the_rfc_lists_it(bits: str, written: str) -> None:
    assert jcs_bytes(struct.unpack(">d", bytes.fromhex(bits))[0]).decode() == written


def test_keys_are_in_the_order_of_their_utf_16_code_units() -> None:
    # RFC 8785, 3.2.3: the emoji's first code unit is D83D, before FB33; by code points it would come after.
    keys = {"\u20ac": 1, "\r": 2, "\ufb33": 3, "1": 4, "\U0001f600": 5, "\u0080": 6, "\u00f6": 7}
    assert list(json.loads(jcs_bytes(keys))) == ["\r", "1", "\x80", "ö", "€", "😀", "\ufb33"]
    assert jcs_bytes([{"b": {}, "😀": [], "": 1.0}]) == '[{"":1,"b":{},"😀":[]}]'.encode()


def test_strings_are_escaped_as_the_rfc_says_on_both_ways_through_the_writer() -> None:
    text = "".join(map(chr, range(0x80))) + "\u2028é"
    assert jcs_bytes([text, 1]) == rfc8785.dumps([text, 1])
    assert jcs_bytes([text, 1.5]) == rfc8785.dumps([text, 1.5])


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (2**53 - 1, b"9007199254740991"),
        (2**53, b"9007199254740992"),
        (-(2**53), b"-9007199254740992"),
        (10**20, b"100000000000000000000"),
        (-123456789012345680000, b"-123456789012345680000"),
        (10**22, b"1e+22"),
    ],
)
def test_an_integer_beyond_2_to_the_53_is_written_where_the_form_spells_exactly_it(
    number: int, written: bytes
) -> None:
    assert jcs_bytes(number) == jcs_bytes(float(number)) == written


@pytest.mark.parametrize(
    "number", [2**53 + 1, -(2**53) - 1, 2**60, 1234567890123456789, 2**64 - 1, 10**23 + 1, 10**400]
)
def test_an_integer_that_would_be_rounded_has_no_digest(number: int) -> None:
    for value in (number, [number], {"a": {"b": number}}):
        with pytest.raises(NotJSON, match="write it as a string"):
            digest(value)
    assert json_bytes(number) == b"%d" % number


doubles = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
safe = made_of(st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | doubles.map(float) | text)


@canonical
@given(safe)
@example([{"\uffff": 1, "\U00010000": 2}])
@example(["12345678901234567", ",1.5", "[1e5"])
@example([-0.0, 1e21, 1e-7, 123456789012345680000.0])
def test_the_form_is_that_of_another_implementation(value: Any) -> None:
    written = jcs_bytes(value)
    assert written == rfc8785.dumps(value)
    assert digest(value) == hashlib.sha256(written).hexdigest()
    assert jcs_bytes(parse(written)) == written


@canonical
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_read_again_as_itself(number: float) -> None:
    assert float(jcs_bytes(number)) == number


@canonical
@given(
    st.integers() | st.integers(1, 999).flatmap(lambda head: st.integers(0, 40).map(lambda n: head * 10**n))
)
def test_of_any_integer_there_is_the_exact_form_or_none(number: int) -> None:
    try:
        written = jcs_bytes([number])
    except NotJSON:
        assert abs(number) > 2**53
    else:
        assert written == rfc8785.dumps([float(number)])
        assert decimal.Decimal(written[1:-1].decode()) == number


# -- numbers that are not finite, beside null


def _double(bits: int) -> float:
    return struct.unpack("<d", bits.to_bytes(8, "little"))[0]


_EXPONENT = 0x7FF << 52
not_finite = st.builds(
    lambda fraction, sign: _double(_EXPONENT | fraction | sign << 63),
    st.integers(0, 2**52 - 1),
    st.integers(0, 1),
)


@given(values, not_finite, st.integers(0, 2))
def test_a_number_that_is_not_finite_is_found_beside_null_wherever_it_is(
    value: Any, number: float, place: int
) -> None:
    whole: Any = [[value, None, number], {"a": None, "b": value, "c": number}, [None, [[{"x": number}]]]][
        place
    ]
    with pytest.raises(NotJSON):
        json_bytes(whole)


@given(values)
def test_what_was_written_is_written_again_alike(value: Any) -> None:
    assert rewritten_bytes({"content": None, "value": value}) == json_bytes({"content": None, "value": value})
