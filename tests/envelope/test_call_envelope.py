"""Who gets an envelope around the result of a call, and with what in it."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.envelope.call_envelope import CallEnvelopes
from portbook.envelope.controls import Default
from portbook.model import EnvelopeRequest


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


NO_RECORD = {"capture_provenance": False}
RECORD = {"capture_provenance": True}


@pytest.mark.parametrize(
    ("default", "wish", "is_wanted", "has_record"),
    [
        case("nobody asks", "off", None, False, False),
        case("what is asked is not ours", "off", EnvelopeRequest({"else": 1}), False, False),
        case("the caller asks for a record", "off", EnvelopeRequest(RECORD), True, True),
        case("the caller asks for no more than the default", "off", EnvelopeRequest(NO_RECORD), False, False),
        case("the contract has it so", "off", EnvelopeRequest(is_required=True), True, False),
        case("and so whatever is asked", "off", EnvelopeRequest(NO_RECORD, is_required=True), True, False),
        case("the operator gives envelopes", "wrap", None, True, False),
        case("and a record where one is asked for", "wrap", EnvelopeRequest(RECORD), True, True),
        case("the operator gives records", "provenance", EnvelopeRequest(is_required=True), True, True),
    ],
)
def test_whoever_asks_gets_an_envelope_and_everybody_where_the_operator_gives_them(
    default: Default, wish: EnvelopeRequest | None, is_wanted: bool, has_record: bool
) -> None:
    controls = CallEnvelopes(default).controls_of(wish)
    assert (controls is not None and controls.is_wanted) is is_wanted
    assert (controls is not None and controls.capture_provenance) is has_record


@pytest.mark.parametrize(
    ("preferences", "deterministic", "limit"),
    [
        case("none", {}, True, None),
        case("the occasion too", {"deterministic": False}, False, None),
        case("a limit that JSON writes as a float", {"max_output_bytes": 1e3}, True, 1000),
    ],
)
def test_a_callers_preferences_are_heeded(
    preferences: dict[str, Any], deterministic: bool, limit: int | None
) -> None:
    controls = CallEnvelopes().controls_of(EnvelopeRequest(preferences=preferences, is_required=True))
    assert controls is not None
    assert (controls.deterministic, controls.max_output_bytes) == (deterministic, limit)
    assert type(controls.max_output_bytes) is type(limit)
