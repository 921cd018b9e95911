"""`portbook diff`: a patch for programs, two sides for people, and a verdict on schemas."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

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


@pytest.mark.parametrize(("name", "said"), [("gone", "cannot be read"), ("text", "not JSON")])
def test_a_file_that_cannot_be_read_is_trouble(name: str, said: str, tmp_path: Path) -> None:
    write(tmp_path, a={}, text="{")
    for arguments in (("a.json", f"{name}.json"), ("--schema", f"{name}.json", "a.json")):
        done = diff(tmp_path, *arguments)
        assert (done.code, done.out) == (2, b"")
        assert f"portbook: error: {name}.json: {said}" in done.err


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
    assert (json.loads(done.out), done.code) == (
        {"verdict": "breaks", "instance": {"a": 0.5}, "errors": [{"path": "/a", "msg": "expected integer"}]},
        1,
    )
    shown, _ = on_a_terminal(tmp_path, "diff", "--schema", "old.json", "new.json")
    words = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert words == 'breaks: this was valid and no longer is:\n  {\n    "a": 0.5\n  }\n/a: expected integer\n'


@pytest.mark.parametrize(
    ("old", "new", "told", "status"),
    [
        ({"type": "integer"}, {"type": "number"}, {"verdict": "compatible"}, 0),
        (
            {"not": {"not": {"type": "string"}}},
            {"type": "string"},
            {"verdict": "unknown", "undecided": [{"path": "/type"}]},
            3,
        ),
        (
            {"properties": {"a": {"not": {"not": {"type": "string"}}}}},
            {"properties": {"a": {"oneOf": [{"type": "string"}, {"type": "string", "not": {}}]}}},
            {"verdict": "unknown", "undecided": [{"path": "/properties/a/oneOf"}]},
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
        assert f"\n{place['path']}: not proved to allow everything that was valid\n" in shown


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
    assert (done.code, "old.json: /type: " in done.err) == (2, True)


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
    assert json.loads(diff(tmp_path, "--schema", "v1", "v2").out) == {
        "schemas": [
            {
                "name": "order",
                "verdict": "breaks",
                "instance": {"pay": 5},
                "errors": [{"path": "/pay", "msg": "above the maximum 4"}],
            },
            {
                "name": "parts/pay",
                "verdict": "breaks",
                "instance": 5,
                "errors": [{"path": "", "msg": "above the maximum 4"}],
            },
        ]
    }


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
