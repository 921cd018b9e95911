"""What is wrong with a file, as a person, a program, GitHub and an editor read it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from support.pseudo_terminal import on_a_terminal
from support.validated_folder import bad, validate


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
                    {"path": "/pitch", "msg": "expected number", "keyword": "type", "line": 3, "column": 12},
                    {"path": "/name", "msg": "expected string", "keyword": "type", "line": 4, "column": 11},
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
    assert [rule["id"] for rule in driver["rules"]] == ["json", "type"]
    assert all(rule["shortDescription"]["text"] for rule in driver["rules"])
    assert [result["ruleId"] for result in results] == ["type", "type", "json"]
    assert all(driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"] for result in results)
    locations = [result["locations"][0]["physicalLocation"] for result in results]
    assert [location["artifactLocation"]["uri"] for location in locations] == [
        "assets/bad.json",
        "assets/bad.json",
        "assets/%C3%A4%20b.json",
    ]
    assert locations[0]["region"] == {"startLine": 3, "startColumn": 12, "endColumn": 18}
    assert results[0]["message"]["text"] == "/pitch: expected number"


@pytest.mark.parametrize(("named", "shown"), [(".", "assets/bad.json"), ("assets/", "assets/bad.json")])
def test_a_folder_is_shown_as_people_would_write_it(named: str, shown: str, folder: Path) -> None:
    bad(folder)
    assert validate(folder, named).out.decode().startswith(f"{shown}:3:12: ")


@pytest.mark.parametrize(
    ("text", "place", "line", "caret"),
    [
        ('{\n  "a": 1,\n  "ä": 2,\n  "ä"  : 3\n}', "4:3", '  "ä"  : 3', "  ^^^"),
        ('{"x": {"b": 1, "c": ["b"],\n"\\u0062": 3}}', "2:1", '"\\u0062": 3}}', "^^^^^^^^"),
    ],
)
def test_the_caret_of_a_duplicate_key_is_under_the_key(
    text: str, place: str, line: str, caret: str, folder: Path
) -> None:
    (folder / "assets/tone.json").write_text(text)
    done = validate(folder, "assets")
    assert done.out.decode() == (
        f"assets/tone.json:{place}: error: not JSON: an object has the same key twice; keep one\n"
        f"  {line}\n  {caret}\n"
    )
