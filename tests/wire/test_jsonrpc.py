"""JSON-RPC around a message: its id token for token, its structure, and the frames that go back."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.errors import REASONS, Failed, Finding, Reason, Refused
from portbook.model import JSON
from portbook.wire.jsonrpc import (
    MAX_ID_BYTES,
    NO_ID,
    Id,
    error_frame,
    generic_error,
    nobody_waits,
    not_an_object,
    problem_of,
    read_id,
    refuse_structure,
    result_frame,
)
from portbook.wire.parsing import parse
from portbook.wire.violations import violations


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


def id_of(frame: bytes) -> Id:
    message = parse(frame)
    assert isinstance(message, dict)
    return read_id(message, frame)


def message_of(frame: bytes) -> dict[str, JSON]:
    message = parse(frame)
    assert isinstance(message, dict)
    return message


# --- the id


TOKENS = [
    case("an integer", b"7"),
    case("a negative integer", b"-7"),
    case("zero", b"0"),
    case("minus zero", b"-0"),
    case("a float that is whole", b"1.0"),
    case("a float with zeros", b"1.500"),
    case("zero as a float", b"0.0"),
    case("minus zero as a float", b"-0.0"),
    case("an exponent", b"1e2"),
    case("a capital exponent with a plus", b"1E+02"),
    case("too small for a double", b"1e-999"),
    case("2^53 + 1", b"9007199254740993"),
    case("2^64", b"18446744073709551616"),
    case("a big negative integer", b"-" + b"9" * 200),
    case("more digits than a double has", b"0.1000000000000000055511151231257827"),
    case("a string", b'"abc"'),
    case("the empty string", b'""'),
    case("the string id", b'"id"'),
    case("a string that looks like a number", b'"1"'),
    case("a string of brackets, commas and colons", b'"}{][,:"'),
    case("a string of white space", b'"  "'),
    case("UTF-8", '"é\u2028\N{GRINNING FACE}"'.encode()),
    case("an escaped quote", rb'"a\"b"'),
    case("an escaped backslash", rb'"a\\"'),
    case("an escaped backslash before a quote", rb'"\\\""'),
    case("a needless escape", rb'"\u0061"'),
    case("an escape in capitals", rb'"\u00E9"'),
    case("an escaped solidus", rb'"a\/b"'),
    case("an escaped surrogate pair", rb'"\ud83d\ude00"'),
    case("an escaped newline", rb'"a\nb"'),
    case("an escaped NUL", rb'"\u0000"'),
    case("exactly 256 bytes", b'"' + b"x" * (MAX_ID_BYTES - 2) + b'"'),
    case("exactly 256 digits", b"1" * MAX_ID_BYTES),
]

PLACES = [
    case("alone", b'{"id":%s}'),
    case("first", b'{"id":%s,"jsonrpc":"2.0","method":"m"}'),
    case("last", b'{"jsonrpc":"2.0","method":"m","params":{},"id":%s}'),
    case("in the middle", b'{"jsonrpc":"2.0","id":%s,"method":"m"}'),
    case("among white space", b' {\t"id"\r:  %s , "method" : "m" } \r'),
    case("an escaped key", rb'{"method":"m","\u0069d":%s}'),
    case("a wholly escaped key", rb'{"\u0069\u0064":%s,"method":"m"}'),
    case("after an object with an id", b'{"params":{"id":"inner","a":{"id":0.0}},"id":%s}'),
    case("before an object with an id", b'{"id":%s,"params":{"id":0.0,"a":[{"id":"inner"}]}}'),
    case("after an array with the word", b'{"params":["id",0.0,["id"],{"id":-0}],"id":%s}'),
    case("after empty containers", b'{"a":{},"b":[],"c":[[],{}],"id":%s}'),
    case("after a value that says id", rb'{"a":"id","b":"\u0069d","c":"\"id\":9.0","id":%s}'),
    case("after literals and numbers", b'{"a":null,"b":true,"c":-1.5e3,"d":false,"id":%s}'),
    case("after a string of brackets", rb'{"a":"{[\"","b":"\\","id":%s}'),
    case("after keys that only look alike", rb'{"ID":0.0,"Id":1.0,"id ":2.0,"\u0131d":3.0,"id":%s}'),
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("token", TOKENS)
def test_an_id_is_echoed_token_for_token_wherever_it_stands(token: bytes, place: bytes) -> None:
    assert id_of(place % token) == token


@pytest.mark.parametrize(
    ("token", "problem"),
    [
        case("null", b"null", "must be a string or a number"),
        case("true", b"true", "must be a string or a number"),
        case("false", b"false", "must be a string or a number"),
        case("an array", b"[1]", "must be a string or a number"),
        case("an empty object", b"{}", "must be a string or a number"),
        case("an object with an id", b'{"id":1}', "must be a string or a number"),
        case("257 bytes of string", b'"' + b"x" * (MAX_ID_BYTES - 1) + b'"', "longer than 256 bytes"),
        case("257 bytes of UTF-8", ('"' + "é" * 127 + 'x"').encode(), "longer than 256 bytes"),
        case("257 bytes of escapes", b'"' + rb"\u0061" * 42 + b'abc"', "longer than 256 bytes"),
        case("257 digits", b"1" * (MAX_ID_BYTES + 1), "longer than 256 bytes"),
        case("256 digits and a minus", b"-" + b"1" * MAX_ID_BYTES, "longer than 256 bytes"),
        case("257 digits of fraction", b"0." + b"1" * (MAX_ID_BYTES - 1), "longer than 256 bytes"),
        case("4,300 digits", b"1" * 4300, "longer than 256 bytes"),
        case("a megabyte", b'"' + b"x" * 1_000_000 + b'"', "longer than 256 bytes"),
    ],
)
@pytest.mark.parametrize("place", PLACES)
def test_an_id_that_cannot_be_echoed_is_answered_as_null(token: bytes, problem: str, place: bytes) -> None:
    found = id_of(place % token)
    assert found == b"null"
    assert found is not NO_ID
    assert str(problem_of(found)).startswith(problem)


def test_a_message_without_an_id_has_none_to_echo() -> None:
    assert id_of(b'{"method":"m","params":{"id":1}}') is NO_ID
    assert (bytes(NO_ID), problem_of(NO_ID), problem_of(b"1")) == (b"null", None, None)


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), words
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.just("id"), words), inner, max_size=3),
    ),
    max_leaves=8,
)


@st.composite
def string_tokens(draw: st.DrawFn) -> str:
    """A string of JSON, each character in one of the ways it can be written."""
    short = {'"': r"\"", "\\": r"\\", "/": r"\/", "\n": r"\n", "\t": r"\t"}
    written: list[str] = []
    for character in draw(words):
        units = character.encode("utf-16-be").hex()
        escaped = "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
        spellings = [escaped, escaped.upper().replace("\\U", "\\u"), short.get(character, escaped)]
        if character >= " " and character not in '"\\':
            spellings.append(character)
        written.append(draw(st.sampled_from(spellings)))
    return '"' + "".join(written) + '"'


number_tokens = st.from_regex(r"-?(0|[1-9][0-9]{0,30})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,2})?", fullmatch=True)
spaces = st.text(" \t\r", max_size=2)


@given(
    st.dictionaries(words.filter(lambda key: key != "id"), values, max_size=4),
    st.one_of(string_tokens(), number_tokens.filter(str.isascii)),
    st.sampled_from(['"id"', r'"\u0069d"', r'"i\u0064"', r'"\u0069\u0064"']),
    st.integers(0, 4),
    spaces,
    st.booleans(),
)
def test_any_id_in_any_place_of_any_message_is_echoed_token_for_token(
    others: dict[str, object], token: str, key: str, place: int, space: str, is_ascii: bool
) -> None:
    members = [
        json.dumps(name, ensure_ascii=is_ascii) + space + ":" + json.dumps(value, ensure_ascii=is_ascii)
        for name, value in others.items()
    ]
    members.insert(place, f"{space}{key}:{space}{token}{space}")
    frame = ("{" + ",".join(members) + "}").encode()
    assert id_of(frame) == token.encode()


@pytest.mark.parametrize(
    "filler",
    [
        case("plain", b"x" * 1_000_000),
        case("escapes", rb"\n" * 500_000),
        case("escaped quotes", rb"\"" * 500_000),
    ],
)
def test_finding_an_id_behind_a_megabyte_of_string_takes_no_memory_to_speak_of(filler: bytes) -> None:
    frame = b'{"params":"' + filler + rb'","id":"\u0061"}'
    message = message_of(frame)
    tracemalloc.start()
    try:
        assert read_id(message, frame) == rb'"\u0061"'
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * len(frame)


# --- the structure


REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"m","params":{}}'


def refusal_of(frame: bytes) -> Refused | None:
    return refuse_structure(message_of(frame), id_of(frame))


@pytest.mark.parametrize(
    "frame",
    [
        case("a request", REQUEST),
        case("a notification", b'{"jsonrpc":"2.0","method":"m"}'),
        case("without params", b'{"jsonrpc":"2.0","id":"a","method":"m"}'),
        case("with params in an array", b'{"jsonrpc":"2.0","id":1.5,"method":"m","params":[1]}'),
        case("with the empty method", b'{"jsonrpc":"2.0","id":1,"method":""}'),
        case("with members of its own", b'{"jsonrpc":"2.0","id":1,"method":"m","x":1,"Result":1}'),
    ],
)
def test_a_request_or_a_notification_is_not_refused(frame: bytes) -> None:
    assert refusal_of(frame) is None


@pytest.mark.parametrize(
    ("frame", "pointer"),
    [
        case("an empty object", b"{}", "/jsonrpc"),
        case("version 1.0", b'{"jsonrpc":"1.0","id":1,"method":"m"}', "/jsonrpc"),
        case("a version that is a number", b'{"jsonrpc":2.0,"id":1,"method":"m"}', "/jsonrpc"),
        case("a version with a space", b'{"jsonrpc":"2.0 ","id":1,"method":"m"}', "/jsonrpc"),
        case("the version before the id", b'{"id":true,"method":1}', "/jsonrpc"),
        case("an id of null", b'{"jsonrpc":"2.0","id":null,"method":"m"}', "/id"),
        case("an id that is an array", b'{"jsonrpc":"2.0","id":[],"method":"m"}', "/id"),
        case("the id before the method", b'{"jsonrpc":"2.0","id":false,"method":1}', "/id"),
        case("no method", b'{"jsonrpc":"2.0","id":1}', "/method"),
        case("a method that is a number", b'{"jsonrpc":"2.0","id":1,"method":1}', "/method"),
        case("a method of null", b'{"jsonrpc":"2.0","id":1,"method":null}', "/method"),
        case(
            "a key that only starts with method", rb'{"jsonrpc":"2.0","id":1,"method\u0000":"m"}', "/method"
        ),
        case("a result beside the method", b'{"jsonrpc":"2.0","id":1,"method":"m","result":{}}', "/result"),
        case("a result of null", b'{"jsonrpc":"2.0","id":1,"method":"m","result":null}', "/result"),
        case("an error beside the method", b'{"jsonrpc":"2.0","id":1,"method":"m","error":{}}', "/error"),
        case("a result beside an error", b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', "/error"),
    ],
)
def test_what_is_no_request_is_refused_at_the_first_flaw(frame: bytes, pointer: str) -> None:
    refused = refusal_of(frame)
    assert refused is not None
    assert refused.reason is Reason.NOT_JSONRPC
    (finding,) = refused.findings
    assert (finding.pointer, finding.keyword) == (pointer, "jsonrpc")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        case("a batch", [{"jsonrpc": "2.0"}], "batch"),
        case("an empty batch", [], "batch"),
        case("a string", "x", "object"),
        case("a number", 1, "object"),
        case("null", None, "object"),
        case("true", True, "object"),
    ],
)
def test_what_is_no_object_is_refused_as_such(message: JSON, words: str) -> None:
    refused = not_an_object(message)
    assert refused.reason is Reason.NOT_JSONRPC
    (finding,) = refused.findings
    assert finding.pointer == ""
    assert words in finding.message


@pytest.mark.parametrize(
    ("frame", "is_silent"),
    [
        case("a request", REQUEST, False),
        case("a request with a bad id", b'{"method":"m","id":null}', False),
        case("a notification", b'{"method":"m"}', True),
        case("a notification of a broken kind", b'{"method":"m","params":1,"jsonrpc":1}', True),
        case("a method that is no string", b'{"method":1}', False),
        case("a result", b'{"id":1,"result":{}}', True),
        case("an error", b'{"id":1,"error":{}}', True),
        case("an error without id", b'{"id":null,"error":null}', True),
        case("a request that has a result too", b'{"id":1,"method":"m","result":1}', False),
        case("neither", b'{"id":1}', False),
        case("an empty object", b"{}", False),
    ],
)
def test_notifications_and_responses_are_not_answered(frame: bytes, is_silent: bool) -> None:
    assert nobody_waits(message_of(frame)) is is_silent


# --- what goes back


def test_a_result_is_framed_with_the_token_and_the_bytes_as_they_are() -> None:
    assert result_frame(b"1.0", b'{"a" : 1}') == b'{"jsonrpc":"2.0","id":1.0,"result":{"a" : 1}}'


def test_an_error_is_framed_with_the_token_as_it_is() -> None:
    assert error_frame(b"-0", {"code": -32600}) == b'{"jsonrpc":"2.0","id":-0,"error":{"code":-32600}}'


@pytest.mark.parametrize("reason", list(Reason))
def test_an_error_says_of_its_reason_what_the_one_table_says_and_nothing_of_the_note(reason: Reason) -> None:
    row = REASONS[reason]
    assert generic_error(Failed(reason, note="for the record alone")) == {
        "code": row.mcp.code,
        "message": row.mcp.message,
        "data": {"reason": reason.value, "hint": Failed(reason).sentence},
    }
    assert row.sentence.split(". ")[0] in Failed(reason).sentence


def test_an_error_lists_its_findings_in_order_but_no_more_than_twenty() -> None:
    findings = tuple(Finding(f"/{at}", f"message {at}", "keyword", f"/schema/{at}") for at in range(21))
    listed = [
        {
            "pointer": f"/{at}",
            "schema_pointer": f"/schema/{at}",
            "keyword": "keyword",
            "message": f"message {at}",
        }
        for at in range(20)
    ]
    refused = Refused(Reason.BAD_ARGUMENTS, findings)
    assert violations(refused) == listed
    assert violations(Refused(Reason.BAD_ARGUMENTS, findings[:1])) == listed[:1]
    error = generic_error(refused)
    assert isinstance(error["data"], dict)
    assert error["data"]["violations"] == listed
