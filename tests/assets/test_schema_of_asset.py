"""Names by files, and which schema an asset is meant for."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.assets.schema_names_and_versions import component_of, schema_name, version_of
from portbook.assets.schema_of_asset import named_schema

KNOWN = ["tone", "control-bundle", "synesthetic-asset", "nested/deep"]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("tone.schema.json", "tone"),
        ("tone.json", "tone"),
        ("sub/tone.schema.json", "sub/tone"),
        ("a.b.schema.json", "a.b"),
        ("tone", "tone"),
    ],
)
def test_a_schemas_name_is_its_files_without_the_suffix(path: str, name: str) -> None:
    assert schema_name(path) == name


@pytest.mark.parametrize(
    ("path", "component"), [("Tone_Example.json", "Tone_Example"), ("sub/asset.valid.json", "asset")]
)
def test_a_component_is_the_files_name_up_to_the_first_dot(path: str, component: str) -> None:
    assert component_of(path) == component


@pytest.mark.parametrize(
    ("document", "version"),
    [
        ({"version": "0.7.0"}, "0.7.0"),
        ({"version": 2}, "2"),
        ({"version": True}, ""),
        ({"version": ["1"]}, ""),
        ({"version": "1", "$id": "https://x/2.0/a.json"}, "1"),
        ({"$id": "https://schemas.example/0.7.3/tone.schema.json"}, "0.7.3"),
        ({"$id": "https://schemas.example/v1.2/tone-3.4.schema.json"}, "1.2"),
        ({"$id": "https://10.20.30.40/tone.schema.json"}, ""),
        ({"$id": 5}, ""),
        ({}, ""),
    ],
)
def test_a_version_comes_from_the_schema_itself(document: dict[str, Any], version: str) -> None:
    assert version_of(document) == version


@pytest.mark.covers("004.examples.schema")
@pytest.mark.parametrize(
    ("asset", "path", "name"),
    [
        ({"schema": "tone", "$schemaRef": "control-bundle"}, "x.json", "tone"),
        ({"schema": "https://schemas.example/tone.schema.json#/x"}, "x.json", "tone"),
        ({"schema": "nested/deep"}, "x.json", "nested/deep"),
        ({"schema": "unheard-of"}, "tone.json", "unheard-of"),
        ({"schema": 5, "$schemaRef": "jsonschema/tone.schema.json"}, "x.json", "tone"),
        ({"schema": "", "$schemaRef": ""}, "tone.json", "tone"),
        ({"$schemaRef": "tone.json?x=1"}, "x.json", "tone"),
        ({}, "tone.json", "tone"),
        ({}, "sub/tone.valid.json", "tone"),
        ({}, "Tone_Example.json", "tone"),
        ({}, "Control-Bundle_Example.json", "control-bundle"),
        ({}, "SynestheticAsset_Example1.json", "synesthetic-asset"),
        ({}, "nested/deep.json", "nested/deep"),
        ({}, "other.valid.json", "other"),
        ([1], "tone.json", "tone"),
    ],
)
def test_an_asset_names_its_schema_by_a_member_or_by_its_file(asset: Any, path: str, name: str) -> None:
    assert named_schema(asset, path, KNOWN) == name
