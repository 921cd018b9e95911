"""`portbook pin`: what it approves, what it only checks, and what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.pinned_folder import BREAKING, LIST, SEND, WIDENED, PinnedFolder
from support.portbook_process import run
from support.pseudo_terminal import on_a_terminal


@pytest.fixture
def folder(tmp_path: Path) -> PinnedFolder:
    return PinnedFolder(tmp_path)


def report(folder: PinnedFolder, *options: str) -> tuple[int, Any]:
    done = run("pin", "--json", *options, cwd=folder.path)
    return done.code, json.loads(done.out)


@pytest.mark.covers("mcp.pins.lock")
def test_pin_approves_what_is_there_now(folder: PinnedFolder) -> None:
    folder.offer(SEND, LIST, prompts=[{"name": "hello"}], instructions="Be kind.")
    code, found = report(folder)
    assert (code, found["written"], found["gone"]) == (0, True, [])
    assert folder.pinned == {
        "instructions": "Be kind.",
        "prompts": {"hello": {}},
        "tools": {
            each["name"]: {part: each[part] for part in each if part != "name"} for each in (LIST, SEND)
        },
    }
    names = [(each["kind"], each["name"]) for each in found["servers"][0]["definitions"]]
    assert names == [("server", ""), ("tool", "send"), ("tool", "list"), ("prompt", "hello")]


@pytest.mark.covers("mcp.pins.check")
def test_check_writes_nothing_and_tells_the_graded_difference(folder: PinnedFolder) -> None:
    code, _ = report(folder, "--check")
    assert code == 1
    assert not folder.lock.exists()
    report(folder)
    text = folder.lock.read_text()
    assert report(folder, "--check") == (
        0,
        {"servers": [{"name": "box", "definitions": [], "problem": None}], "gone": [], "written": False},
    )
    folder.offer({**WIDENED, "description": "Sends more."})
    code, found = report(folder, "--check")
    assert code == 1
    assert folder.lock.read_text() == text
    removed, changed = found["servers"][0]["definitions"]
    assert (removed["name"], removed["reaction"], removed["changes"][0]["grade"]) == (
        "list",
        "accept",
        "removed",
    )
    assert (changed["name"], changed["standing"], changed["reaction"]) == ("send", "changed", "ask")
    grades = {each["part"]: (each["grade"], each.get("instances")) for each in changed["changes"]}
    assert grades == {"description": ("words", None), "inputSchema": ("widened", [{"cc": ""}])}


def test_the_same_definitions_give_the_same_text(folder: PinnedFolder) -> None:
    report(folder)
    text = folder.lock.read_text()
    folder.offer(*(dict(reversed(each.items())) for each in (LIST, SEND)))
    assert report(folder)[0] == 0
    assert folder.lock.read_text() == text


def test_only_tools_that_are_wanted_are_pinned(tmp_path: Path) -> None:
    folder = PinnedFolder(tmp_path, 'tools = ["l*"]')
    report(folder)
    assert list(folder.pinned["tools"]) == ["list"]


def test_servers_are_named_and_others_keep_what_they_have(folder: PinnedFolder) -> None:
    report(folder)
    text = folder.settings.read_text()
    folder.settings.write_text(text + text[text.index("[mcp.box]") :].replace("box", "bag"))
    folder.offer(BREAKING)
    code, found = report(folder, "bag")
    assert (code, [each["name"] for each in found["servers"]]) == (0, ["bag"])
    assert folder.pinned["tools"].keys() == {"list", "send"}
    done = run("pin", "bags", cwd=folder.path)
    assert (done.code, done.out) == (1, b"")
    assert "there is no MCP server 'bags' in the settings; did you mean bag?" in done.err


def test_a_server_that_is_gone_from_the_settings_is_gone_from_the_lock(folder: PinnedFolder) -> None:
    report(folder)
    folder.settings.write_text(folder.settings.read_text().replace("[mcp.box]", "[mcp.bag]"))
    code, found = report(folder, "--check")
    assert (code, found["gone"]) == (1, ["box"])
    assert report(folder)[0] == 0
    assert list(json.loads(folder.lock.read_text())["mcp"]) == ["bag"]


def test_a_server_that_cannot_be_asked_keeps_what_it_has(folder: PinnedFolder) -> None:
    report(folder)
    text = folder.lock.read_text()
    (folder.path / "definitions.json").write_text("no JSON")
    code, found = report(folder)
    assert (code, found["written"]) == (1, False)
    assert found["servers"][0]["problem"]
    assert folder.lock.read_text() == text
    assert report(folder, "--check")[0] == 2


def test_a_lock_that_cannot_be_read_stops_every_command_before_a_server_starts(folder: PinnedFolder) -> None:
    folder.lock.write_text('{\n"mcp": {"box": 7}}')
    for command in (("pin",), ("pin", "--check"), ("review",), ("serve", "--stdio"), ("call", "box.send")):
        done = run(*command, cwd=folder.path)
        assert done.code == 2
        assert "portbook.lock:2: /mcp/box: must be an object; restore the file" in done.err
    assert folder.starts == 0


def test_people_get_words(folder: PinnedFolder) -> None:
    shown, code = on_a_terminal(folder.path, "pin", term="dumb")
    assert code == 0
    assert shown == "box: approved as it is now\n  tool send: added\n  tool list: added\n"
    folder.offer(BREAKING, LIST)
    shown, code = on_a_terminal(folder.path, "pin", "--check", term="dumb")
    assert code == 1
    assert "tool send: changed: withheld, and a review needs --force" in shown
    assert "annotations: breaking: the server now declares a worse effect than was approved" in shown
    shown, code = on_a_terminal(folder.path, "pin", term="dumb")
    assert "tool send: changed\n    annotations: breaking: the server now declares a worse effect" in shown
    assert on_a_terminal(folder.path, "pin", term="dumb") == (
        "box: approved before, nothing has changed\n",
        0,
    )
    assert on_a_terminal(folder.path, "pin", "--check", term="dumb") == ("box: as approved\n", 0)


def test_a_check_in_ci_tells_the_difference_in_words_too(folder: PinnedFolder) -> None:
    report(folder)
    folder.offer(WIDENED, LIST)
    done = run("pin", "--check", cwd=folder.path)
    assert json.loads(done.out)["servers"][0]["definitions"][0]["name"] == "send"
    assert "portbook:   tool send: changed: withheld until it is reviewed\n" in done.err
    assert 'portbook:       {"cc": ""}\n' in done.err
    assert run("pin", "--check", "--json", cwd=folder.path).err == ""


def test_without_servers_it_says_so(tmp_path: Path) -> None:
    done = run("pin", cwd=tmp_path)
    assert done.code == 0
    assert "there are no MCP servers in the settings; add one as [mcp.ALIAS]" in done.err
    assert not (tmp_path / "portbook.lock").exists()
