"""Names that several claim: no server gets one, the operator's own tools keep theirs, and it is told."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from support.mcp_http_peer import EVERY_DOOR, PeerOf
from support.mcp_peer import peer_of, small_server, table
from support.portbook_process import run

OWN = """
from portbook import Toolset

toolset = Toolset("own")


@toolset.tool(effect="read")
def echo(text: str) -> str:
    return f"own {text}"
"""
BARE = ("prefix = false", 'tools = ["echo"]')
CLAIMS = "".join(table(alias, small_server(), *BARE) for alias in "ab")


@pytest.fixture(params=EVERY_DOOR)
def peer_over(request: pytest.FixtureRequest) -> PeerOf:
    return EVERY_DOOR[request.param]


def told(folder: Path, *words: str) -> str:
    """What the operator was told, once it has all the words."""
    until = time.monotonic() + 20
    while True:
        said = (folder / "stderr").read_text()
        if all(word in said for word in words):
            return said
        assert time.monotonic() < until, said
        time.sleep(0.02)


@pytest.mark.covers("design.servers.names")
def test_of_two_servers_that_claim_a_name_neither_is_served(tmp_path: Path, peer_over: PeerOf) -> None:
    with peer_over(tmp_path, CLAIMS + table("c", small_server(), 'tools = ["echo"]')) as peer:
        assert peer.names() == ["c__echo"]
        for name in ("echo", "a.echo", "b.echo", "a__echo"):
            assert peer.call(name, {"text": "x"})["code"] == -32602
        assert peer.text("c__echo", {"text": "x"}) == "x"
        said = told(tmp_path, "mcp.a: tool 'echo' is not served", "mcp.b: tool 'echo' is not served")
    assert re.search(r"portbook\.toml:4:1: mcp\.a: .*: mcp\.b has the same name, so neither is served", said)
    assert re.search(r"portbook\.toml:9:1: mcp\.b: .*: mcp\.a has the same name, so neither is served", said)


@pytest.mark.covers("design.servers.own-names")
def test_a_name_of_an_own_tool_stays_the_operators(tmp_path: Path, peer_over: PeerOf) -> None:
    (tmp_path / "own.py").write_text(OWN)
    settings = '[python]\ntoolsets = ["own.py"]\n' + table("a", small_server(), *BARE)
    with peer_over(tmp_path, settings) as peer:
        assert peer.names() == ["echo"]
        assert peer.text("echo", {"text": "x"}) == "own x"
        assert peer.call("a.echo", {"text": "x"})["code"] == -32602
        said = told(tmp_path, "mcp.a: tool 'echo' is not served")
    assert re.search(r"portbook\.toml:6:1: mcp\.a: .*: your own tools have this name, and keep it", said)


def test_what_is_approved_in_the_lock_is_told_at_the_start_before_a_server_runs(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(CLAIMS)
    assert run("pin", cwd=tmp_path).code == 0
    with peer_of(tmp_path, CLAIMS):
        told(tmp_path, "mcp.a: tool 'echo' is not served", "mcp.b: tool 'echo' is not served")


def test_the_tools_command_tells_the_same(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(CLAIMS)
    said = run("tools", cwd=tmp_path).err
    assert "portbook.toml:4:1: mcp.a: tool 'echo' is not served: mcp.b has the same name" in said
    assert "portbook.toml:9:1: mcp.b: tool 'echo' is not served: mcp.a has the same name" in said
