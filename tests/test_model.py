"""The values that travel along the path: they do not change, and a trace is one by the W3C's rules."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.model import Answer, Arrival, Call, Caller, CallerContext, Done, Identity, Run
from portbook.wire.trace_context import trace_of, traceparent_of

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


@pytest.mark.parametrize(
    "traceparent",
    [
        case("the W3C's example", f"00-{TRACE}-{PARENT}-01"),
        case("not sampled", f"00-{TRACE}-{PARENT}-00"),
        case("flags of the future", f"00-{TRACE}-{PARENT}-ff"),
        case("a future version", f"01-{TRACE}-{PARENT}-01"),
        case("the last version", f"fe-{TRACE}-{PARENT}-01"),
        case("a future version that says more", f"cc-{TRACE}-{PARENT}-01-what-the-future-holds"),
        case("a future version with an empty rest", f"cc-{TRACE}-{PARENT}-01-"),
    ],
)
def test_a_valid_traceparent_names_its_trace(traceparent: str) -> None:
    assert trace_of(traceparent) == TRACE


@pytest.mark.parametrize(
    "traceparent",
    [
        case("nothing", None),
        case("the empty string", ""),
        case("a number", 1),
        case("bytes", f"00-{TRACE}-{PARENT}-01".encode()),
        case("an object", {"traceparent": f"00-{TRACE}-{PARENT}-01"}),
        case("the forbidden version", f"ff-{TRACE}-{PARENT}-01"),
        case("version 00 that says more", f"00-{TRACE}-{PARENT}-01-more"),
        case("version 00 with an empty rest", f"00-{TRACE}-{PARENT}-01-"),
        case("a future version with a longer flag", f"01-{TRACE}-{PARENT}-011"),
        case("a trace of zeros", f"00-{'0' * 32}-{PARENT}-01"),
        case("a parent of zeros", f"00-{TRACE}-{'0' * 16}-01"),
        case("an upper case trace", f"00-{TRACE.upper()}-{PARENT}-01"),
        case("an upper case parent", f"00-{TRACE}-{PARENT.upper()}-01"),
        case("an upper case version", f"CC-{TRACE}-{PARENT}-01"),
        case("upper case flags", f"00-{TRACE}-{PARENT}-0A"),
        case("a short trace", f"00-{TRACE[1:]}-{PARENT}-01"),
        case("a long trace", f"00-{TRACE}a-{PARENT}-01"),
        case("a short parent", f"00-{TRACE}-{PARENT[1:]}-01"),
        case("a long parent", f"00-{TRACE}-{PARENT}a-01"),
        case("a short version", f"0-{TRACE}-{PARENT}-01"),
        case("short flags", f"00-{TRACE}-{PARENT}-1"),
        case("no flags", f"00-{TRACE}-{PARENT}"),
        case("a digit that is not hexadecimal", f"00-{TRACE[:-1]}g-{PARENT}-01"),
        case("a digit that is not ASCII", f"00-{TRACE[:-1]}\u0661-{PARENT}-01"),
        case("white space before", f" 00-{TRACE}-{PARENT}-01"),
        case("white space after", f"00-{TRACE}-{PARENT}-01 "),
        case("a newline after", f"00-{TRACE}-{PARENT}-01\n"),
        case("a newline in the rest", f"cc-{TRACE}-{PARENT}-01-a\nb"),
        case("underscores", f"00_{TRACE}_{PARENT}_01"),
    ],
)
def test_an_invalid_traceparent_names_none(traceparent: object) -> None:
    assert trace_of(traceparent) is None


@given(st.integers(0, 54), st.sampled_from(["", "g", "G", " ", "\n", "\u0661", "00", "--"]))
def test_one_wrong_character_anywhere_makes_a_traceparent_name_none(at: int, put: str) -> None:
    valid = f"00-{TRACE}-{PARENT}-01"
    assert trace_of(valid[:at] + put + valid[at + 1 :]) is None


def test_the_header_of_our_own_call_is_a_valid_traceparent() -> None:
    identity = Identity("6f0c0a9e-5d0b-4f7e-9a53-3f6f1a5f2b10", TRACE, PARENT * 2)
    assert trace_of(traceparent_of(identity)) == TRACE


ARRIVAL = Arrival("stdio", "stdio")
CALL = Call(ARRIVAL, "m", "echo", {}, 2, CallerContext(), None, {})
RUN = Run(1000, Identity("request", "trace", "span"))


@pytest.mark.parametrize(
    "value",
    [CallerContext(), Done(b"1"), Answer(b"1", 200), RUN],
    ids=lambda value: type(value).__name__,
)
def test_a_value_does_not_change_once_made(value: NamedTuple) -> None:
    for field in value._fields:
        with pytest.raises(AttributeError):
            setattr(value, field, None)
    with pytest.raises(AttributeError):
        value.something_new = 1  # type: ignore[attr-defined]


def test_what_nobody_said_has_its_default() -> None:
    assert CallerContext() == (None, None, 1, 1, None, None, None)
    assert Arrival("stdio", "stdio", None, None, None, None) == ARRIVAL
    assert Caller("somebody").tools == ("*",)
    assert (CALL.flaw, CALL.approval, CALL.wait_ms) == (None, None, 0)
    assert (CALL.kind, CALL.wish) == ("tool", None)
    assert (RUN.session, RUN.correlation, RUN.report, RUN.reach()) == (None, None, None, None)
    assert Answer(b"1", 200) == (b"1", 200, False, None, None, False)


def test_a_result_goes_out_in_the_contracts_form_where_it_has_one() -> None:
    assert Done(b"1").wire == b"1"
    assert Done(b"1", b'{"structuredContent":1}').wire == b'{"structuredContent":1}'
