"""Validation: paths, messages, their order, the alias; and the verdicts of the reference implementation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portbook.assets.library import Library, load_library
from portbook.assets.validate_asset import validate_asset, validate_many
from portbook.canonical import json_bytes
from support.asset_samples import Write
from support.counts import count

OK = {"ok": True, "errors": []}


def failed(*errors: tuple[str, str]) -> dict[str, Any]:
    return {
        "ok": False,
        "reason": "validation_failed",
        "errors": [{"path": path, "msg": message} for path, message in errors],
    }


@pytest.mark.covers("004.io.validate-asset")
def test_an_asset_is_valid_or_every_error_is_named(library: Library) -> None:
    assert validate_asset(library, {"name": "a"}, "synesthetic-asset") == OK
    asset = {"shader": {"uniforms": ["a", 1, None]}, "tone": {"pitch": "x"}, "more": 1}
    assert validate_asset(library, asset, "synesthetic-asset") == failed(
        ("", 'missing property "name"'),
        ("", 'unexpected property "more"'),
        ("/shader/uniforms/0", "expected number"),
        ("/shader/uniforms/2", "expected number"),
        ("/tone/pitch", "expected number"),
    )


@pytest.mark.covers("004.errors.validation")
def test_the_error_model_of_a_validation_is_the_specifications_byte_for_byte(library: Library) -> None:
    asset = {"name": "a", "shader": {"uniforms": ["a"]}}
    assert json.dumps(validate_asset(library, asset, "synesthetic-asset")) == (
        '{"ok": false, "reason": "validation_failed", '
        '"errors": [{"path": "/shader/uniforms/0", "msg": "expected number"}]}'
    )


@pytest.mark.covers("004.order.errors")
def test_paths_are_escaped_pointers_in_order_of_path_then_message(write: Write, tmp_path: Path) -> None:
    text = {"type": "string"}
    schema = {"properties": dict.fromkeys(["a/b", "a~b", "", "b"], text), "required": ["z", "y"]}
    write("s/x.schema.json", schema)
    library = load_library(tmp_path / "s", None)
    assert validate_asset(library, {"b": 1, "a~b": 1, "a/b": 1, "": 1}, "x") == failed(
        ("", 'missing property "y"'),
        ("", 'missing property "z"'),
        ("/", "expected string"),
        ("/a~0b", "expected string"),
        ("/a~1b", "expected string"),
        ("/b", "expected string"),
    )
    assert validate_asset(library, 5, "x") == OK
    assert validate_asset(library, [], "x") == OK


def test_a_long_path_is_whole(write: Write, tmp_path: Path) -> None:
    name = "n" * 1000
    write("s/x.schema.json", {"properties": {name: {"type": "string"}}})
    library = load_library(tmp_path / "s", None)
    assert validate_asset(library, {name: 1}, "x") == failed((f"/{name}", "expected string"))


def test_an_asset_of_many_kilobytes_has_all_of_its_errors(write: Write, tmp_path: Path) -> None:
    union = {"anyOf": [{"type": "object", "properties": {"a": {"type": "integer"}}}, {"type": "null"}]}
    write("s/x.schema.json", {"additionalProperties": union})
    library = load_library(tmp_path / "s", None)
    asset = {f"k{at:03}": {"a": "b" if at % 100 == 0 else at, "text": "x" * 50} for at in range(300)}
    result = validate_asset(library, asset, "x")
    closest = "expected integer (closest of the 2 allowed forms: number 1)"
    errors = [(f"/k{at}/a", closest) for at in ("000", "100", "200")]
    assert result == failed(*errors)


@pytest.mark.covers("004.alias")
def test_the_alias_is_the_canonical_schema_and_leaves_the_reference_out(library: Library) -> None:
    asset = {"$schemaRef": "https://nowhere.example/x.json", "name": "a"}
    assert validate_asset(library, asset, "nested-synesthetic-asset") == OK
    assert validate_asset(library, {"name": 1}, "nested-synesthetic-asset") == failed(
        ("/name", "expected string")
    )
    inner = {"name": "a", "tone": {"pitch": "x", "$schemaRef": "y"}}
    assert validate_asset(library, inner, "nested-synesthetic-asset") == failed(
        ("/tone/pitch", "expected number")
    )
    assert validate_asset(library, asset, "synesthetic-asset") == failed(
        ("", 'unexpected property "$schemaRef"')
    )


def test_an_unknown_schema_is_a_failed_validation(library: Library) -> None:
    assert validate_asset(library, {}, "unheard-of") == failed(("/schema", "unknown schema"))


def test_no_message_holds_a_value_of_the_assets(library: Library) -> None:
    told = json.dumps(validate_asset(library, {"name": ["hunter2"], "tone": "hunter2"}, "synesthetic-asset"))
    assert "hunter2" not in told


@pytest.mark.covers("004.validate-many")
def test_many_assets_have_their_results_in_order(library: Library) -> None:
    assert validate_many(library, [{"pitch": 1}, {"pitch": "a"}, 5], "tone", 3) == {
        "ok": False,
        "results": [
            {"ok": True},
            failed(("/pitch", "expected number")),
            failed(("", "expected object")),
        ],
    }
    assert validate_many(library, [], "tone", 3) == {"ok": True, "results": []}
    assert validate_many(library, [{"pitch": 1}] * 4, "tone", 3) == {
        "ok": False,
        "reason": "unsupported",
        "detail": "batch_too_large",
        "limit": 3,
    }


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from([0.5, 1.0, -2.5])
    | st.sampled_from(["", "a", "ab", "é"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
LIMIT = st.integers(0, 3)


def schemas() -> st.SearchStrategy[Any]:
    """Schemas of the everyday keywords, with references to the two files beside it."""
    leaves = (
        st.booleans()
        | st.fixed_dictionaries(
            {},
            optional={
                "type": TYPES,
                "minimum": LIMIT,
                "maxLength": LIMIT,
                "minItems": LIMIT,
                "maxProperties": LIMIT,
                "multipleOf": st.just(2),
            },
        )
        | st.sampled_from([{"$ref": "text.json"}, {"$ref": "https://schemas.example/even#/$defs/even"}])
    )
    return st.recursive(
        leaves,
        lambda inner: st.fixed_dictionaries(
            {},
            optional={
                "type": TYPES,
                "enum": st.lists(VALUES, min_size=1, max_size=3, unique_by=repr),
                "const": VALUES,
                "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
                "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
                "additionalProperties": inner,
                "items": inner,
                "prefixItems": st.lists(inner, min_size=1, max_size=2),
                "contains": inner,
                "uniqueItems": st.booleans(),
                "anyOf": st.lists(inner, min_size=1, max_size=2),
                "oneOf": st.lists(inner, min_size=1, max_size=2),
                "allOf": st.lists(inner, min_size=1, max_size=2),
                "not": inner,
                "if": inner,
                "then": inner,
                "dependentRequired": st.just({"a": ["b"]}),
                "unevaluatedProperties": inner,
            },
        ),
        max_leaves=5,
    ).filter(lambda schema: isinstance(schema, dict))


TEXT = {"type": ["string", "null"], "minLength": 1}
EVEN = {"$id": "https://schemas.example/even", "$defs": {"even": {"multipleOf": 2, "type": "integer"}}}


@pytest.mark.covers("004.draft")
@pytest.mark.soak("random schemas")
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    max_examples=count("random schemas"),
)
@given(schema=schemas(), values=st.lists(VALUES, min_size=3, max_size=6))
def test_verdicts_are_those_of_the_reference_implementation(
    schema: Any, values: list[Any], write: Write, tmp_path: Path
) -> None:
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT202012

    write("s/root.schema.json", schema)
    write("s/text.json", TEXT)
    write("s/even.json", EVEN)
    library = load_library(tmp_path / "s", None)
    here = (tmp_path / "s").resolve().as_uri()
    resources = {f"{here}/text.json": TEXT, EVEN["$id"]: EVEN}
    registry: Any = Registry().with_resources(
        (uri, Resource.from_contents(contents, default_specification=DRAFT202012))
        for uri, contents in resources.items()
    )
    oracle = jsonschema.Draft202012Validator({"$id": f"{here}/root.schema.json", **schema}, registry=registry)
    assert library.warnings == ()
    for value in values:
        assert validate_asset(library, value, "root")["ok"] is oracle.is_valid(value), (schema, value)


def in_long_names(value: Any, depth: int = 100, length: int = 8_000) -> Any:
    for _ in range(depth):
        value = {"k" * length: value}
    return value


@pytest.fixture
def texts(write: Write, tmp_path: Path) -> Library:
    """A library whose schema allows texts, and objects of them, as deep as they like."""
    write("s/text.schema.json", {"additionalProperties": {"$ref": "#"}, "type": ["object", "string"]})
    return load_library(tmp_path / "s", None)


@pytest.mark.parametrize(
    ("asset", "count"),
    [
        pytest.param(in_long_names({str(at): 0 for at in range(10_000)}), 1, id="too much to look at"),
        pytest.param({"k" * 9_000: {str(at): 0 for at in range(1_000)}}, 29, id="too much to tell"),
        pytest.param({"k" * 400_000: 0, "l": 0}, 1, id="one that takes it all"),
        pytest.param({str(at): 0 for at in range(5_000)}, 1_000, id="too many"),
        pytest.param({str(at): 0 for at in range(900)}, 900, id="all"),
    ],
)
def test_errors_take_no_more_than_a_limit_and_the_first_are_told(
    asset: Any, count: int, texts: Library
) -> None:
    result: Any = validate_asset(texts, asset, "text")
    told = [(error["path"], error["msg"]) for error in result["errors"]]
    assert len(told) == count
    assert told == sorted(told)
    assert len(json_bytes(result)) < len(json_bytes(asset)) + 300_000
    assert told[0][1] == "expected string or object"
    if count > 1:
        names = sorted(asset if len(asset) > 1 else asset["k" * 9_000])
        assert [path.rpartition("/")[2] for path, _ in told] == names[:count]


def test_the_errors_of_many_assets_share_one_limit(texts: Library) -> None:
    assets: list[Any] = [{"k" * 9_000: {str(at): 0 for at in range(50)}}] * 100
    result: Any = validate_many(texts, assets, "text", 100)
    assert [len(one["errors"]) for one in result["results"]] == [29] + [1] * 99
    assert len(json_bytes(result)) < len(json_bytes(assets)) + 300_000
