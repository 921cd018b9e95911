"""The W3C traceparent of a call."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.ids import ContentIds, RandomIds
from portbook.model import Identity
from portbook.wire.trace_context import trace_of, traceparent_of

CONTENT = b"a call"


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


@pytest.mark.parametrize("ids", [RandomIds(), ContentIds()], ids=lambda ids: type(ids).__name__)
def test_the_traceparent_of_a_call_has_the_lengths_of_the_w3c(ids: RandomIds | ContentIds) -> None:
    identity = Identity.read(ids.name(CONTENT))
    version, trace, parent, flags = traceparent_of(identity).split("-")
    assert (version, trace, flags) == ("00", identity.trace, "01")
    assert [len(part) for part in (version, trace, parent, flags)] == [2, 32, 16, 2]
    assert identity.span.startswith(parent)
    assert trace_of(traceparent_of(identity)) == identity.trace


SPAN = "7cf5ee95a40a5aa6bd752a87f05abf5c"
TRACE = "f0c27f00ba9e5feba6053caeeab8526b"


@pytest.mark.parametrize(
    "trace",
    [
        case("capitals", TRACE.upper()),
        case("a UUID with its dashes", str(uuid.UUID(TRACE))),
    ],
)
def test_a_trace_that_its_sender_wrote_otherwise_is_the_same_in_the_header(trace: str) -> None:
    assert traceparent_of(Identity("", trace, SPAN)) == f"00-{TRACE}-{SPAN[:16]}-01"


@pytest.mark.parametrize(
    "trace",
    [
        case("a word", "checkout"),
        case("one digit too few", TRACE[1:]),
        case("one digit too many", TRACE + "0"),
        case("digits of others", "g" * 32),
        case("the trace that the W3C forbids", "0" * 32),
        case("letters beyond ASCII", "größe"),
    ],
)
def test_a_trace_that_its_sender_named_otherwise_has_a_valid_header_always_the_same(trace: str) -> None:
    header = traceparent_of(Identity("", trace, SPAN))
    assert trace_of(header) is not None
    assert header == traceparent_of(Identity("another", trace, SPAN))
    assert header != traceparent_of(Identity("", trace + "x", SPAN))


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=128))
def test_every_name_of_a_trace_makes_a_valid_header(trace: str) -> None:
    assert trace_of(traceparent_of(Identity("", trace, SPAN))) is not None
