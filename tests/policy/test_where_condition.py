"""What a condition finds at a place in the arguments, defaults included; in doubt it stops."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.model import JSONObject
from portbook.policy import decide
from portbook.policy.where_condition import Reach, reach
from support.policy_tables import CALL, case, policy, rule

AMOUNT: JSONObject = {"type": "object", "properties": {"cents": {"type": "integer", "default": 20_000}}}

REQUIRED: JSONObject = {"properties": {"cents": {"type": "integer"}}, "required": ["cents"]}
UNTOLD: JSONObject = {"properties": {"cents": {"type": "integer"}}}
MODEL: JSONObject = {
    "$defs": {"Order": {"type": "object", "properties": {"cents": {"type": "integer", "default": 50_000}}}},
    "properties": {"order": {"$ref": "#/$defs/Order", "default": {}}},
}


@pytest.mark.covers("002.policy.where")
@pytest.mark.parametrize(
    ("where", "arguments", "schema", "stops", "lets"),
    [
        case("met", {"/cents": {"minimum": 100}}, {"cents": 500}, {}, True, True),
        case("not met", {"/cents": {"minimum": 1000}}, {"cents": 500}, {}, False, False),
        case(
            "another type than it speaks of", {"/cents": {"minimum": 1000}}, {"cents": "5"}, {}, True, False
        ),
        case("null", {"/cents": {"minimum": 1000}}, {"cents": None}, {}, True, False),
        case("a boolean is no number", {"/cents": {"maximum": 1000}}, {"cents": True}, {}, True, False),
        case("half a number is no integer", {"/cents": {"type": "integer"}}, {"cents": 0.5}, {}, True, False),
        case(
            "a whole number in any spelling", {"/cents": {"type": "integer"}}, {"cents": 5.0}, {}, True, True
        ),
        case("a constant", {"/to": {"const": "ada"}}, {"to": "ada"}, {}, True, True),
        case("another constant", {"/to": {"const": "ada"}}, {"to": "bob"}, {}, False, False),
        case("a constant of another type", {"/to": {"const": "ada"}}, {"to": ["ada"]}, {}, True, False),
        case("one of several", {"/to": {"enum": ["ada", "bob"]}}, {"to": "bob"}, {}, True, True),
        case("missing", {"/cents": {"minimum": 100}}, {}, {}, False, False),
        case("missing and required", {"/cents": {"minimum": 100}}, {}, REQUIRED, False, False),
        case(
            "missing, with a default that nobody tells", {"/cents": {"minimum": 1}}, {}, UNTOLD, True, False
        ),
        case("missing in what is there", {"/order/cents": {"minimum": 1}}, {"order": {}}, MODEL, True, True),
        case("missing with what holds it", {"/order/cents": {"minimum": 1}}, {}, MODEL, True, True),
        case("a part of a text", {"/order/cents": {"minimum": 1}}, {"order": "x"}, MODEL, True, False),
        case("a negation, of text", {"/cents": {"not": {"minimum": 0}}}, {"cents": "-5"}, {}, True, False),
        case("a negation", {"/cents": {"not": {"minimum": 0}}}, {"cents": -5}, {}, True, True),
        case(
            "a composition, of text", {"/cents": {"allOf": [{"maximum": 9}]}}, {"cents": "5"}, {}, True, False
        ),
        case("a composition", {"/cents": {"allOf": [{"maximum": 9}]}}, {"cents": 5}, {}, True, True),
        case("whatever it is", {"/cents": {}}, {"cents": "5"}, {}, True, True),
        case("missing, with a default that meets it", {"/cents": {"minimum": 100}}, {}, AMOUNT, True, True),
        case("missing, with a default that does not", {"/cents": {"maximum": 100}}, {}, AMOUNT, False, False),
        case("a place further down", {"/a/0/b": {"const": 1}}, {"a": [{"b": 1}]}, {}, True, True),
        case("an escaped name", {"/a~1b": {"const": 1}}, {"a/b": 1}, {}, True, True),
        case("beyond the end of a list", {"/a/1": {"const": 1}}, {"a": [1]}, {}, False, False),
        case("the whole of them", {"": {"required": ["cents"]}}, {"cents": 1}, {}, True, True),
        case("both of two", {"/a": {"const": 1}, "/b": {"const": 2}}, {"a": 1, "b": 2}, {}, True, True),
        case("one of two", {"/a": {"const": 1}, "/b": {"const": 2}}, {"a": 1, "b": 3}, {}, False, False),
    ],
)
def test_a_condition_stops_in_doubt_and_never_lets_pass_in_doubt(
    where: dict[str, Any],
    arguments: JSONObject,
    schema: JSONObject,
    *,
    stops: bool,
    lets: bool,
) -> None:
    subject = CALL._replace(arguments=arguments, input_schema=schema)
    for action in ("deny", "ask"):
        assert (decide(policy(rule("r", action, where=where)), subject).rule == "r") is stops
    assert (decide(policy(rule("r", "allow", where=where)), subject).rule == "r") is lets


CLOSED: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("schema", "segments", "expected"),
    [
        (CLOSED, (), Reach.DECLARED),
        (CLOSED, ("a",), Reach.DECLARED),
        (CLOSED, ("b",), Reach.CLOSED),
        (CLOSED, ("a", "b"), Reach.OPEN),
        ({}, ("a",), Reach.OPEN),
        ({"properties": {"a": False}}, ("a",), Reach.CLOSED),
        ({"properties": {"a": CLOSED}}, ("a", "b"), Reach.CLOSED),
        ({"$ref": "#/$defs/a", "$defs": {"a": CLOSED}}, ("b",), Reach.CLOSED),
        ({"anyOf": [CLOSED, {"type": "null"}]}, ("b",), Reach.OPEN),
        ({"anyOf": [CLOSED, CLOSED]}, ("b",), Reach.CLOSED),
        ({"allOf": [CLOSED, {"properties": {"b": {}}}]}, ("b",), Reach.CLOSED),
        ({"allOf": [{"properties": {"b": {}}}, {}]}, ("b",), Reach.DECLARED),
        ({"patternProperties": {"^b": {}}, "additionalProperties": False}, ("b",), Reach.OPEN),
        ({"additionalProperties": CLOSED}, ("x", "a"), Reach.DECLARED),
        ({"items": CLOSED}, ("0", "a"), Reach.DECLARED),
        ({"items": CLOSED}, ("0", "b"), Reach.OPEN),
        ({"unevaluatedProperties": False, "allOf": [{"properties": {"b": {}}}]}, ("b",), Reach.DECLARED),
        ({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}, ("b",), Reach.OPEN),
    ],
)
def test_a_place_is_declared_open_or_closed(
    schema: dict[str, Any], segments: tuple[str, ...], expected: Reach
) -> None:
    assert reach(schema, segments) is expected
