"""Compiled validators: one per fingerprint in the whole process, compiled once."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portbook.canonical import fingerprint
from portbook.schema import engine
from portbook.schema.engine import BadSchema, Validator, compile_schema, validator_for
from portbook.tools.contract_registry import SchemaRegistry


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """An empty cache, and the schemas that are compiled with it."""
    schemas: list[Any] = []

    def counting(schema: Any, key: str) -> Validator:
        schemas.append(schema)
        return compile_schema(schema, key)

    monkeypatch.setattr(engine, "_compiled", {})
    monkeypatch.setattr(engine, "compile_schema", counting)
    return schemas


def test_the_same_schema_is_the_same_validator_compiled_once(compiled: list[Any]) -> None:
    first = validator_for({"type": "string", "minLength": 1})
    assert validator_for({"type": "string", "minLength": 1}) is first
    assert len(compiled) == 1


def test_the_order_of_keys_does_not_matter_at_any_depth(compiled: list[Any]) -> None:
    first = validator_for({"type": "object", "properties": {"a": {"minimum": 1, "maximum": 2}, "b": True}})
    second = validator_for({"properties": {"b": True, "a": {"maximum": 2, "minimum": 1}}, "type": "object"})
    assert second is first
    assert len(compiled) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param({"const": 1}, {"const": True}, id="true is not 1"),
        pytest.param({"const": 0}, {"const": False}, id="false is not 0"),
        pytest.param({"const": ""}, {"const": None}, id="nothing is not empty"),
        pytest.param({"enum": ["a", "b"]}, {"enum": ["b", "a"]}, id="the order of a list matters"),
        pytest.param({"title": "a"}, {"title": "b"}, id="what is only said"),
        pytest.param(True, {}, id="two ways to allow everything"),
        pytest.param(True, False, id="opposites"),
    ],
)
def test_schemas_that_differ_are_different_validators(one: Any, other: Any, compiled: list[Any]) -> None:
    assert validator_for(one) is not validator_for(other)
    assert len(compiled) == 2


def test_a_validator_knows_the_fingerprint_of_its_schema(compiled: list[Any]) -> None:
    schema = {"b": 1, "a": {"type": "string"}}
    assert validator_for(schema).fingerprint == fingerprint({"a": {"type": "string"}, "b": 1})
    assert compiled == [schema]


def test_changing_a_schema_afterwards_changes_no_validator(compiled: list[Any]) -> None:
    schema: Any = {"type": "string"}
    first = validator_for(schema)
    schema["type"] = "integer"
    assert validator_for(schema) is not first
    assert first.is_valid("a")
    assert len(compiled) == 2


def test_one_schema_in_two_files_of_two_roots_is_one_validator(compiled: list[Any], tmp_path: Path) -> None:
    schema: Any = {"type": "object", "required": ["z", "a"], "properties": {"z": True, "a": True}}
    for root, tool, is_sorted in (("one", "first", True), ("two", "second", False)):
        folder = tmp_path / root / "tools"
        folder.mkdir(parents=True)
        bundle = {"tool": tool, "input": schema, "output": {"type": "string"}}
        (folder / "any.json").write_text(
            json.dumps(bundle, sort_keys=is_sorted, indent=1 if is_sorted else None)
        )
    first = SchemaRegistry(tmp_path / "one").load_tool_io("first")
    second = SchemaRegistry(tmp_path / "two").load_tool_io("second")
    assert (first.input, first.output) == (second.input, second.output)
    assert [found for found in compiled if found in (schema, {"type": "string"})] == [
        schema,
        {"type": "string"},
    ]


def test_threads_that_ask_at_once_all_get_the_same_validator(
    compiled: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = 8
    everybody_compiles = threading.Barrier(threads, timeout=30)
    counting = engine.compile_schema

    def meeting(schema: Any, key: str) -> Validator:
        everybody_compiles.wait()
        return counting(schema, key)

    monkeypatch.setattr(engine, "compile_schema", meeting)
    found: list[Validator] = []
    workers = [
        threading.Thread(target=lambda: found.append(validator_for({"type": "string"})))
        for _ in range(threads)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(compiled) == threads
    assert len(found) == threads
    assert {id(validator) for validator in found} == {id(validator_for({"type": "string"}))}


def test_a_schema_that_cannot_be_compiled_is_not_remembered(compiled: list[Any]) -> None:
    for _ in range(2):
        with pytest.raises(BadSchema):
            validator_for({"type": "banana"})
    assert len(compiled) == 2


@pytest.mark.parametrize("schema", [b"", {"const": float("nan")}, {"enum": [{1}]}, {1: True}], ids=repr)
def test_what_is_no_json_is_no_schema(schema: Any, compiled: list[Any]) -> None:
    with pytest.raises(BadSchema) as raised:
        validator_for(schema)
    assert [finding.keyword for finding in raised.value.findings] == ["json"]
    assert compiled == []
