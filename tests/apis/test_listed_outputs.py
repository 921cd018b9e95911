"""Which output schemas are listed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portbook.apis.output_schemas import is_small_enough_to_list
from support.portbook_process import run


@pytest.mark.parametrize(
    ("schema", "verdict"),
    [
        (True, True),
        ({"type": "object"}, True),
        ({"enum": ["x" * 9000]}, False),
        ({"properties": {"x" * 9000: True}}, False),
        ({"enum": list(range(3000))}, False),
    ],
    ids=["anything", "small", "a long text", "a long name", "many items"],
)
def test_a_large_schema_is_not_listed(schema: Any, verdict: bool) -> None:
    assert is_small_enough_to_list(schema) is verdict


def test_only_as_much_of_a_schema_is_looked_at_as_a_list_may_hold() -> None:
    nested: Any = {}
    for _ in range(40):  # 2 to the power of 40 parts, if it were written out
        nested = {"a": nested, "b": nested}
    assert not is_small_enough_to_list(nested)


@pytest.mark.parametrize(("setting", "is_listed"), [("", False), ('listed_outputs = "all"', True)])
def test_a_tool_is_listed_without_its_large_output_schema(
    setting: str, is_listed: bool, tmp_path: Path
) -> None:
    large = {"type": "object", "properties": {f"member_{n}": {"type": "string"} for n in range(500)}}
    small = {"type": "object", "properties": {"id": {"type": "string"}}}
    paths = {
        f"/{name}": {
            "get": {
                "operationId": name,
                "responses": {"200": {"content": {"application/json": {"schema": schema}}}},
            }
        }
        for name, schema in (("large", large), ("small", small))
    }
    (tmp_path / "api.json").write_text(json.dumps({"openapi": "3.1.0", "paths": paths}))
    (tmp_path / "portbook.toml").write_text(
        f'[http.v]\nbase_url = "https://api.example.com"\nopenapi = "api.json"\n{setting}\n'
    )
    listed = {
        tool["name"]: tool["output"] for tool in json.loads(run("tools", "--json", cwd=tmp_path).out)["tools"]
    }
    assert isinstance(listed["v.small"], dict)
    assert isinstance(listed["v.large"], dict) is is_listed
