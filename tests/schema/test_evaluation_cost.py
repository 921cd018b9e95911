"""What evaluating a schema can cost: references that fan out, chains and circles."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.schema.engine import validator_for
from portbook.schema.evaluation_cost import MAX_EVALUATIONS, MAX_NESTING, examine

MISSING = "refers to something that is not in this document: there is nothing at {}; check its spelling"
FANS_OUT = "its references fan out into too many evaluations; refer to each subschema fewer times"
NESTED = "nests more than 500 subschemas on one value; reduce the nesting"
CIRCULAR = "refers to itself without descending into the value; remove the reference"
INTEGER = {"type": "integer"}


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


def doubling(keyword: str, steps: int, wrap: Any = lambda schema: schema) -> Any:
    """A few lines of schema in which every step is evaluated twice as often as the one before."""
    parts = {
        f"d{step}": wrap({keyword: [{"$ref": f"#/$defs/d{step - 1}"}] * 2}) for step in range(1, steps + 1)
    }
    return {"$ref": f"#/$defs/d{steps}", "$defs": {"d0": INTEGER, **parts}}


@pytest.mark.parametrize("keyword", ["allOf", "anyOf", "oneOf"])
@pytest.mark.parametrize("steps", [16, 60, 2000])
def test_references_that_fan_out_are_refused_before_anything_is_compiled(keyword: str, steps: int) -> None:
    (finding,) = examine(doubling(keyword, steps))
    assert (finding.message, finding.keyword) == (FANS_OUT, "$ref")
    assert finding.pointer.startswith("/$defs/d1")


@pytest.mark.parametrize(
    "wrap",
    [
        case("properties", lambda schema: {"properties": {"a": schema}}),
        case("items", lambda schema: {"items": schema}),
        case("not", lambda schema: {"not": schema}),
        case("dependentSchemas", lambda schema: {"dependentSchemas": {"a": schema}}),
    ],
)  # fmt: skip
def test_fanning_out_is_found_through_every_keyword(wrap: Any) -> None:
    (finding,) = examine(doubling("allOf", 40, wrap))
    assert finding.message == FANS_OUT


def test_a_schema_may_be_as_costly_as_the_limit_and_no_more() -> None:
    # One evaluation for the root, one for allOf's each member.
    assert examine({"allOf": [True] * (MAX_EVALUATIONS - 1)}) == []
    (finding,) = examine({"allOf": [True] * MAX_EVALUATIONS})
    assert (finding.pointer, finding.message) == ("", FANS_OUT)


def test_a_few_doublings_are_nothing_to_refuse() -> None:
    assert examine(doubling("allOf", 12)) == []


@pytest.mark.parametrize("keyword", ["unevaluatedProperties", "unevaluatedItems"])
def test_looking_for_what_is_unevaluated_again_and_again_is_counted(keyword: str) -> None:
    def layers(number: int) -> Any:
        steps = {
            f"d{step}": {"allOf": [{"$ref": f"#/$defs/d{step + 1}"}], keyword: False}
            for step in range(number)
        }
        return {"$ref": "#/$defs/d0", "$defs": {**steps, f"d{number}": True}}

    assert examine(layers(6)) == []
    for number in (12, 40, 400):
        assert [finding.message for finding in examine(layers(number))] == [FANS_OUT]


def recursive(steps: int, fan: Any, back: Any) -> Any:
    """So many steps that fan out on one value; the last one leads back to the first for its parts."""
    parts = {f"d{step}": fan({"$ref": f"#/$defs/d{step + 1}"}) for step in range(steps)}
    return {"$ref": "#/$defs/d0", "$defs": {**parts, f"d{steps}": back({"$ref": "#/$defs/d0"})}}


FANS = [
    case("allOf", lambda ref: {"allOf": [ref, ref]}),
    case("anyOf", lambda ref: {"anyOf": [ref, ref]}),
    case("oneOf", lambda ref: {"oneOf": [ref, ref]}),
    case("if", lambda ref: {"if": ref, "then": ref}),
    case("beside a reference", lambda ref: {**ref, "allOf": [ref]}),
    case("unevaluated", lambda ref: {"allOf": [ref], "unevaluatedProperties": False}),
]
BACKS = [
    case("properties", lambda ref: {"properties": {"a": ref}}),
    case("items", lambda ref: {"items": ref}),
    case("additionalProperties", lambda ref: {"additionalProperties": ref}),
    case("unevaluatedProperties", lambda ref: {"unevaluatedProperties": ref}),
]


@pytest.mark.parametrize("fan", FANS)
@pytest.mark.parametrize("back", BACKS)
def test_what_fans_out_and_leads_back_is_refused_sooner(fan: Any, back: Any) -> None:
    # Without the way back, twelve of these doublings are allowed.
    (finding,) = examine(recursive(12, fan, back))
    assert finding.message == FANS_OUT
    assert examine(recursive(3, fan, back)) == []


@pytest.mark.timeout(20)
@pytest.mark.parametrize("fan", FANS)
@pytest.mark.parametrize("back", BACKS)
@pytest.mark.parametrize("steps", range(1, 14))
def test_a_small_value_that_nests_has_its_verdict_soon(fan: Any, back: Any, steps: int) -> None:
    """Not an assertion about speed: without the limit, some of these take minutes."""
    schema = recursive(steps, fan, back)
    if examine(schema):
        return
    validator = validator_for(schema)
    for leaf in (3, {}, []):
        members, items = leaf, leaf
        for _ in range(40):
            members, items = {"a": members}, [items]
        for value in (members, items):
            assert validator.is_valid(value) == (not validator.findings(value))


@pytest.mark.parametrize(
    "schema",
    [
        case("a tree", {"properties": {key: {"$ref": "#"} for key in ("left", "right")}}),
        case(
            "a filter of filters",
            {
                "oneOf": [
                    {"properties": {"type": {"const": kind}, "filters": {"items": {"$ref": "#"}}}}
                    for kind in ("and", "or", "not", "any", "all", "none")
                ]
            },
        ),
        case(
            "objects that hold each other or their ids",
            {
                "$ref": "#/$defs/o0",
                "$defs": {
                    f"o{n}": {
                        "properties": {
                            f"p{m}": {"anyOf": [{"type": "string"}, {"$ref": f"#/$defs/o{m}"}]}
                            for m in range(20)
                        }
                    }
                    for n in range(20)
                },
            },
        ),
        case(
            "resources that extend one that holds resources",
            {
                "anyOf": [{"$ref": f"#/$defs/r{n}"} for n in range(8)],
                "$defs": {
                    "base": {"properties": {"contained": {"items": {"$ref": "#"}}}},
                    **{f"r{n}": {"allOf": [{"$ref": "#/$defs/base"}]} for n in range(8)},
                },
            },
        ),
        case("schemas", {"$ref": "https://json-schema.org/draft/2020-12/schema"}),
    ],
)
def test_recursion_as_people_write_it_is_allowed(schema: Any) -> None:
    assert examine(schema) == []


CHAIN = 10_000


def chain(length: int, link: Any) -> Any:
    """So many subschemas, each of which refers to the next; the last one allows integers."""
    steps = {f"d{step}": link({"$ref": f"#/$defs/d{step + 1}"}) for step in range(length)}
    return {"$ref": "#/$defs/d0", "$defs": {**steps, f"d{length}": INTEGER}}


ON_THE_SAME_VALUE = [
    case("references", lambda ref: ref),
    case("allOf", lambda ref: {"allOf": [ref]}),
    case("anyOf", lambda ref: {"anyOf": [ref, False]}),
    case("not", lambda ref: {"not": ref}),
    case("if", lambda ref: {"if": ref}),
]
ON_A_PART_OF_IT = [
    case("properties", lambda ref: {"properties": {"a": ref}}),
    case("items", lambda ref: {"items": ref}),
]


@pytest.mark.parametrize("link", [*ON_THE_SAME_VALUE, *ON_A_PART_OF_IT])
def test_a_chain_of_ten_thousand_references_is_followed_to_its_end(link: Any) -> None:
    broken = chain(CHAIN, link)
    del broken["$defs"][f"d{CHAIN}"]
    assert [(finding.message, finding.keyword) for finding in examine(broken)] == [
        (MISSING.format(f"#/$defs/d{CHAIN}"), "$ref")
    ]


@pytest.mark.parametrize("link", ON_THE_SAME_VALUE)
def test_a_chain_on_which_the_library_would_overflow_its_stack_is_refused(link: Any) -> None:
    assert [finding.message for finding in examine(chain(CHAIN, link))] == [NESTED]


@pytest.mark.parametrize("link", ON_A_PART_OF_IT)
def test_a_chain_that_descends_into_the_value_is_as_deep_as_the_value(link: Any) -> None:
    assert examine(chain(CHAIN, link)) == []


def test_a_chain_may_be_as_long_as_the_limit_and_no_longer() -> None:
    # The root and the last one count too.
    longest = chain(MAX_NESTING - 2, lambda ref: ref)
    validator = validator_for(longest)
    assert [validator.is_valid(value) for value in (1, "a")] == [True, False]
    assert len(validator.findings("a")) == 1
    (finding,) = examine(chain(MAX_NESTING - 1, lambda ref: ref))
    assert (finding.pointer, finding.message) == ("", NESTED)


def test_a_circle_of_ten_thousand_references_is_found() -> None:
    steps = {f"d{step}": {"$ref": f"#/$defs/d{(step + 1) % CHAIN}"} for step in range(CHAIN)}
    (finding,) = examine({"$ref": "#/$defs/d0", "$defs": steps})
    assert finding.message == CIRCULAR
