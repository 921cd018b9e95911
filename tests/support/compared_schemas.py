"""Two versions of a schema, compared; and where that breaks, shown to break."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.assets.compat.counterexample import EVERY_BREAK
from portbook.assets.compat.verdict import compare
from portbook.model import JSONObject
from portbook.schema.engine import Validator, validator_for


def made(schema: Any) -> tuple[JSONObject, Validator]:
    bundle = {"$id": "file:///s.json", **schema}
    return bundle, validator_for(bundle)


def verdict(old: Any, new: Any) -> str:
    """Compare; where it breaks, make sure that it does."""
    before, after = made(old), made(new)
    found = compare(before, after)
    every = compare(before, after, EVERY_BREAK)
    assert every.verdict is found.verdict
    for each in (*found.breaks, *every.breaks):
        assert before[1].is_valid(each.instance)
        assert not after[1].is_valid(each.instance)
        assert each.findings
    return found.verdict.value


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


NAME = {"type": "string"}
PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": NAME, "age": {"type": "integer", "minimum": 0}},
}
CLOSED = {**PERSON, "additionalProperties": False}
TREE = {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}, "name": NAME}}
