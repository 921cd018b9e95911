"""What is told about a document that costs too much to explain, and that it never costs too much."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from portbook.canonical import json_bytes
from portbook.schema.engine import validator_for
from portbook.schema.explanation_cost import explanation_of
from portbook.schema.json_schema_drafts import DIALECT
from support.counts import count
from support.random_schemas import SCHEMAS, VALUES

# Not an assertion about speed: what takes exponential time never comes back, and would hang the suite.
comes_back = pytest.mark.timeout(20)

STRING = {"type": "string"}
HERE = {"$ref": "#"}


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


def nested(depth: int, leaf: Any) -> Any:
    for _ in range(depth):
        leaf = {"a": leaf}
    return leaf


NULL = {"type": "null"}
TREE = {"items": {"$ref": "#/$defs/tree"}}


@pytest.mark.parametrize(
    ("schema", "max_bytes", "has_twin"),
    [
        case("nothing to it", STRING, 4_096, False),
        case("everything", True, 4_096, False),
        case("two checks of a value", {"allOf": [STRING]}, 4_096, False),
        case("many required names", {"required": [str(at) for at in range(31)]}, 1024, False),
        case(
            "behind references", {"allOf": [{"$ref": "#/$defs/a"}] * 10, "$defs": {"a": STRING}}, 1560, False
        ),
        case("a small union", {"properties": {"a": {"anyOf": [STRING, NULL]}}}, 4_096, True),
        case("a large union", {"oneOf": [{"const": at} for at in range(1000)]}, 32, True),
        case(
            "a union of much", {"anyOf": [{"properties": dict.fromkeys("abcdef", STRING)}, True]}, 3640, True
        ),
        case("a list of itself", {"items": HERE}, 4_096, False),
        case("a tree", {"properties": {"left": HERE, "right": HERE}}, 4_096, False),
        case("lists and objects", {"items": HERE, "additionalProperties": HERE}, 4_096, False),
        case(
            "maybe a tree", {"anyOf": [{"$ref": "#/$defs/tree"}, NULL], "$defs": {"tree": TREE}}, 4_096, True
        ),
        case("not a list of itself", {"not": {"items": HERE}}, 4_096, False),
        case("a union of itself", {"anyOf": [STRING, {"items": HERE}]}, 0, True),
        case("twice itself", {"properties": {"a": {"allOf": [HERE, HERE]}}}, 0, True),
        case("by two keywords", {"items": HERE, "contains": HERE}, 0, True),
        case("by two patterns", {"patternProperties": {"a": HERE, "b": HERE}}, 0, True),
        case(
            "by name and by pattern", {"properties": {"a": HERE}, "patternProperties": {"b": HERE}}, 0, True
        ),
        case(
            "here and elsewhere",
            {"items": HERE, "$ref": "#/$defs/b", "$defs": {"b": {"items": HERE}}},
            0,
            True,
        ),
    ],
)
def test_a_document_is_explained_in_full_up_to_a_size_that_its_schema_decides(
    schema: Any, max_bytes: int, has_twin: bool
) -> None:
    explanation = explanation_of(schema, DIALECT)
    assert explanation.max_bytes == max_bytes
    assert (explanation.twin is not None) is has_twin


@pytest.mark.parametrize("more", [0, 1])
def test_up_to_that_size_every_violation_is_told_and_above_it_the_first(more: int) -> None:
    schema = {"properties": {"a": {"type": "null"}, "b": {"type": "null"}}}
    payload = {"a": 1, "b": 2, "c": ""}
    payload["c"] = "x" * (4_096 + more - len(json_bytes(payload)))
    assert len(validator_for(schema).findings(payload)) == 2 - more


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
def test_above_it_a_union_is_told_without_its_branches(keyword: str) -> None:
    schema = {"properties": {"a": {keyword: [{"items": STRING}, {"type": "null"}]}}}
    (finding,) = validator_for(schema).findings({"a": [1] * 100_000})
    assert (finding.pointer, finding.message, finding.keyword) == (
        "/a",
        "matches none of the allowed forms",
        keyword,
    )
    assert finding.schema_pointer == f"/properties/a/{keyword}"


KINDS = [
    {"type": "object", "properties": {"a": HERE, "kind": {"const": kind}}, "required": ["kind"]}
    for kind in "xyz"
]
DEPENDENT = {"properties": {"a": HERE}, "dependentSchemas": {"a": {"properties": {"a": HERE}}}}
DYNAMIC = {"$dynamicAnchor": "n", "properties": {"a": {"allOf": [{"$dynamicRef": "#n"}] * 2}}}
NONE, BLUNT = "matches none of the allowed forms", "has a form that is not allowed"


@comes_back
@pytest.mark.parametrize("depth", [1, 12, 200])
@pytest.mark.parametrize(
    ("schema", "pointer", "message"),
    [
        case("anyOf", {"anyOf": KINDS}, "", NONE),
        case("oneOf", {"oneOf": KINDS}, "", NONE),
        case("allOf", {"type": "object", "properties": {"a": {"allOf": [HERE, HERE]}}}, "/a", BLUNT),
        case("patterns", {"type": "object", "patternProperties": {"a": HERE, "^a": HERE}}, "/a", BLUNT),
        case("dependentSchemas", {"type": "object", **DEPENDENT}, "/a", BLUNT),
        case("dynamic", {"type": "object", **DYNAMIC}, "/a", BLUNT),
    ],
)
def test_a_schema_that_comes_back_to_itself_in_two_ways_is_still_explained(
    schema: Any, pointer: str, message: str, depth: int
) -> None:
    (finding,) = validator_for(schema).findings(nested(depth, 5))
    assert (finding.pointer, finding.message) == (pointer, message)


@comes_back
def test_what_is_wrong_beside_a_deep_value_that_is_right_is_told() -> None:
    schema = {"type": "object", "properties": {"a": {"allOf": [HERE, HERE]}, "z": {"type": "integer"}}}
    (finding,) = validator_for(schema).findings({"a": nested(190, {}), "z": "x"})
    assert (finding.pointer, finding.message) == ("/z", "expected integer")


def test_a_tree_without_unions_is_explained_to_its_leaves() -> None:
    schema = {"type": "object", "properties": {"a": HERE, "b": HERE}}
    assert [finding.pointer for finding in validator_for(schema).findings({"a": {"b": 1}, "b": 2})] == [
        "/a/b",
        "/b",
    ]


OPTIONAL_LIST = {"properties": {"a": {"anyOf": [{"items": STRING}, NULL]}}}
CONSTANTS = [{"const": str(at)} for at in range(1000)]


@comes_back
@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        case("half a million wrong items", OPTIONAL_LIST, {"a": [1] * 500_000}),
        case("many branches for many items", {"items": {"anyOf": CONSTANTS}}, [1] * 8000),
        case("many checks for many items", {"items": {"allOf": CONSTANTS}}, [1] * 8000),
        case(
            "many names for many items", {"items": {"required": [str(at) for at in range(1000)]}}, [{}] * 5000
        ),
    ],
)
def test_a_refusal_stays_cheap(schema: Any, payload: Any) -> None:
    assert len(validator_for(schema).findings(payload)) == 1


def test_a_reference_into_a_branch_does_not_spoil_the_explanation() -> None:
    schema = {
        "anyOf": [{"properties": {"a": STRING}}, {"items": HERE}],
        "properties": {"b": {"$ref": "#/anyOf/0/properties/a"}},
    }
    (finding,) = validator_for(schema).findings({"b": 1})
    assert (finding.pointer, finding.message) == ("", "breaks the schema")


@pytest.mark.soak("random schemas")
@settings(max_examples=count("random schemas"), suppress_health_check=[HealthCheck.too_slow])
@given(SCHEMAS, VALUES)
def test_the_twin_gives_the_same_verdicts(schema: Any, value: Any) -> None:
    twin = explanation_of(schema, DIALECT).twin
    if twin is not None:
        assert validator_for(twin).is_valid(value) is validator_for(schema).is_valid(value)


def test_the_schema_itself_is_left_as_it_is() -> None:
    schema = {"anyOf": [{"items": HERE}, {"$ref": "#/$defs/a"}], "$defs": {"a": STRING}}
    before = json.dumps(schema)
    explanation_of(schema, DIALECT)
    assert json.dumps(schema) == before


@comes_back
@pytest.mark.parametrize("effort", [1, 8, 1_000_000])
def test_no_effort_makes_an_endless_explanation(effort: int) -> None:
    (finding,) = validator_for({"anyOf": KINDS}).findings_of_own(nested(20, 5), effort)
    assert (finding.pointer, finding.message) == ("", NONE)


def test_with_more_effort_more_is_told() -> None:
    validator = validator_for({"items": STRING})
    payload = [1] * 5_000
    assert len(validator.findings(payload)) == 1
    assert len(validator.findings_of_own(payload, 1)) == 1
    assert len(validator.findings_of_own(payload, 8)) == 5_000


def test_long_texts_do_not_count_as_many_values() -> None:
    validator = validator_for({"properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}})
    payload = {"a": "x" * 100_000, "b": "y"}
    assert len(validator.findings(payload)) == 1
    assert [finding.pointer for finding in validator.findings_of_own(payload, 1)] == ["/a", "/b"]


def test_what_is_allowed_has_no_findings() -> None:
    validator = validator_for({"items": STRING})
    assert validator.findings_of_own(["a"] * 5_000, 1) == ()
