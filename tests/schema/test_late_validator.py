from __future__ import annotations

import json

import pytest

from portbook.schema.engine import LateValidator, NotCompiled, Validator, validator_for
from portbook.tools.contract_registry import SchemaRegistry

SCHEMA = {"type": "object", "required": ["a"]}


def test_it_is_compiled_with_its_first_use_and_once() -> None:
    made: list[Validator] = []

    def compile_it() -> Validator:
        made.append(validator_for(SCHEMA))
        return made[-1]

    late = LateValidator(compile_it)
    assert not made
    assert late.allows({"a": 1})
    assert not late.is_valid({})
    assert [finding.keyword for finding in late.findings({})] == ["required"]
    assert late.fingerprint == made[0].fingerprint
    assert len(made) == 1


def test_a_schema_that_does_not_compile_says_nothing_about_a_value() -> None:
    late = LateValidator(lambda: validator_for({"type": "nothing"}))
    for use in (late.allows, late.is_valid, late.findings, late.validate):
        with pytest.raises(NotCompiled, match="/type: "):
            use({})


def test_a_field_that_no_validator_has_is_not_looked_for() -> None:
    late = LateValidator(lambda: validator_for(SCHEMA))
    with pytest.raises(AttributeError, match="colour"):
        _ = late.colour


def test_every_contract_that_is_shipped_compiles() -> None:
    # Nothing else would tell before a call needs one: a server compiles them late.
    registry = SchemaRegistry()
    contracts = sorted(registry.schema_root.glob("*.json"))
    assert len(contracts) > 5
    for path in contracts:
        assert registry.load(path.name).fingerprint


def test_every_bundle_that_is_shipped_satisfies_its_contract_and_compiles() -> None:
    registry = SchemaRegistry()
    contract = registry.load("tool_io.schema.json")
    for path in sorted((registry.schema_root / "tools").glob("*.json")):
        contract.validate(json.loads(path.read_bytes()))
    for name in registry.bundles():
        assert registry.load_tool_io(name).input.fingerprint
