"""Into an envelope and out of it."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given

from portbook import SchemaRegistry, failure, inspect_envelope, unwrap, wrap
from portbook.canonical import json_bytes
from portbook.envelope.result_put_into_envelope import NotAnEnvelope, ToolFailed, is_envelope
from support.envelope_samples import json_values

SCHEMA = SchemaRegistry().load("mcp.envelope.v0.1")


@given(json_values)
def test_any_json_value_wraps_validates_and_unwraps_equal(value: Any) -> None:
    envelope = wrap(value)
    assert SCHEMA.findings(envelope) == ()
    assert unwrap(envelope) is value
    assert json_bytes(unwrap(json.loads(json_bytes(envelope)))) == json_bytes(value)


@given(json_values)
def test_wrapping_twice_changes_nothing(value: Any) -> None:
    once = wrap(value)
    assert wrap(once) is once
    assert json_bytes(wrap(json.loads(json_bytes(once)))) == json_bytes(once)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"schema_version": "mcp.envelope.v0.2", "result": 1},
        {"schema_version": ["mcp.envelope.v0.1"]},
        {"result": 1},
        "mcp.envelope.v0.1",
        ["schema_version", "mcp.envelope.v0.1"],
        None,
    ],
)
def test_only_what_says_that_it_is_an_envelope_is_one(value: Any) -> None:
    assert not is_envelope(value)
    assert wrap(value)["result"] is value
    with pytest.raises(NotAnEnvelope, match=r"expected an object with schema_version mcp\.envelope\.v0\.1"):
        unwrap(value)


def test_an_envelope_without_a_result_cannot_be_unwrapped() -> None:
    with pytest.raises(NotAnEnvelope):
        unwrap({"schema_version": "mcp.envelope.v0.1"})


@pytest.mark.parametrize(
    ("members", "pointer"),
    [
        ({"extra": 1}, "(root)"),
        ({"provenance": 5}, "/provenance"),
        ({"provenance": {}}, "/provenance"),
        ({"errors": "x"}, "/errors"),
        ({"errors": ["x"]}, "/errors/0"),
        ({"errors": [{"code": 5, "message": "m"}]}, "/errors/0/code"),
        ({"errors": [{"code": "C"}]}, "/errors/0"),
        ({"errors": None}, "/errors"),
        ({"warnings": {}}, "/warnings"),
        ({"meta": []}, "/meta"),
    ],
)
def test_an_envelope_that_breaks_its_schema_is_not_unwrapped_and_the_place_is_named(
    members: dict[str, Any], pointer: str
) -> None:
    envelope = {"schema_version": "mcp.envelope.v0.1", "result": 1, **members}
    with pytest.raises(NotAnEnvelope) as raised:
        unwrap(envelope)
    assert str(raised.value).startswith(f"the envelope breaks its schema: {pointer}: ")
    assert not inspect_envelope(envelope).is_sound


@given(json_values, json_values, json_values)
def test_whatever_an_envelope_holds_only_its_own_errors_are_raised(one: Any, other: Any, third: Any) -> None:
    envelope = {"schema_version": "mcp.envelope.v0.1", "result": 1, "errors": one, "provenance": other}
    for value in (envelope, {**envelope, "meta": third}):
        with contextlib.suppress(NotAnEnvelope, ToolFailed):
            unwrap(value)
        inspect_envelope(value)


def test_a_part_that_json_cannot_hold_is_no_envelope() -> None:
    envelope: Any = {"schema_version": "mcp.envelope.v0.1", "result": 1, "meta": {"adapter": object()}}
    with pytest.raises(NotAnEnvelope, match="breaks its schema"):
        unwrap(envelope)
    assert not inspect_envelope(envelope).is_sound


def test_a_failure_is_not_unwrapped_in_silence() -> None:
    with pytest.raises(ToolFailed, match=r"ADAPTER\.EXECUTION\.FAILED") as raised:
        unwrap(failure(exit_code=2, partial="half"))
    assert raised.value.partial == "half"
    assert [error["details"] for error in raised.value.errors] == [{"exit_code": 2}]


def test_no_errors_are_no_failure() -> None:
    assert unwrap({"schema_version": "mcp.envelope.v0.1", "result": 1, "errors": []}) == 1


def test_a_failure_of_which_nothing_was_seen_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="needs an exit_code, an error or stderr"):
        failure()
