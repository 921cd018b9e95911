"""`portbook validate`: what a person, a program, GitHub and an editor see of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.portbook_process import Finished, environment, run
from support.pseudo_terminal import on_a_terminal

TONE = {
    "type": "object",
    "properties": {"pitch": {"type": "number"}, "name": {"type": "string"}},
    "required": ["pitch"],
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas/tone.schema.json").write_text(json.dumps(TONE))
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets/tone.json").write_text('{"pitch": 1}')
    (tmp_path / "portbook.toml").write_text('[assets]\nschemas = "schemas"\n')
    return tmp_path


def bad(folder: Path) -> None:
    (folder / "assets/bad.json").write_text('{\n  "schema": "tone",\n  "pitch": "high",\n  "name": 5\n}\n')


def validate(folder: Path, *arguments: str) -> Finished:
    return run("validate", *arguments, cwd=folder)


def test_valid_files_are_quiet_and_the_status_is_0(folder: Path) -> None:
    done = validate(folder, "assets")
    assert (done.code, done.out, done.err) == (0, b"", "portbook: 1 file checked, all valid\n")


def test_each_error_has_its_place_the_line_and_a_caret(folder: Path) -> None:
    bad(folder)
    done = validate(folder, "assets")
    assert done.out.decode() == (
        "assets/bad.json:3:12: error: /pitch: expected number\n"
        '    "pitch": "high",\n'
        "             ^^^^^^\n"
        "assets/bad.json:4:11: error: /name: expected string\n"
        '    "name": 5\n'
        "            ^\n"
    )
    assert (done.code, done.err) == (1, "portbook: 2 files checked, 1 not valid: 2 errors\n")


def test_on_a_terminal_it_is_coloured_and_elsewhere_it_is_not(folder: Path) -> None:
    bad(folder)
    shown, status = on_a_terminal(folder, "validate", "assets")
    assert status == 1
    assert "\x1b[" in shown
    assert 'expected number\n    "pitch": "high",\n' in re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert b"\x1b" not in validate(folder, "assets").out
    dumb, _ = on_a_terminal(folder, "validate", "assets", term="dumb")
    assert "\x1b" not in dumb
    assert "expected number" in dumb


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


def test_a_schema_can_be_named_or_given_as_a_file(folder: Path) -> None:
    (folder / "assets/other.json").write_text('{"pitch": "x"}')
    for schema in ("tone", "schemas/tone.schema.json"):
        assert validate(folder, "--schema", schema, "assets/other.json").code == 1
    (folder / "lonely.schema.json").write_text('{"$ref": "schemas/tone.schema.json"}')
    assert (
        b"/pitch: expected number"
        in validate(folder, "--schema", "lonely.schema.json", "assets/other.json").out
    )
    misspelt = validate(folder, "--schema", "tome", "assets/other.json")
    assert (misspelt.code, "did you mean tone?" in misspelt.err) == (2, True)
    (folder / "broken.schema.json").write_text('{"type": 5}')
    broken = validate(folder, "--schema", "broken.schema.json", "assets/other.json")
    assert (broken.code, "broken.schema.json: /type" in broken.err) == (2, True)


def test_a_folder_of_schemas_can_be_named(folder: Path) -> None:
    (folder / "portbook.toml").unlink()
    done = validate(folder, "assets")
    assert done.out.decode().startswith(
        "assets/tone.json:1:1: error: no folder of schemas is set; "
        "use --schemas, assets.schemas or SYN_SCHEMAS_DIR\n"
    )
    assert done.code == 2, "it was not checked"
    assert validate(folder, "--schemas", "schemas", "assets").code == 0


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
    assert place["region"] == {"startLine": 2, "startColumn": 3}


def test_the_reference_to_its_schema_is_no_part_of_an_asset(folder: Path) -> None:
    (folder / "schemas/tone.schema.json").write_text(json.dumps({**TONE, "additionalProperties": False}))
    (folder / "assets/a.json").write_text('{"$schemaRef": "jsonschema/tone.schema.json", "pitch": 1}')
    assert validate(folder, "assets/a.json").code == 0


def test_as_json_every_file_has_its_errors(folder: Path) -> None:
    bad(folder)
    done = validate(folder, "--format", "json", "assets")
    assert json.loads(done.out) == {
        "ok": False,
        "files": [
            {
                "file": "assets/bad.json",
                "schema": "tone",
                "ok": False,
                "errors": [
                    {"path": "/pitch", "msg": "expected number", "line": 3, "column": 12},
                    {"path": "/name", "msg": "expected string", "line": 4, "column": 11},
                ],
            },
            {"file": "assets/tone.json", "schema": "tone", "ok": True, "errors": []},
        ],
    }


def test_for_github_every_error_is_a_command_that_cannot_be_forged(folder: Path) -> None:
    name = "a,b:c%\n::error::x.json"
    (folder / name).write_text('{"schema":"tone"}')
    done = validate(folder, "--format", "github", name)
    assert done.out.decode() == (
        '::error file=a%2Cb%3Ac%25%0A%3A%3Aerror%3A%3Ax.json,line=1,col=1::missing property "pitch"\n'
    )


def test_sarif_is_what_its_own_shape_asks_for(folder: Path) -> None:
    bad(folder)
    (folder / "assets/ä b.json").write_text("{")
    log = json.loads(validate(folder, "--format", "sarif", "assets").out)
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    driver = log["runs"][0]["tool"]["driver"]
    results = log["runs"][0]["results"]
    assert {result["ruleId"] for result in results} <= {rule["id"] for rule in driver["rules"]}
    locations = [result["locations"][0]["physicalLocation"] for result in results]
    assert [location["artifactLocation"]["uri"] for location in locations] == [
        "assets/bad.json",
        "assets/bad.json",
        "assets/%C3%A4%20b.json",
    ]
    assert locations[0]["region"] == {"startLine": 3, "startColumn": 12}
    assert results[0]["message"]["text"] == "/pitch: expected number"


def many(folder: Path, count: int) -> None:
    for at in range(count):
        (folder / f"assets/{at:05}.json").write_text(
            json.dumps({"schema": "tone", "pitch": at if at % 100 else "x"})
        )


def test_many_files_are_shared_out_and_reported_in_their_order(folder: Path) -> None:
    many(folder, 1200)
    done = validate(folder, "--format", "json", "assets")
    files = json.loads(done.out)["files"]
    assert [file["file"] for file in files] == sorted(file["file"] for file in files)
    assert [file["file"] for file in files if not file["ok"]] == [
        f"assets/{at:05}.json" for at in range(0, 1200, 100)
    ]
    assert done.err == "portbook: 1,201 files checked, 12 not valid: 12 errors\n"


def test_a_bar_shows_how_far_it_has_come_on_a_terminal_and_nowhere_else(folder: Path) -> None:
    many(folder, 60)
    shown, _ = on_a_terminal(folder, "validate", "assets")
    assert re.search(r"checking .*61/61", shown)
    assert "checking" not in validate(folder, "assets").err


def test_watching_checks_again_when_a_file_changes(folder: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-u", "-m", "portbook", "validate", "--watch", "assets"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert process.stdout is not None
    try:
        assert process.stderr.readline() == "portbook: 1 file checked, all valid\n"
        assert process.stderr.readline() == "portbook: watching; Ctrl-C ends it\n"
        (folder / "assets/tone.json").write_text('{"pitch": "high"}')
        assert process.stdout.readline() == "assets/tone.json:1:11: error: /pitch: expected number\n"
        assert process.stderr.readline() == "portbook: 1 file checked, 1 not valid: 1 error\n"
        (folder / "schemas/tone.schema.json").write_text("{}")
        assert process.stderr.readline() == "portbook: 1 file checked, all valid\n"
        process.send_signal(2)
        assert process.wait(30) == 130
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize(("named", "shown"), [(".", "assets/bad.json"), ("assets/", "assets/bad.json")])
def test_a_folder_is_shown_as_people_would_write_it(named: str, shown: str, folder: Path) -> None:
    bad(folder)
    assert validate(folder, named).out.decode().startswith(f"{shown}:3:12: ")


def test_a_misspelt_setting_stops_it(folder: Path) -> None:
    (folder / "portbook.toml").write_text('[assets]\nschema = "x"\n')
    done = validate(folder, "assets")
    assert (done.code, "did you mean assets.schemas?" in done.err) == (2, True)


def test_hidden_files_and_other_files_of_a_folder_are_left_out(folder: Path) -> None:
    (folder / "assets/.hidden.json").write_text("{")
    (folder / "assets/.git").mkdir()
    (folder / "assets/.git/x.json").write_text("{")
    (folder / "assets/notes.txt").write_text("{")
    assert validate(folder, "assets").code == 0
