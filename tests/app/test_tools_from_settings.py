"""Contracts that the settings put in the place of a tool's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.portbook_process import environment, invoke, over_stdio


@pytest.mark.covers("design.tool-io.bad-bundle")
@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "banana"}, "/input/type"),
        (
            {"type": "object", "properties": {"a": {"$ref": "https://example.org/s"}}},
            "/input/properties/a/$ref",
        ),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}, "/input/$schema"),
    ],
)
def test_a_bad_bundle_stops_the_start_with_file_pointer_and_advice(
    tmp_path: Path, schema: object, pointer: str
) -> None:
    bundles = tmp_path / "schemas" / "tools"
    bundles.mkdir(parents=True)
    (bundles / "echo.json").write_text(json.dumps({"tool": "echo", "input": schema}))
    (tmp_path / "portbook.toml").write_text('[schemas]\nroot = "schemas"\n')
    finished = over_stdio(cwd=tmp_path)
    assert finished.code == 2
    assert f"echo.json: {pointer}: " in finished.err


def test_a_bundle_in_the_schema_root_replaces_a_tools_contract(tmp_path: Path) -> None:
    bundles = tmp_path / "schemas" / "tools"
    bundles.mkdir(parents=True)
    contract = {
        "type": "object",
        "properties": {"text": {"type": "string", "maxLength": 3}},
        "required": ["text"],
    }
    (bundles / "echo.json").write_text(
        json.dumps({"tool": "echo", "input": contract, "output": {"const": "abc"}})
    )
    finished = over_stdio(
        invoke("echo", {"text": "abcd"}),
        invoke("echo", {"text": "abx"}),
        invoke("echo", {"text": "abc"}),
        cwd=tmp_path,
        env=environment(PORTBOOK_SCHEMA_ROOT="schemas"),
    )
    codes = [answer.get("error", {}).get("code") for answer in finished.answers]
    assert codes == [-32602, -32002, None]
