"""References: where they lead, and which lead nowhere."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.errors import Finding
from portbook.schema.engine import BadSchema, validator_for
from portbook.schema.evaluation_cost import examine
from portbook.schema.json_schema_drafts import DIALECT, DRAFT_07, check_dialect
from portbook.schema.references import bundle, inlined_references

OUTSIDE = "refers to a different document, {}, which is never fetched; copy it under $defs"
MISSING = "refers to something that is not in this document: there is nothing at {}; check its spelling"
CIRCULAR = "refers to itself without descending into the value; remove the reference"
DIALECTS = check_dialect({"$schema": DRAFT_07})[0].message

INTEGER = {"type": "integer"}
STRING = {"type": "string"}
ADDRESS = "http://e.test/a"
URN = "urn:example:a"


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


def refused(name: str, pointer: str, message: str, schema: Any, named: str | None = None) -> Any:
    """A case whose message names what `pointer` refers to: the reference as it is written, or `named`."""
    reference = schema
    for part in pointer.split("/")[1:]:
        reference = reference[part.replace("~1", "/")]
    return pytest.param(schema, pointer, message.format(named or reference), id=name)


# Every schema here allows integers and nothing else, if its reference leads where it should.
RESOLVED = [
    case("a pointer", {"$ref": "#/$defs/a", "$defs": {"a": INTEGER}}),
    case("a chain", {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": INTEGER}}),
    case("draft-07's definitions", {"$ref": "#/definitions/a", "definitions": {"a": INTEGER}}),
    case("an unknown keyword", {"$ref": "#/x-parts/a", "x-parts": {"a": INTEGER}}),
    case("an item of a list", {"$ref": "#/$defs/a/allOf/1", "$defs": {"a": {"allOf": [STRING, INTEGER]}}}),
    case("item 10", {"$ref": "#/$defs/a/anyOf/10", "$defs": {"a": {"anyOf": [STRING] * 10 + [INTEGER]}}}),
    case("a slash in a name", {"$ref": "#/$defs/a~1b", "$defs": {"a/b": INTEGER, "a": STRING}}),
    case("a tilde in a name", {"$ref": "#/$defs/a~0b", "$defs": {"a~b": INTEGER}}),
    case("~01 is not a slash", {"$ref": "#/$defs/~01", "$defs": {"~1": INTEGER, "/": STRING}}),
    case("a percent sign", {"$ref": "#/$defs/a%25b", "$defs": {"a%b": INTEGER}}),
    case("an encoded percent sign", {"$ref": "#/$defs/a%2525b", "$defs": {"a%25b": INTEGER, "a%b": STRING}}),
    case("a space", {"$ref": "#/$defs/a%20b", "$defs": {"a b": INTEGER}}),
    case("a letter beyond ASCII", {"$ref": "#/$defs/%C3%A9", "$defs": {"é": INTEGER}}),
    case("the empty name", {"$ref": "#/$defs/", "$defs": {"": INTEGER}}),
    case("a name of digits", {"$ref": "#/$defs/0", "$defs": {"0": INTEGER}}),
    case("an anchor", {"$ref": "#here", "$defs": {"a": {"$anchor": "here", **INTEGER}}}),
    case("a dynamic anchor", {"$dynamicRef": "#here", "$defs": {"a": {"$dynamicAnchor": "here", **INTEGER}}}),
    case("dynamic, to an anchor", {"$dynamicRef": "#a", "$defs": {"a": {"$anchor": "a", **INTEGER}}}),
    case("an address", {"$ref": ADDRESS, "$defs": {"a": {"$id": ADDRESS, **INTEGER}}}),
    case("a urn", {"$ref": URN, "$defs": {"a": {"$id": URN, **INTEGER}}}),
    case(
        "a pointer below an address",
        {"$ref": f"{ADDRESS}#/$defs/b", "$defs": {"a": {"$id": ADDRESS, "$defs": {"b": INTEGER}}}},
    ),
    case(
        "an anchor below an address",
        {
            "$ref": "http://e.test/a#b",
            "$defs": {"a": {"$id": ADDRESS, "$defs": {"b": {"$anchor": "b", **INTEGER}}}},
        },
    ),
    case(
        "an address relative to the root's",
        {"$id": "http://e.test/root/", "$ref": "leaf", "$defs": {"a": {"$id": "leaf", **INTEGER}}},
    ),
    case(
        "addresses within addresses",
        {
            "$id": "http://e.test/",
            "$ref": "one/two",
            "$defs": {"a": {"$id": "one/", "$defs": {"b": {"$id": "two", **INTEGER}}}},
        },
    ),
    case("relative without a base", {"$ref": "leaf", "$defs": {"a": {"$id": "leaf", **INTEGER}}}),
    case(
        "a pointer starts at the nearest address",
        {
            "$ref": ADDRESS,
            "$defs": {"a": {"$id": ADDRESS, "$ref": "#/$defs/b", "$defs": {"b": INTEGER}}, "b": STRING},
        },
    ),
    case(
        "a pointer starts at the nearest urn",
        {
            "$ref": URN,
            "$defs": {"a": {"$id": URN, "$ref": "#/$defs/b", "$defs": {"b": INTEGER}}, "b": STRING},
        },
    ),
    case(
        "an anchor belongs to the nearest urn",
        {
            "$ref": URN,
            "$defs": {
                "a": {"$id": URN, "$ref": "#b", "$defs": {"b": {"$anchor": "b", **INTEGER}}},
                "b": {"$anchor": "b", **STRING},
            },
        },
    ),
    case("its own address", {"$id": ADDRESS, "$ref": "a#/$defs/b", "$defs": {"b": INTEGER}}),
    case("its own urn", {"$id": URN, "$ref": "#/$defs/b", "$defs": {"b": INTEGER}}),
    case("its own urn in full", {"$id": URN, "$ref": f"{URN}#/$defs/b", "$defs": {"b": INTEGER}}),
]  # fmt: skip


@pytest.mark.parametrize("schema", RESOLVED)
def test_a_reference_inside_the_document_leads_to_its_target(schema: Any) -> None:
    assert examine(schema) == []
    validator = validator_for(schema)
    assert [validator.is_valid(value) for value in (1, "a")] == [True, False]


@pytest.mark.parametrize(
    ("reference", "good", "bad"),
    [
        case("the dialect itself", DIALECT, {"type": "string"}, {"type": "banana"}),
        case("with an empty fragment", DIALECT + "#", {"type": "string"}, {"type": "banana"}),
        case(
            "a part of a vocabulary",
            "https://json-schema.org/draft/2020-12/meta/validation#/$defs/simpleTypes", "string", "banana",
        ),
        *(
            case(name, f"https://json-schema.org/draft/2020-12/meta/{name}", good, bad)
            for name, good, bad in (
                ("core", {"$id": "x"}, {"$id": 5}),
                ("applicator", {"allOf": [True]}, {"allOf": []}),
                ("unevaluated", {"unevaluatedItems": True}, {"unevaluatedItems": 5}),
                ("validation", {"minLength": 5}, {"minLength": -5}),
                ("meta-data", {"title": "x"}, {"title": 5}),
                ("format-annotation", {"format": "x"}, {"format": 5}),
                ("content", {"contentEncoding": "x"}, {"contentEncoding": 5}),
            )
        ),
    ],
)  # fmt: skip
def test_a_reference_to_the_dialects_own_schemas_is_allowed(reference: str, good: Any, bad: Any) -> None:
    validator = validator_for({"$ref": reference})
    assert [validator.is_valid(value) for value in (good, bad)] == [True, False]


@pytest.mark.parametrize(
    ("schema", "pointer", "message"),
    [
        refused("http", "/$ref", OUTSIDE, {"$ref": "http://127.0.0.1:9/s.json"}),
        refused("https", "/$ref", OUTSIDE, {"$ref": "https://e.test/s.json#/$defs/a"}, "https://e.test/s.json"),
        refused("a file", "/$ref", OUTSIDE, {"$ref": "file:///etc/passwd"}),
        refused("a file without slashes", "/$ref", OUTSIDE, {"$ref": "file:secret.json"}),
        refused("no scheme", "/$ref", MISSING, {"$ref": "//e.test/s.json"}),
        refused("a relative path", "/$ref", MISSING, {"$ref": "other.json"}),
        refused("a path upwards", "/$ref", MISSING, {"$ref": "../../etc/passwd"}),
        refused("an unknown urn", "/$ref", MISSING, {"$ref": "urn:example:nowhere"}),
        refused(
            "relative to its own", "/$ref", OUTSIDE, {"$id": "http://127.0.0.1:9/", "$ref": "x.json"},
            "http://127.0.0.1:9/x.json",
        ),
        refused(
            "another dialect", "/$ref", OUTSIDE, {"$ref": "http://json-schema.org/draft-07/schema#"},
            "http://json-schema.org/draft-07/schema",
        ),
        refused("missing below its own", "/$ref", MISSING, {"$id": ADDRESS, "$ref": "#/$defs/b"}),
        refused(
            "missing in another that is here", "/$ref", MISSING,
            {"$id": "http://e.test/", "$ref": "a#/x", "$defs": {"a": {"$id": ADDRESS}}}, f"{ADDRESS}#/x",
        ),
        refused("beside the dialect", "/$ref", OUTSIDE, {"$ref": "https://json-schema.org/draft/2020-12/other"}),
        refused("a missing name", "/$ref", MISSING, {"$ref": "#/$defs/b", "$defs": {"a": True}}),
        refused("a missing anchor", "/$ref", MISSING, {"$ref": "#b", "$defs": {"a": {"$anchor": "a"}}}),
        refused("a missing dynamic anchor", "/$dynamicRef", MISSING, {"$dynamicRef": "#b"}),
        refused("behind a list", "/$ref", MISSING, {"$ref": "#/allOf/1", "allOf": [True]}),
        refused("a list's name", "/$ref", MISSING, {"$ref": "#/allOf/x", "allOf": [True]}),
        refused("a negative item", "/$ref", MISSING, {"$ref": "#/allOf/-1", "allOf": [True]}),
        refused(
            "5,000 digits", "/$ref", MISSING, {"$ref": "#/allOf/" + "1" * 5000, "allOf": [True]},
            "#/allOf/" + "1" * 247 + "…",
        ),
        refused("below a boolean", "/$ref", MISSING, {"$ref": "#/$defs/a/b", "$defs": {"a": True}}),
        refused(
            "somebody else's anchor", "/$ref", MISSING,
            {"$ref": "#b", "$defs": {"a": {"$id": ADDRESS, "$anchor": "b"}}},
        ),
        refused(
            "deep inside", "/properties/a~1b/items/$ref", MISSING,
            {"properties": {"a/b": {"items": {"$ref": "#x"}}}},
        ),
        refused("in a part nobody uses", "/$defs/a/$ref", OUTSIDE, {"$defs": {"a": {"$ref": "http://e.test/"}}}),
        refused(
            "below an unknown keyword", "/x-a/items/$ref", OUTSIDE,
            {"$ref": "#/x-a", "x-a": {"items": {"$ref": "http://e.test/"}}},
        ),
    ],
)  # fmt: skip
def test_a_reference_that_leads_out_or_nowhere_is_refused_where_it_stands(
    schema: Any, pointer: str, message: str
) -> None:
    keyword = pointer.rsplit("/", 1)[-1]
    assert examine(schema) == [Finding(pointer, message, keyword, "")]
    with pytest.raises(BadSchema) as raised:
        validator_for(schema)
    assert raised.value.findings == (Finding(pointer, message, keyword, ""),)


ONE = [
    "additionalProperties", "items", "contains", "propertyNames", "unevaluatedItems", "unevaluatedProperties",
    "contentSchema", "not", "if", "then", "else",
]  # fmt: skip
MANY = ["prefixItems", "allOf", "anyOf", "oneOf"]
NAMED = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"]


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        *(case(keyword, {keyword: {"$ref": "#x"}}, f"/{keyword}") for keyword in ONE),
        *(case(keyword, {keyword: [True, {"$ref": "#x"}]}, f"/{keyword}/1") for keyword in MANY),
        *(case(keyword, {keyword: {"a": {"$ref": "#x"}}}, f"/{keyword}/a") for keyword in NAMED),
    ],
)
def test_references_are_found_below_every_keyword(schema: Any, pointer: str) -> None:
    assert examine(schema) == [Finding(f"{pointer}/$ref", MISSING.format("#x"), "$ref", "")]


def test_every_reference_that_leads_nowhere_is_named() -> None:
    schema = {"properties": {name: {"$ref": f"#/$defs/{name}"} for name in "abc"}}
    assert sorted(finding.pointer for finding in examine(schema)) == [
        f"/properties/{name}/$ref" for name in "abc"
    ]


@pytest.mark.parametrize(
    "pointer",
    ["/$defs/a", "/properties/a", "/allOf/0", "/properties/a/items", "/x-parts/a"],
)
def test_a_schema_inside_of_another_may_not_name_another_dialect(pointer: str) -> None:
    schema: Any = {"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": [INTEGER]}
    for part in reversed(pointer.split("/")[1:]):
        schema = [schema] if part == "0" else {part: schema}
    if pointer.startswith("/x-"):
        schema["$ref"] = f"#{pointer}"
    assert examine(schema) == [Finding(f"{pointer}/$schema", DIALECTS, "$schema", "")]


def tree(**more: Any) -> Any:
    return {"type": "object", "properties": {"value": INTEGER, "next": {"$ref": "#"}}, **more}


@pytest.mark.parametrize(
    "schema",
    [
        case("properties", tree()),
        case("items", {"type": "object", "properties": {"next": {"items": {"$ref": "#"}}, "value": INTEGER}}),
        case("additionalProperties", {"type": ["object", "integer"], "additionalProperties": {"$ref": "#"}}),
        case("patternProperties", {"type": ["object", "integer"], "patternProperties": {"": {"$ref": "#"}}}),
        case("propertyNames", {"propertyNames": {"$ref": "#"}, "type": ["object", "string"]}),
        case("contains", {"type": ["object", "array"], "contains": {"$ref": "#"}}),
        case("prefixItems", {"type": ["object", "array"], "prefixItems": [{"$ref": "#"}]}),
        case("unevaluatedProperties", {"type": ["object"], "unevaluatedProperties": {"$ref": "#"}}),
        case("unevaluatedItems", {"type": ["object", "array"], "unevaluatedItems": {"$ref": "#"}}),
        case("an anchor", tree(**{"$anchor": "x", "properties": {"next": {"$ref": "#x"}}})),
        case("dynamic", tree(**{"$dynamicAnchor": "x", "properties": {"next": {"$dynamicRef": "#x"}}})),
        case(
            "a union of two that name each other",
            {
                "$ref": "#/$defs/a",
                "$defs": {
                    "a": {"type": "object", "properties": {"next": {"$ref": "#/$defs/b"}}},
                    "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"items": {"$ref": "#/$defs/a"}}]},
                },
            },
        ),
    ],
)  # fmt: skip
def test_a_schema_may_come_back_to_itself_where_it_descends_into_the_value(schema: Any) -> None:
    assert examine(schema) == []
    validator = validator_for(schema)
    assert validator.is_valid({})
    assert not validator.is_valid(None)


def test_a_tree_is_checked_to_its_last_leaf() -> None:
    validator = validator_for(tree(additionalProperties=False))
    good: Any = {"value": 1}
    bad: Any = {"value": "x"}
    for _ in range(190):
        good, bad = {"value": 1, "next": good}, {"value": 1, "next": bad}
    assert validator.is_valid(good)
    (finding,) = validator.findings(bad)
    assert (finding.message, finding.pointer[:15]) == ("expected integer", "/next/next/next")


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        case("itself", {"$ref": "#"}, ""),
        case("the empty reference", {"$ref": ""}, ""),
        case(
            "two",
            {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
            "/$defs/a",
        ),
        case("allOf", {"allOf": [True, {"$ref": "#"}]}, ""),
        case("anyOf", {"anyOf": [True, {"$ref": "#"}]}, ""),
        case("oneOf", {"oneOf": [True, {"$ref": "#"}]}, ""),
        case("not", {"not": {"$ref": "#"}}, ""),
        case("if", {"if": {"$ref": "#"}}, ""),
        case("then", {"if": True, "then": {"$ref": "#"}}, ""),
        case("else", {"if": True, "else": {"$ref": "#"}}, ""),
        case("dependentSchemas", {"dependentSchemas": {"a": {"$ref": "#"}}}, ""),
        case("a dynamic reference", {"$dynamicAnchor": "a", "$dynamicRef": "#a"}, ""),
        case("an anchor", {"$defs": {"a": {"$anchor": "a", "$ref": "#a"}}}, "/$defs/a"),
        case("its own urn", {"$id": URN, "not": {"$ref": URN}}, ""),
        case(
            "by way of the nearest urn",
            {
                "$ref": URN,
                "$defs": {
                    "a": {"$id": URN, "$ref": "#/$defs/b", "$defs": {"b": {"$ref": URN}}},
                    "b": True,
                },
            },
            "/$defs/a",
        ),
        case("in a part nobody uses", {"$defs": {"a": {"$ref": "#/$defs/a"}}}, "/$defs/a"),
        case("below a property", {"properties": {"x": {"$ref": "#/properties/x"}}}, "/properties/x"),
        case(
            "below an escaped name",
            {"properties": {"a/b~c": {"$ref": "#/properties/a~1b~0c"}}},
            "/properties/a~1b~0c",
        ),
    ],
)  # fmt: skip
def test_a_reference_back_to_itself_on_the_same_value_is_refused(schema: Any, pointer: str) -> None:
    assert examine(schema) == [Finding(pointer, CIRCULAR, "$ref", "")]
    with pytest.raises(BadSchema, match="refers to itself"):
        validator_for(schema)


def test_using_one_subschema_twice_is_no_circle() -> None:
    schema = {
        "allOf": [{"$ref": "#/$defs/a"}, {"not": {"not": {"$ref": "#/$defs/a"}}}],
        "$defs": {"a": INTEGER},
    }
    assert examine(schema) == []


@pytest.mark.parametrize("schema", [True, False, {}, {"type": "string"}])
def test_a_schema_without_references_has_nothing_to_be_refused(schema: Any) -> None:
    assert examine(schema) == []


@pytest.mark.parametrize(
    "schema",
    [
        case("const", {"const": {"$ref": "http://e.test/"}}),
        case("enum", {"enum": [{"$ref": "#/nowhere"}]}),
        case("default", {"default": {"$ref": "#/nowhere", "$schema": "http://e.test/"}}),
        case("examples", {"examples": [{"$ref": "#"}]}),
        case("a property of that name", {"properties": {"$ref": {"type": "string"}}}),
        case("a required property", {"required": ["$ref"]}),
    ],
)
def test_what_only_looks_like_a_reference_is_data(schema: Any) -> None:
    assert examine(schema) == []


names = st.text(st.sampled_from("ab/~%01# é"), max_size=6)


@given(st.lists(names, unique=True, min_size=1, max_size=5), st.data())
def test_any_name_can_be_pointed_at(found: list[str], data: st.DataObject) -> None:
    aim = data.draw(st.sampled_from(found))
    escaped = aim.replace("~", "~0").replace("/", "~1")
    encoded = "".join(
        char if char in "abc01~" else "".join(f"%{byte:02X}" for byte in char.encode()) for char in escaped
    )
    schema = {
        "$ref": f"#/$defs/{encoded}",
        "$defs": {name: INTEGER if name == aim else STRING for name in found},
    }
    assert examine(schema) == []
    validator = validator_for(schema)
    assert [validator.is_valid(value) for value in (1, "a")] == [True, False]


# Several schema files as one document that the engine can compile.


FILES: dict[str, Any] = {
    "leaf.v1": {"$id": "leaf.v1", "type": "integer", "$defs": {"word": {"type": "string"}}},
    "tree.v1": {
        "$id": "tree.v1",
        "type": "object",
        "properties": {
            "leaf": {"$ref": "leaf.v1"},
            "below": {"$ref": "tree.v1"},
            "own": {"$ref": "#/$defs/own"},
        },
        "$defs": {"own": {"const": "tree"}},
    },
    "other.json": {"$id": "elsewhere", "type": "boolean"},
}


def test_what_is_referred_to_by_name_is_inside_and_so_is_what_that_refers_to() -> None:
    schema = {
        "$id": "root.v1",
        "properties": {"tree": {"$ref": "tree.v1"}, "word": {"$ref": "leaf.v1#/$defs/word"}},
        "$defs": {"own": {"const": "root"}},
    }
    whole = bundle(schema, FILES.get)
    assert set(whole["$defs"]) == {"own", "tree.v1", "leaf.v1"}
    validator = validator_for(whole)
    assert validator.is_valid({"tree": {"leaf": 1, "own": "tree", "below": {"leaf": 2}}, "word": "x"})
    for wrong, pointer in (
        ({"tree": {"leaf": "1"}}, "/tree/leaf"),
        ({"tree": {"own": "root"}}, "/tree/own"),
        ({"tree": {"below": {"leaf": None}}}, "/tree/below/leaf"),
        ({"word": 1}, "/word"),
    ):
        assert [finding.pointer for finding in validator.findings(wrong)] == [pointer]


def test_a_schema_goes_by_the_name_that_it_is_referred_to_by() -> None:
    validator = validator_for(bundle({"properties": {"a": {"$ref": "other.json"}}}, FILES.get))
    assert [validator.is_valid({"a": value}) for value in (True, 1)] == [True, False]


def test_nothing_is_added_where_nothing_is_referred_to() -> None:
    schema = {"$id": "alone", "properties": {"$ref": {"type": "string"}}, "const": {"$ref": "leaf.v1"}}
    assert bundle(schema, FILES.get) is schema
    assert bundle(True, FILES.get) is True


def test_nothing_that_was_handed_in_is_changed() -> None:
    before = repr(FILES)
    bundle({"$ref": "tree.v1"}, FILES.get)
    assert repr(FILES) == before


def test_a_name_that_nobody_has_is_left_for_the_engine_to_refuse() -> None:
    with pytest.raises(
        BadSchema, match=r"/properties/a/\$ref: refers to something that is not in this document"
    ):
        validator_for(bundle({"properties": {"a": {"$ref": "no.such"}}}, FILES.get))


# A schema for a form: references are replaced, and data that looks like one is not.


POINT: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "number"}}}
NAMES = ("$ref", "$defs", "definitions", "default", "enum")
OLD = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        pytest.param({"$ref": "#/$defs/p", "$defs": {"p": POINT}}, POINT, id="the whole"),
        pytest.param(
            {"properties": {"a": {"$ref": "#/$defs/p", "title": "A"}}, "$defs": {"p": POINT}},
            {"properties": {"a": {**POINT, "title": "A"}}},
            id="with a title beside it",
        ),
        pytest.param(
            {"items": {"$ref": "#/$defs/q"}, "$defs": {"q": {"anyOf": [{"$ref": "#/$defs/p"}]}, "p": POINT}},
            {"items": {"anyOf": [POINT]}},
            id="through another one",
        ),
        pytest.param(
            {"properties": {"a": {"$ref": "#here"}}, "$defs": {"p": {**POINT, "$anchor": "here"}}},
            {"properties": {"a": {**POINT, "$anchor": "here"}}},
            id="by an anchor",
        ),
        pytest.param(
            {"$schema": OLD, "properties": {"a": {"$ref": "#/definitions/p"}}, "definitions": {"p": POINT}},
            {"$schema": OLD, "properties": {"a": POINT}},
            id="draft-07",
        ),
        pytest.param({"properties": {"a": {"$ref": "#/$defs/t"}}, "$defs": {"t": True}},
                     {"properties": {"a": True}}, id="true"),
        pytest.param({"const": {"$ref": "#/$defs/p"}}, {"const": {"$ref": "#/$defs/p"}}, id="data"),
        pytest.param(
            {"properties": {name: {"$ref": "#/$defs/p"} for name in NAMES}, "$defs": {"p": POINT}},
            {"properties": dict.fromkeys(NAMES, POINT)},
            id="arguments that are called as keywords",
        ),
    ],
)  # fmt: skip
def test_references_are_replaced_by_what_they_name(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    before = json.dumps(schema)
    assert inlined_references(schema) == expected
    assert json.dumps(schema) == before


def test_a_reference_that_leads_back_to_itself_stays() -> None:
    tree: dict[str, Any] = {"type": "object", "properties": {"below": {"$ref": "#/$defs/tree"}}}
    found = inlined_references({"$ref": "#/$defs/tree", "$defs": {"tree": tree}})
    assert found == tree


def test_references_that_name_much_again_and_again_stay_within_bounds() -> None:
    """Each names the next one twice: whole, it would have two to the power of thirty parts."""
    steps: dict[str, Any] = {
        f"s{n}": {"properties": {name: {"$ref": f"#/$defs/s{n + 1}"} for name in "ab"}} for n in range(30)
    }
    found = inlined_references({"$ref": "#/$defs/s0", "$defs": {**steps, "s30": POINT}})
    assert len(json.dumps(found)) < 2_000_000
