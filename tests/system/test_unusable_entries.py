"""Servers with entries that nothing can be done with: the rest of the server, and every other, is served."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.mcp_peer import peer_of, table
from support.portbook_process import TESTS, run

SCHEMA = {"type": "object"}
GOOD = {"name": "good", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}}
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a schema in a list": ({"tools": [{"name": "t", "inputSchema": []}]}, "/tools/1/inputSchema"),
    "no schema": ({"tools": [{"name": "t"}]}, "/tools/1"),
    "annotations in a list": (
        {"tools": [{"name": "t", "inputSchema": SCHEMA, "annotations": []}]},
        "/tools/1/annotations",
    ),
    "a description in a list": (
        {"tools": [{"name": "t", "inputSchema": SCHEMA, "description": ["x"]}]},
        "/tools/1/description",
    ),
    "a name that is a number": ({"tools": [{"name": 5, "inputSchema": SCHEMA}]}, "/tools/1/name"),
    "arguments that are a number": ({"prompts": [{"name": "p", "arguments": 5}]}, "/prompts/0/arguments"),
    "arguments that are texts": ({"prompts": [{"name": "p", "arguments": ["x"]}]}, "/prompts/0/arguments/0"),
}


def command(alias: str) -> str:
    program = str(TESTS / "fixtures" / "telling_server.py")
    return f"command = {json.dumps([sys.executable, program, f'{alias}.json'])}"


def offering(folder: Path, *lines: str, **lists: Any) -> str:
    """The settings of a server with these lists, beside a healthy one."""
    (folder / "box.json").write_text(json.dumps(lists))
    (folder / "other.json").write_text(json.dumps({"tools": [GOOD]}))
    return table("box", command("box"), *lines) + table("other", command("other"))


class LeftOut(NamedTuple):
    """What became of a server for each wrong entry, named `box` and its number, beside a healthy one."""

    pinned: str
    served: str
    names: list[str]
    texts: dict[str, str]


@pytest.fixture(scope="module", params=["enforce", "warn"])
def left_out(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LeftOut:
    folder = tmp_path_factory.mktemp("wrong")
    (folder / "other.json").write_text(json.dumps({"tools": [GOOD]}))
    settings = table("other", command("other"))
    for number, (lists, _) in enumerate(WRONG.values()):
        offered = {**lists, "tools": [GOOD, *lists.get("tools", [])]}
        (folder / f"box{number}.json").write_text(json.dumps(offered))
        settings += table(f"box{number}", command(f"box{number}"), f'validation = "{request.param}"')
    settings = settings.replace("first-use", "lock")
    (folder / "portbook.toml").write_text(settings)
    pinned = run("pin", cwd=folder)
    assert pinned.code == 0
    assert run("pin", "--check", cwd=folder).code == 0
    with peer_of(folder, settings) as peer:
        names = peer.names()
        texts = {name: peer.text(name) for name in names}
    return LeftOut(pinned.err, (folder / "stderr").read_text(), names, texts)


@pytest.mark.parametrize("wrong", WRONG)
def test_an_entry_that_cannot_be_used_is_left_out_alone(left_out: LeftOut, wrong: str) -> None:
    box, (_, place) = f"box{list(WRONG).index(wrong)}", WRONG[wrong]
    told = re.compile(rf"mcp\.{box}: .* is left out: {place}\b")
    assert told.search(left_out.pinned)
    assert [name for name in left_out.names if name.startswith(box)] == [f"{box}__good"]
    assert left_out.texts[f"{box}__good"] == left_out.texts["other__good"] == "done"
    assert told.search(left_out.served)
    assert "Traceback" not in left_out.served


@pytest.mark.parametrize("given", ["x", ["x"], 5, None])
def test_a_list_that_is_none_takes_its_own_server_away_alone(tmp_path: Path, given: Any) -> None:
    with peer_of(tmp_path, offering(tmp_path, 'validation = "warn"', tools=given)) as peer:
        assert peer.names() == ["other__good"]
    assert "must be a list of objects" in (tmp_path / "stderr").read_text()
    assert "Traceback" not in (tmp_path / "stderr").read_text()


@pytest.mark.parametrize("validation", ["enforce", "warn"])
def test_what_is_null_is_missing_to_a_lenient_operator(tmp_path: Path, validation: str) -> None:
    null = {"name": "null", "inputSchema": SCHEMA, "description": None, "annotations": None}
    settings = offering(tmp_path, f'validation = "{validation}"', tools=[GOOD, null])
    with peer_of(tmp_path, settings) as peer:
        is_lenient = validation == "warn"
        assert ("box__null" in peer.names()) == is_lenient
        if is_lenient:
            assert peer.text("box__null") == "done"
    assert ('`validation = "warn"` takes' in (tmp_path / "stderr").read_text()) != is_lenient


def test_two_entries_of_one_name_differ_from_what_is_approved(tmp_path: Path) -> None:
    one = {"name": "one", "inputSchema": SCHEMA}
    (tmp_path / "portbook.toml").write_text(offering(tmp_path, tools=[GOOD, one]))
    assert run("pin", cwd=tmp_path).code == 0
    settings = offering(tmp_path, tools=[GOOD, {**one, "description": "changed"}, one])
    checked = run("pin", "--check", cwd=tmp_path)
    assert checked.code == 1
    assert "tool 'one' is left out: the server has two entries of this name" in checked.err
    with peer_of(tmp_path, settings) as peer:
        assert peer.call("box__good")["content"]
        assert peer.names() == ["box__good", "other__good"]


@pytest.mark.parametrize("name", ["new\nline", "tab\t", "back\r"])
def test_a_name_with_a_line_break_is_a_finding(tmp_path: Path, name: str) -> None:
    lists = {"tools": [GOOD, {"name": name, "inputSchema": SCHEMA}]}
    (tmp_path / "portbook.toml").write_text(offering(tmp_path, **lists))
    pinned = run("pin", cwd=tmp_path)
    assert pinned.code == 1
    assert list(json.loads((tmp_path / "portbook.lock").read_text())["mcp"]["box"]["tools"]) == ["good"]


def test_an_entry_without_a_name_is_left_out(tmp_path: Path) -> None:
    settings = offering(tmp_path, tools=[GOOD, {"name": "", "inputSchema": SCHEMA}])
    with peer_of(tmp_path, settings) as peer:
        assert sorted(peer.names()) == ["box__good", "other__good"]
    assert "/tools/1/name: must not be empty" in (tmp_path / "stderr").read_text()


def _nested(depth: int) -> Any:
    value: Any = {}
    for _ in range(depth):
        value = {"not": value}
    return value


@pytest.mark.parametrize(
    ("entry", "why"),
    [({"description": "\ud800"}, "surrogate"), ({"inputSchema": {**SCHEMA, **_nested(300)}}, "deep")],
)
def test_an_unreadable_list_is_told_at_once_with_the_reason(
    tmp_path: Path, entry: dict[str, Any], why: str
) -> None:
    lists = {"tools": [{"name": "t", "inputSchema": SCHEMA, **entry}]}
    (tmp_path / "portbook.toml").write_text(offering(tmp_path, "timeout_ms = 600000", **lists))
    pinned = run("pin", "box", cwd=tmp_path)
    told = pinned.err + pinned.out.decode()
    assert pinned.code == 1
    assert "an answer is not JSON" in told
    assert why in told


def test_a_schema_of_a_dialect_that_nobody_supports_says_which_are(tmp_path: Path) -> None:
    old = {**SCHEMA, "$schema": "http://json-schema.org/draft-04/schema#"}
    settings = offering(tmp_path, tools=[GOOD, {"name": "t", "inputSchema": old}])
    with peer_of(tmp_path, settings) as peer:
        assert sorted(peer.names()) == ["box__good", "other__good"]
    assert "beside draft-07, which the tools of MCP servers may have" in (tmp_path / "stderr").read_text()
