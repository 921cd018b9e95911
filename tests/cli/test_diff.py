"""`portbook diff`: a patch for programs, two sides for people, and a verdict on schemas."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from portbook.cli.diff import CHANGE_FORMATS
from support.portbook_process import Finished, run
from support.pseudo_terminal import on_a_terminal


def write(folder: Path, **documents: Any) -> None:
    for name, document in documents.items():
        text = document if isinstance(document, str) else json.dumps(document)
        (folder / f"{name}.json").write_text(text)


def diff(folder: Path, *arguments: str) -> Finished:
    return run("diff", *arguments, cwd=folder)


def test_a_patch_leads_from_the_first_to_the_second(tmp_path: Path) -> None:
    write(tmp_path, a={"x": 1, "y": {"z": [1]}}, b={"x": 1.0, "y": {"z": [1]}, "n": None})
    done = diff(tmp_path, "a.json", "b.json")
    assert done.out == b'[{"op":"add","path":"/n","value":null},{"op":"replace","path":"/x","value":1.0}]\n'
    assert (done.code, done.err) == (1, "")


def test_files_that_say_the_same_have_an_empty_patch_and_status_0(tmp_path: Path) -> None:
    write(tmp_path, a='{"x":1,"y":2}', b='{ "y": 2, "x": 1 }')
    done = diff(tmp_path, "a.json", "b.json")
    assert (done.out, done.code) == (b"[]\n", 0)


@pytest.mark.parametrize(("name", "said"), [("gone", ": cannot be read"), ("text", ":1:1: not JSON")])
def test_a_file_that_cannot_be_read_is_trouble(name: str, said: str, tmp_path: Path) -> None:
    write(tmp_path, a={}, text="{")
    for arguments in (("a.json", f"{name}.json"), ("--schema", f"{name}.json", "a.json")):
        done = diff(tmp_path, *arguments)
        assert (done.code, done.out) == (2, b"")
        assert f"portbook: error: {name}.json{said}" in done.err


def test_on_a_terminal_both_sides_stand_beside_each_other(tmp_path: Path) -> None:
    write(tmp_path, a={"gone": "a\u202eb", "x": 1, "y": list(range(50))}, b={"x": {"n": 1}, "y": []})
    shown, status = on_a_terminal(tmp_path, "diff", "a.json", "b.json")
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in shown.splitlines()]
    assert status == 1
    assert "\x1b[31m" in shown
    assert "\x1b[32m" in shown
    assert [line for line in lines if line.startswith("/")] == ["/gone", "/x", "/y"]
    assert [part.strip() for part in lines[1].split("│")] == ['"a\\u202eb"', ""]
    assert [part.strip() for part in lines[3].split("│")] == ["1", "{"]
    assert any("52 lines" in line for line in lines)
    plain, _ = on_a_terminal(tmp_path, "diff", "--json", "a.json", "b.json")
    assert plain.startswith('[{"op":"remove","path":"/gone"}')


def test_a_break_of_a_schema_comes_with_an_instance(tmp_path: Path) -> None:
    write(
        tmp_path,
        old={"properties": {"a": {"type": "number"}}},
        new={"properties": {"a": {"type": "integer"}}},
    )
    done = diff(tmp_path, "--schema", "old.json", "new.json")
    shown_by = {"instance": {"a": 0.5}, "errors": [{"path": "/a", "msg": "expected integer"}]}
    place = {"path": "/properties/a/type", "file": "new.json", "line": 1, "column": 31}
    assert (json.loads(done.out), done.code) == (
        {
            "verdict": "breaks",
            **shown_by,
            "breaks": [{**place, "keyword": "type", **shown_by}],
            "undecided": [],
        },
        1,
    )
    shown, _ = on_a_terminal(tmp_path, "diff", "--schema", "old.json", "new.json")
    words = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert words == (
        "breaks: this was valid and no longer is:\n"
        "new.json:1:31: /properties/a/type: /a: expected integer\n"
        '  {\n    "a": 0.5\n  }\n'
    )


OLD = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "key": {"type": "string", "pattern": "^[a-z0-9]+$"},
        "kept": {"type": "string", "pattern": "^[a-z]+$"},
        "odd": {"not": {"not": {"type": "string"}}},
    },
}
NEW = """{
  "type": "object",
  "properties": {
    "name": { "type": "string", "maxLength": 5 },
    "tags": { "type": "array", "items": { "type": "string", "minLength": 1 }, "maxItems": 3 },
    "key": { "type": "string", "pattern": "^[a-z]+$" },
    "kept": { "type": "string", "pattern": "^[a-z0-9]+$" },
    "odd": { "type": "string" }
  },
  "required": ["name", "key"],
  "additionalProperties": false
}
"""
BREAKS = [
    (4, 46, "/properties/name/maxLength", {"key": "a", "name": "aaaaaa"}),
    (5, 74, "/properties/tags/items/minLength", {"key": "a", "name": "", "tags": [""]}),
    (5, 91, "/properties/tags/maxItems", {"key": "a", "name": "", "tags": ["a", "a", "a", "a"]}),
    (6, 43, "/properties/key/pattern", {"key": "0", "name": ""}),
    (10, 15, "/required", {"name": ""}),
    (10, 15, "/required", {"key": "a"}),
    (11, 27, "/additionalProperties", {"key": "a", "name": "", "portbook-unheard-of": None}),
]


def test_every_break_of_a_schema_is_listed_with_its_place_and_an_instance_of_its_own(tmp_path: Path) -> None:
    write(tmp_path, old=OLD, new=NEW)
    told = json.loads(diff(tmp_path, "--schema", "old.json", "new.json").out)
    assert [(one["line"], one["path"]) for one in told["breaks"]] == [
        (line, path) for line, _, path, _ in BREAKS
    ]
    assert all(len(one["errors"]) == 1 for one in told["breaks"]), "no instance shows two breaks"
    assert [(one["line"], one["path"]) for one in told["undecided"]] == [(8, "/properties/odd/type")]
    assert [one["instance"] for one in told["breaks"]] == [instance for _, _, _, instance in BREAKS]
    text = diff(tmp_path, "--schema", "--format", "text", "old.json", "new.json").out.decode()
    for one in told["breaks"]:
        assert f"new.json:{one['line']}:{one['column']}: {one['path']}: " in text


AT = {"file": "new.json", "line": 1}


@pytest.mark.parametrize(
    ("old", "new", "told", "status"),
    [
        ({"type": "integer"}, {"type": "number"}, {"verdict": "compatible"}, 0),
        (
            {"not": {"not": {"type": "string"}}},
            {"type": "string"},
            {"verdict": "unknown", "undecided": [{"path": "/type", **AT, "column": 10}]},
            3,
        ),
        (
            {"properties": {"a": {"not": {"not": {"type": "string"}}}}},
            {"properties": {"a": {"oneOf": [{"type": "string"}, {"type": "string", "not": {}}]}}},
            {"verdict": "unknown", "undecided": [{"path": "/properties/a/oneOf", **AT, "column": 32}]},
            3,
        ),
        (
            {"$dynamicAnchor": "a", "$dynamicRef": "#b", "$defs": {"b": {"$dynamicAnchor": "b"}}},
            {"not": {"not": {}}},
            {"verdict": "unknown", "undecided": []},
            3,
        ),
    ],
)
def test_without_an_instance_it_is_compatible_or_unknown(
    old: Any, new: Any, told: dict[str, Any], status: int, tmp_path: Path
) -> None:
    write(tmp_path, old=old, new=new)
    done = diff(tmp_path, "--schema", "old.json", "new.json")
    assert (json.loads(done.out), done.code) == (told, status)
    shown, _ = on_a_terminal(tmp_path, "diff", "--schema", "old.json", "new.json")
    assert told["verdict"] in shown
    for place in told.get("undecided", []):
        assert f"{place['path']}: not proved to allow everything that was valid\n" in shown


def test_references_to_files_beside_each_version_are_followed(tmp_path: Path) -> None:
    for version, limit in (("v1", 5), ("v2", 4)):
        (tmp_path / version).mkdir()
        write(tmp_path / version, tone={"maximum": limit})
        (tmp_path / version / "asset.schema.json").write_text('{"properties":{"t":{"$ref":"tone.json"}}}')
    done = diff(tmp_path, "--schema", "v1/asset.schema.json", "v2/asset.schema.json")
    assert json.loads(done.out)["instance"] == {"t": 5}
    assert diff(tmp_path, "--schema", "v2/asset.schema.json", "v1/asset.schema.json").code == 0


def test_what_is_no_schema_is_trouble(tmp_path: Path) -> None:
    write(tmp_path, old={"type": 5}, new={})
    done = diff(tmp_path, "--schema", "old.json", "new.json")
    assert (done.code, "old.json:1:10: /type: " in done.err) == (2, True)


def versions(folder: Path, **changed: tuple[Any, Any]) -> None:
    """Write schemas in two folders, each as it was and as it is; None where there is none."""
    for version, at in (("v1", 0), ("v2", 1)):
        for name, schemas in changed.items():
            path = folder / version / f"{name.replace('_', '/')}.schema.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            if schemas[at] is not None:
                path.write_text(schemas[at] if isinstance(schemas[at], str) else json.dumps(schemas[at]))


ID = "https://schemas.example/"


def test_what_is_named_by_its_id_is_found_below_the_folder_of_each_version(tmp_path: Path) -> None:
    order = {"$id": f"{ID}order", "properties": {"pay": {"$ref": "parts/pay"}}}
    versions(
        tmp_path,
        order=(order, order),
        parts_pay=(
            {"$id": f"{ID}parts/pay", "maximum": 5},
            {"$id": f"{ID}parts/pay", "maximum": 4},
        ),
    )
    for arguments, status in ((("v1", "v2"), 1), (("v2", "v1"), 0)):
        old, new = (f"{version}/order.schema.json" for version in arguments)
        done = diff(tmp_path, "--schema", old, new)
        assert done.code == status, done.err
    order, pay = json.loads(diff(tmp_path, "--schema", "v1", "v2").out)["schemas"]
    assert (order["name"], order["verdict"], order["instance"]) == ("order", "breaks", {"pay": 5})
    assert (pay["name"], pay["verdict"], pay["instance"]) == ("parts/pay", "breaks", 5)
    for one in (order, pay):
        (found,) = one["breaks"]
        assert (found["file"], found["path"]) == ("v2/parts/pay.schema.json", "/maximum")
        assert (found["line"], found["errors"][0]["msg"]) == (1, "above the maximum 4")


SAME = ({}, {})
BROKEN = ({}, {"type": 5})


@pytest.mark.parametrize(
    ("changed", "verdicts", "status"),
    [
        ({"a": SAME, "b": (None, {})}, ["compatible", "added"], 0),
        ({"a": SAME, "b": ({"not": {"not": {"minimum": 1}}}, {"minimum": 1})}, ["compatible", "unknown"], 3),
        ({"a": ({}, None), "b": SAME}, ["removed", "compatible"], 1),
        ({"a": ({}, False), "b": (False, {}), "c": SAME}, ["unusable", "unusable", "compatible"], 2),
        ({"a": BROKEN, "b": ({}, {"type": "null"})}, ["unusable", "breaks"], 2),
        ({"a": ("{", {}), "b": SAME}, ["unusable", "compatible"], 2),
    ],
)
def test_of_two_folders_every_schema_has_a_verdict_and_the_worst_is_the_status(
    changed: dict[str, Any], verdicts: list[str], status: int, tmp_path: Path
) -> None:
    versions(tmp_path, **changed)
    done = diff(tmp_path, "--schema", "v1", "v2")
    told = json.loads(done.out)["schemas"]
    assert [(one["name"], one["verdict"]) for one in told] == list(zip(changed, verdicts, strict=True))
    assert done.code == status
    problems = [one["problem"] for one in told if one["verdict"] == "unusable"]
    assert all(re.match(r"v[12]/[ab]\.schema\.json: ", problem) for problem in problems)
    words, _ = on_a_terminal(tmp_path, "diff", "--schema", "v1", "v2")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", words).splitlines()
    for name, verdict in zip(changed, verdicts, strict=True):
        assert any(line.startswith(f"{name}: {verdict}: ") for line in lines)


def test_two_folders_without_a_schema_are_no_verdict(tmp_path: Path) -> None:
    (tmp_path / "v1").mkdir()
    (tmp_path / "v2").mkdir()
    done = diff(tmp_path, "--schema", "v1", "v2")
    assert (done.code, done.out) == (2, b"")
    assert done.err == "portbook: error: v1: the folder holds no .json file\n"


def test_breaks_are_annotations_for_github_and_results_for_sarif(tmp_path: Path) -> None:
    write(tmp_path, old=OLD, new=NEW)
    done = diff(tmp_path, "--schema", "--format", "github", "old.json", "new.json")
    *breaks, undecided = sorted(done.out.decode().splitlines())
    assert done.code == 1
    assert [line.partition("::/")[0] for line in breaks] == sorted(
        f"::error file=new.json,line={line},col={column}" for line, column, _, _ in BREAKS
    )
    assert undecided == (
        "::warning file=new.json,line=8,col=22::/properties/odd/type: "
        "not proved to allow everything that was valid"
    )
    log = json.loads(diff(tmp_path, "--schema", "--format", "sarif", "old.json", "new.json").out)
    run = log["runs"][0]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert rules == [
        "break/additionalProperties",
        "break/maxItems",
        "break/maxLength",
        "break/minLength",
        "break/pattern",
        "break/required",
        "undecided",
    ]
    last = next(result for result in run["results"] if result["ruleId"] == "break/pattern")
    assert last["message"]["text"] == (
        '/properties/key/pattern: {"key":"0","name":""} was valid and no longer is: '
        '/key: does not match the pattern "^[a-z]+$"'
    )
    region = last["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 6, "startColumn": 43, "endColumn": 53}
    assert {result["level"] for result in run["results"]} == {"error", "warning"}


def test_a_schema_that_is_gone_or_unusable_is_reported_at_its_file(tmp_path: Path) -> None:
    versions(tmp_path, a=({}, None), b=BROKEN, c=SAME)
    done = diff(tmp_path, "--schema", "--format", "github", "v1", "v2")
    assert done.out.decode().splitlines()[0] == "::error file=v1/a.schema.json::the schema is gone"
    assert done.out.decode().splitlines()[1].startswith("::error file=v2/b.schema.json::/type: must be")
    assert (done.out.count(b"\n"), done.code) == (2, 2)


UNUSABLE = [
    ("text.json", "{\n", "2:1", "not JSON: the text is incomplete"),
    ("twice.json", '{"type": "object",\n "type": "object"}', "2:2", "the same key twice"),
    ("list.json", "[]", "1:1", "a schema must be an object"),
    ("type.json", '{\n  "type": "objct"}', "2:11", "must be one of"),
    ("far.json", '{"$ref": "zz.json"}', "1:10", "refers to a different document"),
    ("old.json", '{"$schema": "http://json-schema.org/draft-07/schema#"}', "1:13", "rename definitions to"),
    ("none.json", None, None, "cannot be read"),
]


@pytest.mark.parametrize("side", ["old", "new"])
@pytest.mark.parametrize(("name", "text", "place", "says"), UNUSABLE, ids=[each[0] for each in UNUSABLE])
def test_a_schema_that_cannot_be_used_is_told_with_its_place_in_every_format(
    name: str, text: str | None, place: str | None, says: str, side: str, tmp_path: Path
) -> None:
    (tmp_path / "good.json").write_text("{}")
    if text is not None:
        (tmp_path / name).write_text(text)
    files = (name, "good.json") if side == "old" else ("good.json", name)
    told = {form: run("diff", "--schema", *files, "--format", form, cwd=tmp_path) for form in CHANGE_FORMATS}
    assert {each.code for each in told.values()} == {2}
    begins = name if place is None else f"{name}:{place}"
    assert told["text"].out == b""
    assert told["text"].err.startswith(f"portbook: error: {begins}: ")
    assert says in told["text"].err
    line, column = (None, None) if place is None else map(int, place.split(":"))
    [problem] = json.loads(told["json"].out)["error"]["problems"]
    assert (problem["line"], problem["column"], says in problem["message"]) == (line, column, True)
    where = "" if place is None else f",line={line},col={column}"
    assert told["github"].out.decode().startswith(f"::error file={name}{where}::")
    [result] = json.loads(told["sarif"].out)["runs"][0]["results"]
    region = result["locations"][0]["physicalLocation"].get("region", {})
    assert (region.get("startLine"), region.get("startColumn")) == (line, column)


def test_a_document_that_is_not_json_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": 1,\n}')
    (tmp_path / "b.json").write_text("{}")
    finished = run("diff", "a.json", "b.json", cwd=tmp_path)
    assert (finished.code, finished.out) == (2, b"")
    assert finished.err.startswith("portbook: error: a.json:2:1: not JSON: ")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--format", "sarif"), "--format sarif reports changes of schemas; add --schema"),
        (("--json", "--format", "text"), "--json and --format text contradict each other; use one of them"),
    ],
)
def test_formats_that_do_not_fit_are_refused(arguments: tuple[str, ...], says: str, tmp_path: Path) -> None:
    write(tmp_path, a={}, b={})
    done = diff(tmp_path, *arguments, "a.json", "b.json")
    assert (done.code, says in done.out.decode() + done.err) == (2, True)


def test_a_wider_pattern_is_proved_and_a_narrower_one_is_shown_to_break(tmp_path: Path) -> None:
    write(tmp_path, old={"pattern": "^[a-z]+$"}, new={"pattern": "^[a-z0-9]+$"})
    assert diff(tmp_path, "--schema", "old.json", "new.json").out == b'{"verdict":"compatible"}\n'
    back = json.loads(diff(tmp_path, "--schema", "new.json", "old.json").out)
    assert (back["verdict"], back["instance"]) == ("breaks", "0")
