"""Servers that attack: what they do is bounded and told, and the next call is served."""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.leftover_processes import PROC
from support.mcp_peer import CAPABILITIES, Peer, peer_of, small_server, table
from support.portbook_process import TESTS, environment
from support.running_processes import wait_until

OWN = """
from portbook import Toolset

toolset = Toolset("own")


@toolset.resource("notes://mine")
def mine() -> str:
    return "mine"
"""
SMALL = table("small", small_server())


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
def revision(request: pytest.FixtureRequest) -> str:
    return request.param


def attacked(attack: str, *lines: str) -> str:
    command = json.dumps([sys.executable, str(TESTS / "fixtures" / "hostile_server.py"), attack])
    own = '[python]\ntoolsets = ["own.py"]\n'
    return own + SMALL + table("evil", f"command = {command}", *lines)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own.py").write_text(OWN)
    return tmp_path


def resident_mb(peer: Peer) -> float:
    status = (PROC / str(peer.process.pid) / "status").read_text()
    found = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) / 1024


def cpu_s(peer: Peer) -> float:
    fields = (PROC / str(peer.process.pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def said(folder: Path) -> str:
    return (folder / "stderr").read_text()


def assert_served(peer: Peer) -> None:
    assert peer.text("small__echo", {"text": "still here"}) == "still here"


@contextlib.contextmanager
def evil_peer(
    folder: Path, settings: str, revision: str = "2025-11-25", env: dict[str, str] | None = None
) -> Iterator[Peer]:
    """A client that sees the hostile server: on a busy machine Portbook serves before that has started."""
    with peer_of(folder, settings, revision, env) as peer:
        wait_until(lambda: "evil__echo" in peer.names(), 120)
        yield peer


@pytest.mark.covers("design.servers.hostile")
@pytest.mark.parametrize(
    ("attack", "words"),
    [
        ("endless cursors", "its tools/list has no end after 200 pages"),
        ("many tools", "its tools/list has more than 5000 entries"),
        ("long lists", "its tools/list makes its lists longer than 4194304 bytes"),
    ],
)
def test_a_list_without_end_is_given_up_and_told(folder: Path, attack: str, words: str) -> None:
    with peer_of(folder, attacked(attack)) as peer:
        assert_served(peer)
        assert not [name for name in peer.names() if name.startswith("evil")]
        wait_until(lambda: words in said(folder))
        assert resident_mb(peer) < 300


def test_odd_names_are_listed_as_names_that_clients_can_call_or_not_at_all(folder: Path) -> None:
    with evil_peer(folder, attacked("names")) as peer:
        names = peer.names()
        assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)
        assert len(set(names)) == len(names)
        assert "evil__twin" not in names
        assert "evil__b__c" not in names  # two of its tools would be listed so
        evil = [name for name in names if name.startswith("evil__") or "_evil" in name]
        assert all(peer.text(name) == "echo" for name in evil)
        assert peer.text("evil__echo") == "echo"
        assert_served(peer)
    assert all(line.isprintable() for line in said(folder).splitlines())
    assert len(said(folder)) < 20_000


@pytest.mark.parametrize("attack", ["progress", "list_changed", "updates", "new words on every list"])
def test_a_flood_fills_nothing_and_the_next_call_is_served(folder: Path, attack: str) -> None:
    with evil_peer(folder, attacked(attack, 'on_change = { words = "accept" }')) as peer:
        assert peer.text("evil__echo", _meta={"progressToken": "p"}) == "echo"
        for _ in range(20):
            assert_served(peer)
        assert resident_mb(peer) < 300
        assert peer.text("evil__echo") == "echo"
    if attack != "progress":  # a client gets as much progress as it can read, which is more on a fast machine
        assert len(peer.heard) < 20_000
    assert len(said(folder)) < 20_000


def test_short_lines_of_one_server_cost_next_to_nothing(folder: Path) -> None:
    with evil_peer(folder, attacked("short lines")) as peer:
        assert_served(peer)
        before = cpu_s(peer)
        assert peer.text("evil__echo") == "echo"
        # 500,000 of them: 0.2 s; read as messages they would take 3 s, for which calls of others wait.
        assert cpu_s(peer) - before < 1.2


def test_a_server_speaks_for_no_resource_of_others(folder: Path) -> None:
    with evil_peer(folder, attacked("updates")) as peer:
        peer.answer("resources/subscribe", {"uri": "notes://mine"})
        assert peer.text("evil__echo") == "echo"
        assert "notifications/resources/updated" not in peer.methods()
        answer = peer.answer("resources/read", {"uri": "evil://page"})
        assert "not mine" not in json.dumps(answer)
        own = peer.answer("resources/read", {"uri": "notes://mine"})["result"]["contents"][0]
        assert own["text"] == "mine"


def test_a_result_says_nothing_in_our_name(folder: Path, revision: str) -> None:
    with evil_peer(folder, attacked("our words"), revision) as peer:
        result = peer.call("evil__echo")
        assert {name for name in result["_meta"] if name.startswith(("portbook/", "own/"))} == {"own/key"}


def test_answers_to_ids_that_are_almost_right_are_no_answers(folder: Path) -> None:
    with evil_peer(folder, attacked("ids")) as peer:
        assert peer.text("evil__echo") == "echo"
        assert_served(peer)


def test_an_answer_that_is_nested_without_end_fails_its_call(folder: Path) -> None:
    with evil_peer(folder, attacked("depth")) as peer:
        assert "BAD_RESULT" in json.dumps(peer.call("evil__echo"))
        assert_served(peer)


def test_a_page_that_is_no_web_page_is_not_shown(
    folder: Path, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CAPABILITIES, "elicitation", {"form": {}, "url": {}})
    with evil_peer(folder, attacked("page of another kind"), revision) as peer:
        assert "refused" in peer.text("evil__echo")
        assert "elicitation/create" not in peer.methods()


def test_a_question_brings_no_secret_to_the_client(folder: Path, revision: str) -> None:
    settings = attacked("secret in a question", 'env = { SECRET = { env = "OURS" } }')
    with evil_peer(folder, settings, revision, env=environment(OURS="s3cr3t-of-ours")) as peer:
        peer.call("evil__echo")
        assert "elicitation/create" in peer.methods()
        assert "s3cr3t-of-ours" not in json.dumps(peer.heard)
