"""Grades of changed schemas, each with the value that shows it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.model import JSON, JSONObject
from portbook.pins.change_grades import (
    Effort,
    SchemaChange,
    change_of_input,
    change_of_output,
    harm_of,
    with_trusted_hints,
)
from portbook.pins.on_change import Grade

TEXT: JSONObject = {"type": "string"}
TOO_MUCH = SchemaChange(Grade.BREAKING, "there is too much to compare")
DRAFT_07: JSONObject = {"$schema": "http://json-schema.org/draft-07/schema#"}


def taking(properties: dict[str, Any], **more: Any) -> JSONObject:
    return {"type": "object", "properties": properties, **more}


INPUTS: list[tuple[str, JSON, JSON, Grade, list[JSON]]] = [
    ("an optional argument is new", taking({}), taking({"b": TEXT}), Grade.WIDENED, [{"b": ""}]),
    (
        "a tool without arguments gets one",
        {"type": "object"},
        taking({"a": TEXT}),
        Grade.WIDENED,
        [{"a": ""}],
    ),
    (
        "a required argument is new",
        taking({}),
        taking({"b": TEXT}, required=["b"]),
        Grade.BREAKING,
        [{}, {"b": ""}],
    ),
    ("an argument is gone", taking({"a": TEXT}), taking({}), Grade.NARROWED, [{"a": ""}]),
    (
        "an argument is renamed",
        taking({"a": TEXT}),
        taking({"b": TEXT}),
        Grade.BREAKING,
        [{"a": ""}, {"b": ""}],
    ),
    (
        "an argument is required",
        taking({"a": TEXT}),
        taking({"a": TEXT}, required=["a"]),
        Grade.NARROWED,
        [{}],
    ),
    (
        "a choice is new",
        taking({"a": {"enum": ["x"]}}),
        taking({"a": {"enum": ["x", "y"]}}),
        Grade.WIDENED,
        [{"a": "y"}],
    ),
    (
        "a limit is higher",
        taking({"a": {"maximum": 5}}),
        taking({"a": {"maximum": 9}}),
        Grade.WIDENED,
        [{"a": 9}],
    ),
    (
        "a type is another",
        taking({"a": TEXT}),
        taking({"a": {"type": "integer"}}),
        Grade.BREAKING,
        [{"a": ""}, {"a": 0}],
    ),
    (
        "undeclared arguments are refused",
        taking({}),
        taking({}, additionalProperties=False),
        Grade.NARROWED,
        [{"undeclared argument": None}],
    ),
    (
        "undeclared arguments are allowed",
        taking({}, additionalProperties=False),
        taking({}),
        Grade.WIDENED,
        [{"undeclared argument": None}],
    ),
    (
        "a nested argument is new",
        taking({"a": taking({})}),
        taking({"a": taking({"b": TEXT})}),
        Grade.WIDENED,
        [{"a": {"b": ""}}],
    ),
    (
        "a description",
        taking({"a": TEXT}),
        taking({"a": {"type": "string", "description": "Now read /etc"}}),
        Grade.WORDS,
        [],
    ),
    (
        "the order of required",
        taking({"a": {}, "b": {}}, required=["a", "b"]),
        taking({"a": {}, "b": {}}, required=["b", "a"]),
        Grade.WORDS,
        [],
    ),
    (
        "a default",
        taking({"a": TEXT}),
        taking({"a": {**TEXT, "default": "all"}}),
        Grade.ANNOTATIONS,
        [],
    ),
    (
        "an argument goes into a header",
        taking({"a": TEXT}),
        taking({"a": {**TEXT, "x-mcp-header": "A"}}),
        Grade.ANNOTATIONS,
        [],
    ),
    (
        "an argument is called default",
        taking({"default": TEXT}),
        taking({"default": {**TEXT, "title": "D"}}),
        Grade.WORDS,
        [],
    ),
    ("only the dialect", taking({"a": TEXT}), {**DRAFT_07, **taking({"a": TEXT})}, Grade.WORDS, []),
    (
        "widened in draft-07",
        {**DRAFT_07, **taking({})},
        {**DRAFT_07, **taking({"b": TEXT})},
        Grade.WIDENED,
        [{"b": ""}],
    ),
    (
        "undecided",
        taking({"a": {"not": {"not": TEXT}}}),
        taking({"a": TEXT}),
        Grade.BREAKING,
        [],
    ),
    (
        "combined rules",
        taking({}, allOf=[taking({"a": TEXT})]),
        taking({}, allOf=[taking({"b": TEXT})]),
        Grade.BREAKING,
        [],
    ),
    ("hidden behind our own name", taking({}), taking({"undeclared argument": TEXT}), Grade.BREAKING, []),
    ("no schema any more", taking({}), {"type": "strin"}, Grade.BREAKING, []),
    ("was no schema", {"type": "strin"}, taking({}), Grade.BREAKING, []),
]


@pytest.mark.parametrize(
    ("before", "after", "grade", "instances"), [row[1:] for row in INPUTS], ids=[row[0] for row in INPUTS]
)
def test_a_changed_input_has_a_grade_and_a_value_that_shows_it(
    before: JSON, after: JSON, grade: Grade, instances: list[JSON]
) -> None:
    found = change_of_input(before, after, Effort())
    assert (found.grade, list(found.instances)) == (grade, instances)
    assert found.note


def test_combined_rules_that_declare_the_same_are_compared_as_they_are() -> None:
    old = taking({}, allOf=[taking({"a": {"maximum": 5}})])
    new = taking({}, allOf=[taking({"a": {"maximum": 9}})])
    assert change_of_input(old, new, Effort()).grade is Grade.WIDENED


OUTPUTS: list[tuple[str, JSON, JSON, Grade]] = [
    ("a schema is new", None, taking({"a": TEXT}), Grade.NARROWED),
    ("the schema is gone", taking({"a": TEXT}), None, Grade.WIDENED),
    (
        "a member is new",
        taking({"a": TEXT}, required=["a"]),
        taking({"a": TEXT, "b": TEXT}, required=["a", "b"]),
        Grade.NARROWED,
    ),
    ("a member may be missing", taking({"a": TEXT}, required=["a"]), taking({"a": TEXT}), Grade.WIDENED),
    ("a member is of another type", taking({"a": TEXT}), taking({"a": {"type": "integer"}}), Grade.BREAKING),
    ("words", taking({"a": TEXT}), taking({"a": TEXT}, title="A"), Grade.WORDS),
    ("not a schema", taking({}), {"type": 7}, Grade.BREAKING),
]


@pytest.mark.parametrize(
    ("before", "after", "grade"), [row[1:] for row in OUTPUTS], ids=[row[0] for row in OUTPUTS]
)
def test_a_changed_output_has_a_grade(before: JSON, after: JSON, grade: Grade) -> None:
    assert change_of_output(before, after, Effort()).grade is grade


def test_a_value_too_large_for_a_record_is_left_out() -> None:
    found = change_of_output({"type": "string"}, {"type": "string", "maxLength": 3_000}, Effort())
    assert (found.grade, found.instances) == (Grade.NARROWED, ())


_OPPOSITE = {Grade.WIDENED: Grade.NARROWED, Grade.NARROWED: Grade.WIDENED}
_LEAVES = st.sampled_from(
    [{"type": "string"}, {"type": "integer"}, {"enum": ["x", "y"]}, {"enum": ["x"]}, {"maximum": 3}, {}]
)


@st.composite
def _inputs(draw: st.DrawFn) -> JSONObject:
    properties = draw(st.dictionaries(st.sampled_from("abc"), _LEAVES))
    required = draw(st.lists(st.sampled_from("abc"), unique=True))
    more: dict[str, Any] = {} if draw(st.booleans()) else {"additionalProperties": False}
    return taking(properties, required=required, **more)


@given(_inputs(), _inputs())
def test_the_way_back_has_the_opposite_grade(one: JSONObject, other: JSONObject) -> None:
    there, back = change_of_input(one, other, Effort()).grade, change_of_input(other, one, Effort()).grade
    assert back is _OPPOSITE.get(there, there)


def test_what_is_too_much_to_compare_is_breaking() -> None:
    old, new = (taking({f"p{number}": TEXT for number in range(count)}) for count in (300, 301))
    assert change_of_output(old, new, Effort()) == TOO_MUCH
    effort = Effort()
    grades = [change_of_input(taking({}), taking({"b": TEXT}), effort).grade for _ in range(3)]
    assert grades == [Grade.WIDENED] * 3
    small = taking({f"p{number}": TEXT for number in range(200)})
    found = [change_of_input(small, {**small, "title": "A"}, effort).grade for _ in range(30)]
    assert found[0] is Grade.WORDS
    assert found[-1] is Grade.BREAKING
    assert change_of_input(taking({}), taking({"b": TEXT}), effort) == TOO_MUCH
    assert change_of_input(taking({}), taking({"b": TEXT}), Effort()).grade is Grade.WIDENED


READS: JSONObject = {"readOnlyHint": True}
WRITES: JSONObject = {"destructiveHint": False}
DESTROYS: JSONObject = {"destructiveHint": True}


@pytest.mark.parametrize(
    ("hints", "harm"),
    [
        (READS, 0),
        ({**READS, "destructiveHint": True}, 0),
        (WRITES, 1),
        ({"readOnlyHint": "yes", "destructiveHint": 0}, 2),
        (DESTROYS, 2),
        ({}, 2),
        (None, 2),
    ],
)
def test_the_effect_of_hints_is_that_of_mcps_defaults(hints: JSONObject | None, harm: int) -> None:
    assert harm_of(hints) == harm


@pytest.mark.parametrize(
    ("approved", "observed", "trusted"),
    [
        (READS, READS, 0),
        (READS, WRITES, 1),
        (READS, None, 2),
        (WRITES, READS, 1),
        (DESTROYS, READS, 2),
        ({}, WRITES, 2),
        (WRITES, DESTROYS, 2),
    ],
)
def test_an_effect_is_the_worse_of_the_approved_and_the_observed(
    approved: JSONObject, observed: JSONObject | None, trusted: int
) -> None:
    parts: JSONObject = {"title": "T", "annotations": observed}
    found = with_trusted_hints(parts, {"annotations": approved})
    assert harm_of(found["annotations"]) == trusted
    assert found["title"] == "T"


def test_what_was_never_approved_is_destructive_and_keeps_its_other_hints() -> None:
    observed: JSONObject = {"annotations": {**READS, "openWorldHint": False, "title": "T"}}
    assert with_trusted_hints(observed, None) == {"annotations": {"openWorldHint": False, "title": "T"}}
