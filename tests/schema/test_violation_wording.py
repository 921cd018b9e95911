"""Findings in words: one sentence per kind of violation, made from the schema's side of it."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.schema.engine import validator_for
from portbook.schema.violation_wording import _SENTENCES, _UNIONS, escape_pointer, shorten, words

# Stands in every value below that is checked, and so may stand in no sentence.
CANARY = "canary"
NUMBER = 271828.125


def says(kind: str, message: str, schema: Any, instance: Any) -> Any:
    return pytest.param(kind, message, schema, instance, id=f"{kind}: {message}"[:70])


STRING_OR_NULL = [{"type": "string"}, {"type": "null"}]

ANY, NONE = "matches more than one of the allowed forms", "matches none of the allowed forms"
CONTAINS = "holds too few or too many items of the required form"
CLOSED = {"properties": {"a": {}}, "additionalProperties": False}
VARIANTS = [{"properties": {"kind": {"const": name}}} for name in "ab"]
TWO_PLACES = [{"properties": {name: False}} for name in "ab"]

SAID = [
    says("AdditionalProperties", 'unexpected property "b"', CLOSED, {"a": CANARY, "b": CANARY}),
    says("AdditionalProperties", 'unexpected property "b", "c", "d"', CLOSED, dict.fromkeys("bcd", CANARY)),
    says(
        "AdditionalProperties", 'unexpected property "b", "c", "d" and 2 more',
        CLOSED, dict.fromkeys("bcdef", CANARY),
    ),
    says("AnyOf", "expected string or null", {"anyOf": STRING_OR_NULL}, [CANARY]),
    says("AnyOf", "expected string", {"anyOf": [{"type": "string"}] * 3}, [CANARY]),
    says("AnyOf", "longer than 1 character or null", {"anyOf": [{"maxLength": 1}, {"type": "null"}]}, CANARY),
    says("AnyOf", NONE, {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}, [CANARY]),
    says("AnyOf", NONE, {"anyOf": TWO_PLACES}, {"a": CANARY, "b": CANARY}),
    says("AnyOf", NONE, {"anyOf": [{"const": number} for number in range(5)]}, CANARY),
    says("Constant", 'must be "x"', {"const": "x"}, CANARY),
    says("Constant", 'must be {"a":[1,null]}', {"const": {"a": [1, None]}}, CANARY),
    says("Contains", CONTAINS, {"contains": {"type": "null"}}, [CANARY]),
    says("Contains", CONTAINS, {"contains": True, "maxContains": 1}, [CANARY, CANARY]),
    says("Enum", 'must be one of "a", 1, null', {"enum": ["a", 1, None]}, CANARY),
    says("Enum", "must be one of 0, 1, 2, 3, 4, 5, 6, 7, …", {"enum": list(range(100))}, CANARY),
    says("Enum", 'must be one of "' + "x" * 199 + "…", {"enum": ["x" * 5000]}, CANARY),
    says("ExclusiveMaximum", "must be below 5", {"exclusiveMaximum": 5}, NUMBER),
    says("ExclusiveMinimum", "must be above 5", {"exclusiveMinimum": 5}, -NUMBER),
    says("FalseSchema", "must not be present", {"properties": {"a": False}}, {"a": CANARY}),
    says("Format", "is not a valid date-time", {"format": "date-time"}, CANARY),
    says("MaxItems", "has more than 1 item", {"maxItems": 1}, [CANARY, CANARY]),
    says("MaxItems", "has more than 2 items", {"maxItems": 2}, [CANARY] * 3),
    says("Maximum", "above the maximum 5", {"maximum": 5}, NUMBER),
    says("Maximum", "above the maximum 0.5", {"maximum": 0.5}, NUMBER),
    says("Maximum", "above the maximum 18446744073709551616", {"maximum": 2**64}, 2**80),
    says("MaxLength", "longer than 3 characters", {"maxLength": 3}, CANARY),
    says("MaxProperties", "has more than 0 properties", {"maxProperties": 0}, {"a": CANARY}),
    says("MinItems", "has fewer than 3 items", {"minItems": 3}, [CANARY]),
    says("Minimum", "below the minimum 5", {"minimum": 5}, -NUMBER),
    says("MinLength", "shorter than 30 characters", {"minLength": 30}, CANARY),
    says("MinProperties", "has fewer than 1 property", {"minProperties": 1}, {}),
    says("MultipleOf", "must be a multiple of 2", {"multipleOf": 2}, NUMBER),
    says("Not", "has a form that is not allowed", {"not": {"type": "string"}}, CANARY),
    says("OneOfMultipleValid", ANY, {"oneOf": [True, True]}, CANARY),
    says("OneOfNotValid", "expected string or null", {"oneOf": STRING_OR_NULL}, [CANARY]),
    says("OneOfNotValid", NONE, {"oneOf": [{"type": "null", "const": 1}, False]}, CANARY),
    says("Pattern", 'does not match the pattern "^a$"', {"pattern": "^a$"}, CANARY),
    says("Pattern", 'does not match the pattern "' + "x" * 60 + '\\u2026"', {"pattern": "x" * 100}, CANARY),
    says(
        "PropertyNames", "property name \"abc\" is not allowed",
        {"propertyNames": {"maxLength": 2}}, {"abc": CANARY},
    ),
    says("Required", 'missing property "a"', {"required": ["a"]}, {"b": CANARY}),
    says("Required", 'missing property "a"', {"dependentRequired": {"b": ["a"]}}, {"b": CANARY}),
    says("Required", r'missing property "\n\u2028"', {"required": ["\n\u2028"]}, {"b": CANARY}),
    says("Type", "expected integer", {"type": "integer"}, CANARY),
    says("Type", "expected null or array", {"type": ["array", "null"]}, CANARY),
    says("UnevaluatedItems", "has items that are not allowed", {"unevaluatedItems": False}, [CANARY]),
    says("UnevaluatedProperties", 'unexpected property "b"', {"unevaluatedProperties": False}, {"b": CANARY}),
    says("UniqueItems", "has the same item twice", {"uniqueItems": True}, [CANARY, CANARY]),
]  # fmt: skip


def only_error(schema: Any, instance: Any) -> jsonschema_rs.ValidationError:
    (error,) = validator_for(schema)._compiled.iter_errors(instance)
    return error


@pytest.mark.parametrize(("kind", "message", "schema", "instance"), SAID)
def test_a_violation_is_said_without_the_value(kind: str, message: str, schema: Any, instance: Any) -> None:
    (finding,) = validator_for(schema).findings(instance)
    assert finding.message == message
    assert CANARY not in str(finding)
    assert str(NUMBER) not in str(finding)
    assert type(only_error(schema, instance).kind).__name__ == kind


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
@pytest.mark.parametrize(
    ("branches", "instance", "pointer", "message"),
    [
        pytest.param(STRING_OR_NULL, 5, "/x", "expected string or null", id="the value itself"),
        pytest.param(
            VARIANTS, {"kind": 5}, "/x/kind", 'must be "a" or must be "b"', id="one place further down"
        ),
        pytest.param(TWO_PLACES, {"a": 1, "b": 1}, "/x", NONE, id="two places"),
        pytest.param(
            [
                {"properties": {"y": {"anyOf": VARIANTS}}},
                {"properties": {"y": {"properties": {"kind": False}}}},
            ],
            {"y": {"kind": 5}},
            "/x/y/kind",
            'must be "a" or must be "b" or must not be present',
            id="a union in a union",
        ),
    ],
)
def test_a_union_points_to_where_its_sentence_is_true(
    keyword: str, branches: Any, instance: Any, pointer: str, message: str
) -> None:
    (finding,) = validator_for({"properties": {"x": {keyword: branches}}}).findings({"x": instance})
    assert (finding.pointer, finding.message, finding.keyword) == (pointer, message, keyword)


CIRCLE = {
    "type": "object",
    "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}, "fill": {"type": "string"}},
    "required": ["kind", "radius"],
    "additionalProperties": False,
}
SQUARE = {
    "type": "object",
    "properties": {"kind": {"enum": ["square", "box"]}, "side": {"type": "number"}},
    "required": ["kind", "side"],
}
SHAPES = [{"$ref": "#/$defs/circle"}, SQUARE, {"type": "null"}]


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
@pytest.mark.parametrize(
    ("instance", "pointer", "message"),
    [
        pytest.param(
            {"kind": "circle", "radius": CANARY},
            "/x/radius",
            'expected number (closest of the 3 allowed forms: "circle")',
            id="one error",
        ),
        pytest.param(
            {"kind": "circle", "fill": 5, "b": 1},
            "/x",
            f'{NONE}; closest is "circle": /fill: expected string; missing property "radius"; '
            'unexpected property "b"',
            id="several errors",
        ),
        pytest.param(
            {"kind": "box"},
            "/x",
            'missing property "side" (closest of the 3 allowed forms: number 2)',
            id="a form that is written in place",
        ),
        pytest.param(
            {"kind": CANARY, "side": 1},
            "/x/kind",
            'must be one of "circle", "square", "box"',
            id="no variant of that name",
        ),
        pytest.param(CANARY, "/x", "expected object or null", id="no form of that type"),
    ],
)
def test_a_union_names_the_branch_that_comes_closest(
    keyword: str, instance: Any, pointer: str, message: str
) -> None:
    schema = {"properties": {"x": {keyword: SHAPES}}, "$defs": {"circle": CIRCLE}}
    (finding,) = validator_for(schema).findings({"x": instance})
    assert (finding.pointer, finding.message, finding.keyword) == (pointer, message, keyword)
    assert CANARY not in finding.message


def test_of_two_branches_that_are_as_close_none_is_named() -> None:
    (finding,) = validator_for({"anyOf": [{"required": ["a", "b"]}, {"required": ["c", "d"]}]}).findings({})
    assert (finding.pointer, finding.message) == ("", NONE)


def test_the_message_of_a_branch_with_many_errors_is_short() -> None:
    many = {"properties": {f"p{at}": {"type": "null"} for at in range(9)}}
    (finding,) = validator_for({"anyOf": [many, {"type": "array"}]}).findings(
        {f"p{at}": at for at in range(9)}
    )
    assert finding.message.startswith(f"{NONE}; closest is number 1: /p0: expected null; ")
    assert finding.message.endswith(" and 6 more")


# `AdditionalItems` is draft-07's; content is not asserted in 2020-12; the engine that could exceed a limit
# of backtracking is not the one in use.
OUT_OF_REACH = {"AdditionalItems", "BacktrackLimitExceeded", "ContentEncoding", "ContentMediaType"}


def test_every_kind_that_can_occur_is_in_the_table_above() -> None:
    assert {row.values[0] for row in SAID} == _SENTENCES.keys() - OUT_OF_REACH | set(_UNIONS)


def test_no_sentence_is_for_a_kind_that_the_library_does_not_have() -> None:
    assert _SENTENCES.keys() <= set(dir(jsonschema_rs.ValidationErrorKind))


def test_a_kind_of_the_future_breaks_the_schema_and_nothing_else() -> None:
    class Unheard:
        value = CANARY

    assert words(Unheard()) == "breaks the schema"


@pytest.mark.parametrize(
    ("path", "pointer"),
    [
        pytest.param([], "", id="the root"),
        pytest.param(["a", "b"], "/a/b", id="names"),
        pytest.param(["a", 0, 10], "/a/0/10", id="items"),
        pytest.param([""], "/", id="the empty name"),
        pytest.param(["a/b"], "/a~1b", id="a slash"),
        pytest.param(["a~b"], "/a~0b", id="a tilde"),
        pytest.param(["~1"], "/~01", id="what looks like an escape"),
        pytest.param(["a b%c"], "/a b%c", id="nothing else is escaped"),
        pytest.param(["x" * 299], "/" + "x" * 299, id="as long as may be"),
        pytest.param(["x" * 300], "/" + "x" * 299 + "…", id="cut"),
        pytest.param(["/" * 300], "/" + "~1" * 149 + "~…", id="cut after escaping"),
    ],
)
def test_a_pointer_is_escaped_as_rfc_6901_says_and_cut_when_too_long(
    path: list[str | int], pointer: str
) -> None:
    assert escape_pointer(path) == pointer


@given(st.lists(st.text(max_size=8), max_size=8))
def test_a_pointer_leads_back_to_its_path(path: list[str]) -> None:
    parts = escape_pointer(path).split("/")[1:]
    assert [part.replace("~1", "/").replace("~0", "~") for part in parts] == path


@given(st.text())
def test_a_shortened_name_is_one_short_line_of_ascii_that_starts_like_the_name(name: str) -> None:
    short = shorten(name)
    assert short.isascii()
    assert short.isprintable()
    kept = json.loads(short)
    assert kept == name if len(name) <= 60 else kept == name[:60] + "…"
