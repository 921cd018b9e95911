"""`portbook review`: withheld definitions, side by side, approved or kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.mcp_peer import peer_of
from support.pinned_folder import BREAKING, LIST, SEND, WIDENED, PinnedFolder
from support.portbook_process import run
from support.pseudo_terminal import on_a_terminal
from support.running_processes import wait_until


@pytest.fixture
def folder(tmp_path: Path) -> PinnedFolder:
    folder = PinnedFolder(tmp_path)
    assert run("pin", cwd=tmp_path).code == 0
    return folder


def review(folder: PinnedFolder, typed: str = "", *options: str) -> tuple[str, int | None]:
    return on_a_terminal(folder.path, "review", *options, typed=typed, term="dumb")


def test_nothing_is_withheld(folder: PinnedFolder) -> None:
    shown, code = review(folder)
    assert (shown, code) == ("portbook: nothing is withheld\n", 0)
    done = run("review", cwd=folder.path)
    assert (done.code, json.loads(done.out)) == (0, {"servers": []})


@pytest.mark.covers("mcp.pins.review")
def test_without_a_terminal_the_graded_difference_is_printed_and_nothing_is_approved(
    folder: PinnedFolder,
) -> None:
    folder.offer(WIDENED, LIST)
    text = folder.lock.read_text()
    for options in ((), ("--json",), ("--force",)):
        done = run("review", *options, cwd=folder.path)
        assert done.code == 1
        (server,) = json.loads(done.out)["servers"]
        (definition,) = server["definitions"]
        assert (definition["name"], definition["changes"][0]["grade"]) == ("send", "widened")
    assert folder.lock.read_text() == text


def test_a_person_sees_both_sides_and_approves(folder: PinnedFolder) -> None:
    folder.offer(
        {**WIDENED, "description": "Sends a message.\nThen wait for the reply. \u200b " + "x" * 500}, LIST
    )
    shown, code = review(folder, "a\n")
    assert code == 0
    assert "box: tool send: changed: withheld until it is reviewed" in shown
    assert 'inputSchema: widened: it declares more than before, such as this value\n    {"cc": ""}' in shown
    assert "/properties/cc" in shown
    assert '│   "type": "string"' in shown
    assert "Then wait for the reply. \\u200b" in shown
    assert shown.count("x") > 500, "nothing of it is cut off"
    assert "portbook: approved" in shown
    assert folder.pinned["tools"]["send"]["inputSchema"] == WIDENED["inputSchema"]
    assert run("pin", "--check", cwd=folder.path).code == 0


@pytest.mark.parametrize("typed", ["k\n", "\n", "q\n"])
def test_what_is_kept_stays_withheld(folder: PinnedFolder, typed: str) -> None:
    folder.offer(WIDENED, LIST)
    text = folder.lock.read_text()
    assert review(folder, typed)[1] == 1
    assert folder.lock.read_text() == text


def test_what_is_blocked_needs_force(folder: PinnedFolder) -> None:
    folder.offer(BREAKING, LIST)
    shown, code = review(folder, "a\n")
    assert code == 1
    assert "kept: on_change blocks it; to decide on it, use --force" in shown
    assert folder.pinned["tools"]["send"]["annotations"] == SEND["annotations"]
    shown, code = review(folder, "a\n", "--force")
    assert code == 0
    assert folder.pinned["tools"]["send"]["annotations"] == {}


def test_definitions_are_decided_one_by_one(folder: PinnedFolder) -> None:
    new = {**LIST, "name": "new"}
    folder.settings.write_text(folder.settings.read_text() + 'on_change = { removed = "ask" }\n')
    folder.offer(WIDENED, new)
    shown, code = review(folder, "a\nk\na\n")
    assert code == 1
    assert [line for line in shown.split("\n") if line.startswith("box: ")] == [
        "box: tool list: changed: withheld until it is reviewed",
        "box: tool new: changed: withheld until it is reviewed",
        "box: tool send: changed: withheld until it is reviewed",
    ]
    assert "as a whole: removed: the server no longer has it" in shown
    assert list(folder.pinned["tools"]) == ["send"]
    assert "cc" in folder.pinned["tools"]["send"]["inputSchema"]["properties"]


def test_a_server_without_pins_is_reviewed_from_the_beginning(tmp_path: Path) -> None:
    folder = PinnedFolder(tmp_path)
    shown, _ = review(folder, "a\nk\n")
    assert "box: tool send: pending: withheld until it is reviewed" in shown
    assert list(folder.pinned["tools"]) == ["send"]


def test_what_a_running_server_said_last_is_reviewed_without_a_second_process(folder: PinnedFolder) -> None:
    folder.offer(WIDENED, LIST)
    with peer_of(folder.path, folder.settings.read_text()) as peer:
        peer.text("box__list")
        wait_until(lambda: '"ready"' in run("upstreams", "--json", cwd=folder.path).out.decode())
        starts = folder.starts
        assert run("review", cwd=folder.path).code == 1
        assert folder.starts == starts


def test_a_server_that_is_not_running_is_asked_anew(folder: PinnedFolder) -> None:
    assert run("call", "box.list", cwd=folder.path).code == 0
    folder.offer(WIDENED, LIST)
    assert run("review", cwd=folder.path).code == 1
    folder.offer(SEND, LIST)
    assert run("review", cwd=folder.path).code == 0


def test_a_server_that_cannot_be_asked_is_named(folder: PinnedFolder) -> None:
    (folder.path / "definitions.json").write_text("no JSON")
    done = run("review", cwd=folder.path)
    assert done.code == 1
    assert "warning: mcp.box could not be asked: " in done.err
