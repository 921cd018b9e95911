"""References between schemas: found offline, by either address, without changing a schema."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from portbook.assets.schema_files import Bundler
from portbook.schema.engine import BadSchema

HERE = "file:///library/"


def allows(schemas: dict[str, Any], root: str, value: Any) -> bool:
    before = copy.deepcopy(schemas)
    bundler = Bundler({HERE + name: schema for name, schema in schemas.items()})
    validator = bundler.bundle(HERE + root).compile()
    assert schemas == before, "a schema was changed"
    return validator.allows(value)


NUMBER = {
    "type": "number",
    "$defs": {"text": {"type": "string"}, "anchored": {"$anchor": "here", "type": "null"}},
}
BY_ID = {"$id": "https://schemas.example/number.json", **NUMBER}


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


@pytest.mark.covers("004.references")
@pytest.mark.parametrize(
    ("schemas", "good", "bad"),
    [
        case("by its file", {"root.json": {"$ref": "number.json"}, "number.json": NUMBER}, 1, "a"),
        case("in a folder", {"root.json": {"$ref": "sub/n.json"}, "sub/n.json": NUMBER}, 1, "a"),
        case("up from a folder", {"a/root.json": {"$ref": "../n.json"}, "n.json": NUMBER}, 1, "a"),
        case(
            "a part of it", {"root.json": {"$ref": "number.json#/$defs/text"}, "number.json": NUMBER}, "a", 1
        ),
        case("an anchor in it", {"root.json": {"$ref": "number.json#here"}, "number.json": NUMBER}, None, 1),
        case("by its id", {"root.json": {"$ref": BY_ID["$id"]}, "n.json": BY_ID}, 1, "a"),
        case("by its file though it has an id", {"root.json": {"$ref": "n.json"}, "n.json": BY_ID}, 1, "a"),
        case(
            "a part of it, by its file though it has an id",
            {"root.json": {"items": {"$ref": "n.json#/$defs/text"}}, "n.json": BY_ID},
            ["a"],
            [1],
        ),
        case(
            "beside it, both with ids",
            {
                "root.json": {"$id": "https://schemas.example/root.json", "$ref": "number.json"},
                "n.json": BY_ID,
            },
            1,
            "a",
        ),
        case(
            "a relative id",
            {"root.json": {"$ref": "named"}, "n.json": {"$id": "named", "type": "number"}},
            1,
            "a",
        ),
        case(
            "an id inside of another schema",
            {
                "root.json": {"$ref": "https://schemas.example/inner"},
                "n.json": {"$defs": {"x": {"$id": "https://schemas.example/inner", "type": "number"}}},
            },
            1,
            "a",
        ),
        case(
            "through a third",
            {"root.json": {"$ref": "b.json"}, "b.json": {"$ref": "c.json"}, "c.json": {"type": "number"}},
            1,
            "a",
        ),
        case(
            "in a circle",
            {
                "root.json": {"properties": {"b": {"$ref": "b.json"}}, "required": ["a"]},
                "b.json": {"properties": {"a": {"$ref": "root.json"}}},
            },
            {"a": 1, "b": {"a": {"a": 1}}},
            {"a": 1, "b": {"a": {}}},
        ),
        case(
            "itself by its file",
            {"root.json": {"items": {"$ref": "root.json#/$defs/n"}, "$defs": {"n": {"type": "number"}}}},
            [1],
            ["a"],
        ),
        case(
            "beside definitions of its own",
            {
                "root.json": {
                    "allOf": [{"$ref": "#/$defs/own"}, {"$ref": "b.json"}],
                    "$defs": {"own": {"minimum": 2}},
                },
                "b.json": {"maximum": 3},
            },
            2,
            4,
        ),
        case(
            "a member that is no reference",
            {"root.json": {"const": {"$ref": "b.json"}}},
            {"$ref": "b.json"},
            1,
        ),
    ],
)
def test_a_reference_to_another_schema_is_followed_offline(
    schemas: dict[str, Any], good: Any, bad: Any
) -> None:
    root = next(iter(schemas))
    assert allows(schemas, root, good)
    assert not allows(schemas, root, bad)


@pytest.mark.covers("004.references.nothing-fetched")
@pytest.mark.parametrize(
    "reference",
    [
        "missing.json",
        "https://schemas.example/nowhere.json",
        "number.json#/$defs/nowhere",
        "number.json#nowhere",
        "file:///etc/passwd",
        "http://[",
        "urn:x",
    ],
)
def test_a_reference_that_leads_nowhere_is_not_fetched_but_refused(reference: str) -> None:
    with pytest.raises(BadSchema):
        allows({"root.json": {"$ref": reference}, "number.json": NUMBER}, "root.json", 1)


def test_a_schema_that_another_spoils_is_refused_and_says_where() -> None:
    schemas = {"root.json": {"$ref": "b.json"}, "b.json": {"type": "nonsense"}}
    with pytest.raises(BadSchema) as raised:
        allows(schemas, "root.json", 1)
    finding = raised.value.findings[0]
    assert finding.pointer == "/$ref"
    assert finding.message.startswith("refers to b.json, which cannot be used: /type: ")


def test_a_schema_that_another_spoils_from_afar_says_which_reference_leads_there() -> None:
    schemas = {
        "a/root.json": {"properties": {"x": {"$ref": "../b/middle.json"}}},
        "b/middle.json": {"items": {"$ref": "last\u009b.json"}},
        "b/last\u009b.json": {"$id": "https://schemas.example/last", "minimum": "x"},
    }
    with pytest.raises(BadSchema) as raised:
        allows(schemas, "a/root.json", 1)
    (finding,) = raised.value.findings
    assert finding.pointer == "/properties/x/$ref"
    assert finding.message.startswith("refers to ../b/last\\x9b.json, which cannot be used: /minimum: ")


@pytest.mark.parametrize(
    "broken", [{"$id": 5}, {"$id": "http://["}, {"properties": 5}, {"$defs": []}, {"$ref": 5}]
)
def test_a_broken_schema_does_not_stop_the_others(broken: dict[str, Any]) -> None:
    schemas = {"root.json": {"$ref": "number.json"}, "broken.json": broken, "number.json": NUMBER}
    assert allows(schemas, "root.json", 1)
    with pytest.raises(BadSchema):
        allows(schemas, "broken.json", 1)


def test_references_that_fan_out_across_files_are_weighed_like_any_others() -> None:
    schemas: dict[str, Any] = {
        f"{at}.json": {"allOf": [{"$ref": f"{at + 1}.json"}, {"$ref": f"{at + 1}.json"}]} for at in range(30)
    }
    with pytest.raises(BadSchema, match="fan out"):
        allows({**schemas, "30.json": {"type": "number"}}, "0.json", 1)
