"""Keywords that are one slip away from those of JSON Schema."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portbook.assets.misspelt_keywords import misspelt_keywords
from support.portbook_process import run

SAYS = "JSON Schema has no such keyword, and it is not checked; did you mean"


@pytest.mark.parametrize(
    ("schema", "pointer", "meant"),
    [
        ({"tpye": "object"}, "/tpye", "type"),
        ({"minlength": 1}, "/minlength", "minLength"),
        ({"requird": []}, "/requird", "required"),
        ({"enums": []}, "/enums", "enum"),
        ({"properties": {"a/b": {"patern": "x"}}}, "/properties/a~1b/patern", "pattern"),
        ({"anyOf": [{}, {"not": {"maximun": 1}}]}, "/anyOf/1/not/maximun", "maximum"),
    ],
)
def test_a_slip_is_found_wherever_a_schema_is(schema: Any, pointer: str, meant: str) -> None:
    text = json.dumps(schema)
    [said] = misspelt_keywords("a.json", text, schema)
    column = text.index(f'"{pointer.rpartition("/")[2]}"') + 1
    assert said == f"a.json:1:{column}: {pointer}: {SAYS} {meant}?"


@pytest.mark.parametrize(
    "schema",
    [
        {"x-type": 1, "unit": "m", "note": "", "example": 1, "nullable": True},
        {"properties": {"tpye": {}}, "$defs": {"titel": {}}, "required": ["tpye"]},
        {"const": {"tpye": 1}, "enum": [{"tpye": 1}], "default": {"tpye": 1}},
        {"definitions": {"a": {"type": "string"}}, "dependencies": {"tpye": ["a"]}},
    ],
)
def test_names_values_and_words_of_ones_own_are_no_slips(schema: Any) -> None:
    assert misspelt_keywords("a.json", json.dumps(schema), schema) == []


def test_validate_and_diff_warn_of_it(tmp_path: Path) -> None:
    (tmp_path / "new.json").write_text('{"tpye": "object"}')
    (tmp_path / "file.json").write_text("1")
    warned = f"portbook: warning: new.json:1:2: /tpye: {SAYS} type?\n"
    validated = run("validate", "--schema", "new.json", "file.json", cwd=tmp_path)
    assert (validated.code, validated.err.startswith(warned)) == (0, True)
    assert run("diff", "--schema", "new.json", "new.json", cwd=tmp_path).err == warned
