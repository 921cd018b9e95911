"""Bytes to values: what is accepted, what is refused, and that a refusal quotes nobody."""

from __future__ import annotations

import asyncio
import base64
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from portbook.app.assemble import assemble
from portbook.app.running_app import App
from portbook.audit.memory_sink import MemorySink
from portbook.errors import Finding, Reason, Refused
from portbook.model import Answer, Arrival
from portbook.settings import load_settings
from portbook.wire.lines_and_size_limit import MAX_FRAME_BYTES, OVERSIZE, Frame, LineSplitter
from portbook.wire.parsing import _WORDS, MAX_DEPTH, parse
from support.counts import count
from support.portbook_process import invoke

CORPUS = Path(__file__).resolve().parents[1] / "corpora" / "hostile_frames.jsonl"


def accepted(name: str, frame: bytes, value: object) -> Any:
    return pytest.param(frame, value, id=name)


def refused(name: str, frame: bytes, message: str) -> Any:
    return pytest.param(frame, message, id=name)


def refusal(frame: bytes) -> Finding:
    """The one finding of a refused frame."""
    with pytest.raises(Refused) as raised:
        parse(frame)
    assert raised.value.reason is Reason.NOT_JSON
    (finding,) = raised.value.findings
    return finding


ACCEPTED = [
    accepted("null", b"null", None),
    accepted("true", b"true", True),
    accepted("false", b"false", False),
    accepted("an integer", b"-12", -12),
    accepted("zero", b"0", 0),
    accepted("minus zero is an integer", b"-0", 0),
    accepted("a float stays a float", b"1.0", 1.0),
    accepted("an exponent makes a float", b"1E+2", 100.0),
    accepted("the largest double", b"1.7976931348623157e308", sys.float_info.max),
    accepted("the smallest double", b"5e-324", 5e-324),
    accepted("too small for a double is zero", b"1e-999", 0.0),
    accepted("a long fraction", b"0." + b"1" * 5000, 0.1111111111111111),
    accepted("2^53 + 1 is exact", b"9007199254740993", 2**53 + 1),
    accepted("2^63 is exact", b"9223372036854775808", 2**63),
    accepted("2^64 is exact", b"18446744073709551616", 2**64),
    accepted("-2^200 is exact", b"-%d" % 2**200, -(2**200)),
    accepted("an empty string", b'""', ""),
    accepted("every escape", rb'"\"\\\/\b\f\n\r\t\u0041"', '"\\/\b\f\n\r\tA'),
    accepted("an escaped NUL", rb'"\u0000"', "\x00"),
    accepted("a surrogate pair", rb'"\ud83d\ude00"', "\N{GRINNING FACE}"),
    accepted("four bytes of UTF-8", b'"\xf0\x9f\x98\x80"', "\N{GRINNING FACE}"),
    accepted("a noncharacter", b'"\xef\xbf\xbf"', "\uffff"),
    accepted("a byte order mark inside a string", b'"\xef\xbb\xbf"', "\ufeff"),
    accepted("line separators inside a string", '"\x85\u2028\u2029\x7f"'.encode(), "\x85\u2028\u2029\x7f"),
    accepted("white space all around", b" \t\r\n[ 1 ,\t2 ]\r\n", [1, 2]),
    accepted("a trailing CR", b"{}\r", {}),
    accepted("the empty key", b'{"":1}', {"": 1}),
    accepted("keys that differ in case", b'{"a":1,"A":2}', {"a": 1, "A": 2}),
    accepted("keys that only look alike", '{"é":1,"e\u0301":2}'.encode(), {"é": 1, "e\u0301": 2}),
    accepted("equal keys in different objects", b'[{"a":1},{"a":{"a":1}}]', [{"a": 1}, {"a": {"a": 1}}]),
]

REFUSED = [
    refused("nothing", b"", "the text is empty"),
    refused("white space alone", b" \t\r\n", "the text is empty"),
    refused("a truncated object", b'{"a":1', "the text is incomplete (line 1, column 6)"),
    refused("a truncated string", b'"a', "the text is incomplete"),
    refused("a truncated literal", b"tru", "the text is incomplete"),
    refused("a truncated fraction", b"1.", "the text is incomplete"),
    refused("a truncated exponent", b"1e", "the text is incomplete"),
    refused("a lone minus", b"-", "the text is incomplete"),
    refused("two values", b"{}{}", "extra text follows the value"),
    refused(
        "two values on two lines", b"1\n2", "extra text follows the value; send one value per message (line 2"
    ),
    refused("a NUL behind the value", b"1\x00", "extra text follows the value"),
    refused("hexadecimal", b"0x10", "extra text follows the value"),
    refused("a trailing comma in an object", b'{"a":1,}', "trailing comma before a closing bracket"),
    refused("a trailing comma in an array", b"[1,]", "trailing comma before a closing bracket"),
    refused("a missing comma", b'["a" "b"]', "a comma, colon or closing bracket is missing"),
    refused("a missing colon", b'{"a" 1}', "a comma, colon or closing bracket is missing"),
    refused("a key without a value", b'{"a"}', "a comma, colon or closing bracket is missing"),
    refused("mismatched brackets", b"[1}", "a comma, colon or closing bracket is missing"),
    refused("a missing value", b'{"a":}', "a JSON value is expected here"),
    refused("only a comma", b"[,]", "a JSON value is expected here"),
    refused("a number as a key", b"{1:2}", "an object's key is not a string"),
    refused("a bare word as a key", b"{a:2}", "an object's key is not a string"),
    refused("single quotes", b"'a'", "a JSON value is expected here"),
    refused("a comment", b"/**/1", "a JSON value is expected here"),
    refused("a misspelt literal", b"nule", "a JSON value is expected here"),
    refused("a capital literal", b"True", "a JSON value is expected here"),
    refused("a bare word", b"word", "a JSON value is expected here"),
    refused("NaN", b"NaN", "a JSON value is expected here"),
    refused("nan", b"nan", "a JSON value is expected here"),
    refused("Infinity", b"[Infinity]", "a JSON value is expected here"),
    refused("-Infinity", b"-Infinity", "a number is not valid JSON"),
    refused("-NaN", b"-NaN", "a number is not valid JSON"),
    refused("a leading zero", b"01", "a number is not valid JSON"),
    refused("a negative leading zero", b"-01", "a number is not valid JSON"),
    refused("a plus sign", b"+1", "a JSON value is expected here"),
    refused("a leading point", b".5", "a JSON value is expected here"),
    refused("a point before the exponent", b"1.e5", "a number is not valid JSON"),
    refused("an underscore", b"1_000", "extra text follows the value"),
    refused("an infinite exponent", b"1e999", "a number is too large for a double"),
    refused("a negative infinite exponent", b"-1e999", "a number is too large for a double"),
    refused("just too large for a double", b"1.7976931348623159e308", "a number is too large for a double"),
    refused("400 digits and a point", b"9" * 400 + b".0", "a number is too large for a double"),
    refused("an infinity deep inside", b'{"a":[null,{"b":1e400}]}', "a number is too large for a double"),
    refused("an infinity beside a big integer", b"[18446744073709551616,1e400]", "too large for a double"),
    *(
        refused(
            f"{name}, {there}", b'["' + b"x" * 5000 + b'",' + text + end, "a number is too large for a double"
        )
        for there, end in (
            ("compact", b"]"),
            ("with a space", b" ]"),
            ("beside a big integer", b",18446744073709551616]"),
        )
        for name, text in (
            ("an infinity in a large message", b"1e999"),
            ("one of many digits", b"9" * 400 + b".0"),
        )
    ),
    refused("a raw tab in a string", b'"\t"', "unescaped control character"),
    refused("a raw newline in a string", b'"\n"', "unescaped control character"),
    refused("a raw NUL in a string", b'"\x00"', "unescaped control character"),
    refused("a raw VT in a string", b'"\x0b"', "unescaped control character"),
    refused("a raw ESC in a key", b'{"\x1b":1}', "unescaped control character"),
    refused("an unknown escape", rb'"\x41"', "unknown escape in a string"),
    refused("a short escape", rb'"\u12"', "the text is incomplete"),
    refused("an escape that is not hexadecimal", rb'"\u12g4"', "unknown escape in a string"),
    refused("a lone high surrogate", rb'"\ud800"', "half of a surrogate pair"),
    refused("a lone high surrogate before text", rb'"\ud800abcdef"', "half of a surrogate pair"),
    refused("a lone low surrogate", rb'"\udc00"', "half of a surrogate pair"),
    refused("surrogates in the wrong order", rb'"\udc00\ud800"', "half of a surrogate pair"),
    refused("two high surrogates", rb'"\ud800\ud800"', "half of a surrogate pair"),
    refused("a lone surrogate in a key", rb'{"\ud800":1}', "half of a surrogate pair"),
    refused("a lone surrogate in UTF-8", b'"\xed\xa0\x80"', "a string is not valid UTF-8"),
    refused("a byte that is not UTF-8", b'"\xff"', "a string is not valid UTF-8"),
    refused("a truncated UTF-8 sequence", b'"\xe2\x82"', "a string is not valid UTF-8"),
    refused("an overlong UTF-8 sequence", b'"\xc0\xaf"', "a string is not valid UTF-8"),
    refused("five bytes of UTF-8", b'"\xf8\x88\x80\x80\x80"', "a string is not valid UTF-8"),
    refused("beyond Unicode", b'"\xf4\x90\x80\x80"', "a string is not valid UTF-8"),
    refused("not UTF-8 in a key", b'{"\xff":1}', "a string is not valid UTF-8"),
    refused("not UTF-8 outside of strings", b"\xff\xfe", "a JSON value is expected here"),
    refused("a byte order mark", b"\xef\xbb\xbf{}", "starts with a byte order mark; send UTF-8 without one"),
    refused("UTF-16 with a mark", "{}".encode("utf-16"), "a JSON value is expected here"),
    refused("UTF-16 without a mark", "[]".encode("utf-16-le"), "a JSON value is expected here"),
    refused("UTF-32 without a mark", "[]".encode("utf-32-be"), "a JSON value is expected here"),
    refused("VT before the value", b"\x0b{}", "a JSON value is expected here"),
    refused("FF behind the value", b"{}\x0c", "extra text follows the value"),
    refused("NBSP before the value", b"\xc2\xa0{}", "a JSON value is expected here"),
    refused("NEL before the value", b"\xc2\x85{}", "a JSON value is expected here"),
    refused(
        "a key twice", b'{"a":1,"a":1}', "an object has the same key twice; keep one (line 1, column 12)"
    ),
    refused("a key twice, once escaped", rb'{"a":1,"\u0061":1}', "an object has the same key twice"),
    refused(
        "a key twice, far apart", b'{"a":1,%s"a":2}' % (b'"b":1,"c":1,' + b'"d":[{}],'), "same key twice"
    ),
    refused("a key twice, deep inside", b'[[{"x":{"a":1,"b":2,"a":3}}]]', "an object has the same key twice"),
    refused("the empty key twice", b'{"":1,"":1}', "an object has the same key twice"),
    refused("an escaped pair and its bytes", b'{"\xf0\x9f\x98\x80":1,"\\ud83d\\ude00":2}', "same key twice"),
    refused("4,301 digits", b"1" * 4301, "a number has too many digits"),
    refused("-4,301 digits", b"[-" + b"1" * 4301 + b"]", "a number has too many digits"),
    refused("a million digits", b"1" * 1_000_000, "a number has too many digits"),
    refused(
        "202 arrays",
        b"[" * 202 + b"]" * 202,
        "nested deeper than 201 levels; flatten it (line 1, column 202)",
    ),
    refused("202 objects", b'{"a":' * 201 + b"{}" + b"}" * 201, "nested deeper than 201 levels"),
    refused("a value in 201 arrays", b"[" * 201 + b"1" + b"]" * 201, "nested deeper than 201 levels"),
    refused("a million open arrays", b"[" * 1_000_000, "nested deeper than 201 levels"),
    refused("a hundred thousand objects", b'{"a":' * 100_000, "nested deeper than 201 levels"),
    refused("a million nested arrays", b"[" * 1_000_000 + b"]" * 1_000_000, "nested deeper than 201 levels"),
]


@pytest.mark.parametrize(("frame", "value"), ACCEPTED)
def test_json_is_read_as_the_value_it_spells(frame: bytes, value: object) -> None:
    found = parse(frame)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(("frame", "message"), REFUSED)
def test_what_is_not_strict_json_is_refused_with_one_finding(frame: bytes, message: str) -> None:
    finding = refusal(frame)
    assert message in finding.message
    assert (finding.pointer, finding.keyword, finding.schema_pointer) == ("", "json", "")


def test_each_wording_is_the_answer_to_some_case_of_the_table() -> None:
    # A new parser that words its errors otherwise would leave one of ours behind.
    found = {refusal(case.values[0]).message.split(" (line ")[0] for case in REFUSED}
    assert {ours for _, ours in _WORDS} <= found


@pytest.mark.parametrize("sign", [b"", b"-"])
@pytest.mark.parametrize("digits", [19, 20, 21, 100, 4299, 4300])
def test_integers_are_exact_up_to_4300_digits(sign: bytes, digits: int) -> None:
    written = sign + b"9" * digits
    assert b"%d" % parse(written) == written


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, id="arrays"),
        pytest.param(b'{"a":' * (MAX_DEPTH - 1) + b"{}" + b"}" * (MAX_DEPTH - 1), id="objects"),
        pytest.param(b"[" * (MAX_DEPTH - 1) + b"1" + b"]" * (MAX_DEPTH - 1), id="a value in arrays"),
        pytest.param(
            b"[" + b"[" * 150 + b"]" * 150 + b"," + b"[" * 150 + b"]" * 150 + b"]", id="side by side"
        ),
    ],
)
def test_nesting_of_201_levels_passes(frame: bytes) -> None:
    assert MAX_DEPTH == 201
    assert json.dumps(parse(frame), separators=(",", ":")).encode() == frame


# --- properties


finite = st.floats(allow_nan=False, allow_infinity=False)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
scalars = st.one_of(st.none(), st.booleans(), st.integers(), finite, text)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(text, inner, max_size=4)),
    max_leaves=12,
)


@given(values, st.booleans(), st.sampled_from([None, 1, "\t"]))
def test_what_json_writes_is_read_again(value: object, is_ascii: bool, indent: int | str | None) -> None:
    written = json.dumps(value, ensure_ascii=is_ascii, indent=indent).encode()
    assert repr(parse(written)) == repr(value)


@given(finite)
def test_a_double_is_read_as_the_same_double(number: float) -> None:
    assert math.copysign(1, parse(repr(number).encode())) == math.copysign(1, number)
    assert parse(b"[%s]" % repr(number).encode()) == [number]


def strictly(frame: bytes) -> object:
    """Read JSON by the standard library, made as strict as we are; it is our second opinion."""

    def pairs(members: list[tuple[str, object]]) -> dict[str, object]:
        made = dict(members)
        if len(made) != len(members):
            raise ValueError("duplicate key")
        return made

    def number(written: str) -> float:
        if not math.isfinite(float(written)):
            raise ValueError("too large")
        return float(written)

    def constant(_: str) -> float:
        raise ValueError("constant")

    value = json.loads(
        frame.decode("utf-8"), object_pairs_hook=pairs, parse_float=number, parse_constant=constant
    )
    json.dumps(value, ensure_ascii=False).encode()  # refuses lone surrogates
    return value


# What breaks JSON, and what nearly does.
SNIPPETS = [
    *(bytes([code]) for code in b'{}[]",:\\-+.eE019tfn /\t\n\r\x00\x0b\x1f\x7f'),
    *(b"\xff", b"\xc2", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80"),
    *(rb"\u0061", rb"\ud800", rb"\udc00", rb"\n", rb"\x", b"NaN", b"1e999", b"null", b'"a":1,', b"/**/"),
]
mutations = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 2), st.sampled_from(SNIPPETS)), min_size=1, max_size=4
)


@pytest.mark.soak("broken documents")
@settings(max_examples=count("broken documents"))
@given(values, mutations)
@example({"a": 1}, [(1, 0, b'"a":1,')])
@example(["x"], [(2, 1, rb"\ud800")])
def test_a_broken_document_gets_the_verdict_of_a_second_strict_parser(
    value: object, changes: list[tuple[int, int, bytes]]
) -> None:
    frame = json.dumps(value, ensure_ascii=False).encode()
    for place, removed, put in changes:
        at = place % (len(frame) + 1)
        frame = frame[:at] + put + frame[at + removed :]
    check_against_second_opinion(frame)


@pytest.mark.soak("broken documents")
@settings(max_examples=count("broken documents"))
@given(st.one_of(st.binary(max_size=12), st.lists(st.sampled_from(SNIPPETS), max_size=8).map(b"".join)))
def test_any_bytes_get_the_verdict_of_a_second_strict_parser(frame: bytes) -> None:
    check_against_second_opinion(frame)


def check_against_second_opinion(frame: bytes) -> None:
    try:
        value = strictly(frame)
    except ValueError:
        refusal(frame)
    else:
        assert repr(parse(frame)) == repr(value)


BREAKINGS = {
    "truncated": '{"%s":"%s"',
    "a key twice": '{"%s":1,"%s":2}',
    "a key twice, deep inside": '[{"k":{"%s":1,"%s":2}}]',
    "a bare word": '{"%s":%s}',
    "a bare key": '{"a":"%s",%s:1}',
    "something behind": '["%s"]%s',
    "a trailing comma": '["%s","%s",]',
    "an unknown escape": '{"%s":"%s\\x"}',
    "a cut escape": '{"%s":"%s\\u12"}',
    "half a surrogate pair": '{"%s":"%s\\ud800"}',
    "a raw control character": '{"%s":"%s\x01"}',
    "too large a number": '{"%s":["%s",1e999]}',
    "too many digits": '{"%s":["%s",' + "1" * 4301 + "]}",
    "too deep": '{"%s":["%s",' + "[" * 300 + "]" * 300 + "]}",
    "not UTF-8": '{"%s":"%s\udcff"}',
}


@given(st.text(st.characters(categories=["Lu"], max_codepoint=0x24F), min_size=6, max_size=20))
@pytest.mark.parametrize("breaking", [pytest.param(text, id=name) for name, text in BREAKINGS.items()])
def test_a_refusal_never_quotes_what_was_sent(breaking: str, word: str) -> None:
    finding = refusal((breaking % (word, word)).encode("utf-8", "surrogateescape"))
    assert not any(word in part for part in (finding.message, finding.pointer, finding.schema_pointer))


# --- the corpus, through the boundary


def frame_of(row: dict[str, Any]) -> bytes:
    if "frame_b64" in row:
        return base64.b64decode(row["frame_b64"])
    made = {name: base64.b64decode(v) if name.endswith("_b64") else v for name, v in row["gen"].items()}
    return (
        made["pre_b64"]
        + made["unit_b64"] * made["count"]
        + made["mid_b64"]
        + made["unit2_b64"] * made["count2"]
        + made["suf_b64"]
    )


def length_of(row: dict[str, Any]) -> int:
    """How long the frame would be, without making it."""
    if "frame_b64" in row:
        return len(base64.b64decode(row["frame_b64"]))
    made = {name: len(base64.b64decode(v)) for name, v in row["gen"].items() if name.endswith("_b64")}
    repeated = made.pop("unit_b64") * row["gen"]["count"] + made.pop("unit2_b64") * row["gen"]["count2"]
    return sum(made.values()) + repeated


ROWS = [json.loads(line) for line in CORPUS.read_text().splitlines()]
NOT_JSON_ROWS = [row for row in ROWS if row["expect"].get("codes") == [-32700]]
TOO_LONG_ROWS = [row for row in ROWS if length_of(row) > MAX_FRAME_BYTES]

TOOLS = """
from portbook import Toolset

toolset = Toolset("hostile frames")

@toolset.tool(effect="read", inline=True)
def echo(text: str) -> str:
    return text
"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    folder = tmp_path_factory.mktemp("boundary")
    (folder / "echo_for_hostile_frames.py").write_text(TOOLS)
    flags = {"docs.enabled": False, "python.toolsets": [str(folder / "echo_for_hostile_frames.py")]}
    assembled = assemble(load_settings(None, {}, flags, folder), is_exposed=False, sink=MemorySink())
    yield assembled
    asyncio.run(assembled.close())


def answer(served: App, frame: Frame) -> Answer:
    return asyncio.run(served.boundary.answer(frame, Arrival("stdio", "stdio")))


def assert_it_still_serves(served: App) -> None:
    good = answer(served, invoke("echo", {"text": "still here"}, id="next"))
    assert good.body == b'{"jsonrpc":"2.0","id":"next","result":"still here"}'


def test_the_corpus_has_rows_for_the_tests_below() -> None:
    assert len(NOT_JSON_ROWS) > 25
    assert len(TOO_LONG_ROWS) > 2


@pytest.mark.parametrize("row", [pytest.param(row, id=row["name"]) for row in NOT_JSON_ROWS])
def test_a_frame_that_is_not_json_is_a_parse_error_without_id_and_the_next_call_is_served(
    served: App, row: dict[str, Any]
) -> None:
    reply = answer(served, frame_of(row))
    assert reply.body is not None
    message = json.loads(reply.body)
    assert set(message) == {"jsonrpc", "id", "error"}
    assert (message["jsonrpc"], message["id"]) == ("2.0", None)
    assert (message["error"]["code"], message["error"]["message"]) == (-32700, "Parse error")
    assert (reply.status, reply.is_notification) == (400, False)
    assert_it_still_serves(served)


@pytest.mark.parametrize("row", [pytest.param(row, id=row["name"]) for row in TOO_LONG_ROWS])
def test_a_frame_over_the_limit_is_told_so_once_and_the_next_call_is_served(
    served: App, row: dict[str, Any]
) -> None:
    splitter = LineSplitter()
    stream = frame_of(row) + b"\n" + invoke("echo", {"text": "after"}, id=2) + b"\n"
    pieces = (stream[at : at + 65_536] for at in range(0, len(stream), 65_536))
    frames = [frame for piece in pieces for frame in splitter.feed(piece)] + splitter.close()
    assert frames[0] is OVERSIZE
    told, good = (answer(served, frame) for frame in frames)
    assert told.body is not None
    assert json.loads(told.body) == {
        "jsonrpc": "2.0",
        "id": None,
        "result": {
            "ok": False,
            "reason": "validation_failed",
            "errors": [{"path": "", "msg": "payload_too_large"}],
        },
    }
    assert told.status == 413
    assert good.body == b'{"jsonrpc":"2.0","id":2,"result":"after"}'


def test_every_frame_of_the_corpus_has_one_verdict_and_leaves_a_record(served: App) -> None:
    sink = served.sink
    assert isinstance(sink, MemorySink)
    for row in ROWS:
        if length_of(row) > MAX_FRAME_BYTES:
            continue
        before = len(sink.records)
        answer(served, frame_of(row))
        assert len(sink.records) == before + 1, row["name"]
        assert_it_still_serves(served)
