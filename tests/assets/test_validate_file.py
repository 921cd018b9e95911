"""One file checked: by which schema, as an asset or as a schema, and what is told where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portbook.assets.schema_files import SchemaFiles
from portbook.assets.validate_file import (
    UnusableFile,
    lines_of,
    misspelt_keywords,
    read_document,
    read_schema,
)
from support.asset_samples import Write
from support.portbook_process import run
from support.validated_folder import TONE, validate, with_tones


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return with_tones(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        (
            "broken.json",
            b'{"pitch": 1,}',
            "broken.json:1:13: error: not JSON: trailing comma before a closing bracket",
        ),
        ("latin.json", b'{"a": "\xe9"}', "latin.json:1:8: error: not JSON: a string is not valid UTF-8"),
        ("gone.json", None, "gone.json: error: cannot be read: No such file or directory"),
    ],
)
def test_a_file_that_is_no_json_is_trouble(name: str, content: bytes | None, said: str, folder: Path) -> None:
    if content is not None:
        (folder / name).write_bytes(content)
    done = validate(folder, name, "assets/tone.json")
    assert done.code == 2
    assert done.out.decode().startswith(said), done.out


def test_a_file_that_names_no_schema_that_is_there_says_so(folder: Path) -> None:
    (folder / "assets/other.json").write_text("{}")
    done = validate(folder, "assets/other.json")
    assert (done.code, done.out.decode().splitlines()[0]) == (
        1,
        "assets/other.json:1:1: error: meant for the schema 'other', which does not exist",
    )


def test_schemas_are_checked_as_schemas(folder: Path) -> None:
    (folder / "schemas/wrong.schema.json").write_text('{\n  "properties": {"a": {"$ref": "nowhere.json"}}\n}')
    done = validate(folder, "schemas")
    assert done.code == 1
    assert done.out.decode().startswith("schemas/wrong.schema.json:2:32: error: /properties/a/$ref: ")
    assert "warning: " in done.err


def test_a_schema_that_cannot_be_used_is_told_with_its_file_and_is_no_verdict(folder: Path) -> None:
    (folder / "schemas/tone.schema.json").write_text('{\n  "$ref": "#/$defs/nope"\n}')
    (folder / "assets/Tone_Example.json").write_text("{}")
    reason = (
        "/$ref: refers to something that is not in this document: there is nothing at #/$defs/nope; "
        "check its spelling"
    )
    done = validate(folder, "--format", "github", "assets")
    asset = f"line=1,col=1::its schema 'tone' cannot be used: {reason}"
    assert done.out.decode().splitlines() == [
        f"::error file=assets/Tone_Example.json,{asset}",
        f"::error file=assets/tone.json,{asset}",
        f"::error file=schemas/tone.schema.json,line=2,col=11::{reason}",
    ]
    assert done.code == 2
    files = json.loads(validate(folder, "--format", "json", "schemas", "assets").out)["files"]
    assert [file["file"] for file in files] == [
        "schemas/tone.schema.json",
        "assets/Tone_Example.json",
        "assets/tone.json",
    ]
    named = validate(folder, "--schema", "tone", "assets")
    assert (named.code, f"the schema 'tone' cannot be used: {reason}" in named.err) == (2, True)


def test_a_schema_that_is_no_json_cannot_be_used_either(folder: Path) -> None:
    (folder / "schemas/tone.schema.json").write_text("{")
    done = validate(folder, "assets")
    assert done.out.decode().startswith(
        "assets/tone.json:1:1: error: its schema 'tone' cannot be used: not JSON"
    )
    assert "\nschemas/tone.schema.json:1:" in done.out.decode()
    assert done.code == 2


def test_a_file_of_the_schema_folder_is_a_schema_unless_it_names_another(folder: Path) -> None:
    schema = {"$id": "https://schemas.example/foo", "required": ["pitch"]}
    for name in ("Foo_Bar.json", "sub/deep.json"):
        path = folder / "schemas" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(schema | {"$id": f"https://schemas.example/{name}"}))
    done = validate(folder, "schemas")
    assert (done.code, done.out) == (0, b"")
    (folder / "schemas/Foo_Bar.json").write_text('{"type": 5}')
    assert validate(folder, "schemas").out.decode().startswith("schemas/Foo_Bar.json:1:10: error: /type: ")
    (folder / "schemas/Foo_Bar.json").write_text('{"schema": "tone", "pitch": "x"}')
    assert b"/pitch: expected number" in validate(folder, "schemas").out
    (folder / "schemas/Foo_Bar.json").write_text('{"schema": "tome"}')
    assert b"meant for the schema 'tome', which does not exist" in validate(folder, "schemas").out
    piped = run("validate", "--schemas", ".", "-", cwd=folder / "schemas", stdin=b"{}")
    assert (piped.code, b"meant for the schema '-', which does not exist" in piped.out) == (1, True)


def test_what_is_wrong_with_a_name_is_told_where_that_name_stands(folder: Path) -> None:
    closed: dict[str, Any] = {"properties": {"in": {"properties": {"c": {}}}}, "additionalProperties": False}
    closed["properties"]["in"]["additionalProperties"] = False
    (folder / "schemas/tone.schema.json").write_text(json.dumps(closed))
    long = "x" * 100
    (folder / "assets/tone.json").write_text(f'{{\n  "in": {{"a/~": {{}}, "{long}": 1}},\n "b": {{}}}}')
    done = validate(folder, "assets")
    (first, _, under, second, _, caret) = done.out.decode().splitlines()
    assert first.startswith('assets/tone.json:2:10: error: /in: unexpected property "a/~", "xxx')
    assert under == " " * 11 + "^" * 5
    assert second == 'assets/tone.json:3:2: error: unexpected property "b"'
    assert caret == "   ^^^"
    (folder / "assets/tone.json").write_text(f'{{\n  "{long}": 1}}')
    assert "line=2,col=3::unexpected" in validate(folder, "--format", "github", "assets").out.decode()
    log = json.loads(validate(folder, "--format", "sarif", "assets").out)
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["region"] == {"startLine": 2, "startColumn": 3, "endColumn": 105}


def test_the_reference_to_its_schema_is_no_part_of_an_asset(folder: Path) -> None:
    (folder / "schemas/tone.schema.json").write_text(json.dumps({**TONE, "additionalProperties": False}))
    (folder / "assets/a.json").write_text('{"$schemaRef": "jsonschema/tone.schema.json", "pitch": 1}')
    assert validate(folder, "assets/a.json").code == 0


# A schema file that a person names: ready to use, or its problems with their places.


def test_a_schema_comes_with_its_text_and_what_it_refers_to(write: Write) -> None:
    write("b.json", {"type": "integer"})
    path = write("a.json", {"$ref": "b.json"})
    source = read_schema(SchemaFiles(), str(path))
    assert (source.text, source.document) == (path.read_text(), {"$ref": "b.json"})
    assert (source.validator.allows(1), source.validator.allows("x")) == (True, False)


def test_every_problem_is_a_line_that_begins_with_its_place(write: Write) -> None:
    path = write("a.json", b'{"properties": {"a": {"type": "x"},\n "b": {"minimum": "y"}}}')
    with pytest.raises(UnusableFile) as raised:
        read_schema(SchemaFiles(), str(path))
    lines = lines_of(raised.value.report)
    assert [line.removeprefix(f"{path}:")[:5] for line in lines] == ["1:31:", "2:19:"]
    assert "/properties/b/minimum: " in lines[1]


@pytest.mark.parametrize(("text", "begins"), [(b"{", ":1:1: not JSON: "), (b"{\n,", ":2:1: not JSON: ")])
def test_a_document_that_is_none_says_where(text: bytes, begins: str, write: Write) -> None:
    path = write("a.json", text)
    with pytest.raises(UnusableFile) as raised:
        read_document(str(path))
    [line] = lines_of(raised.value.report)
    assert line.startswith(f"{path}{begins}")


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(UnusableFile) as raised:
        read_document("/nowhere/a.json")
    assert lines_of(raised.value.report) == ["/nowhere/a.json: cannot be read: No such file or directory"]


# Keywords that are one slip away from those of JSON Schema.


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
