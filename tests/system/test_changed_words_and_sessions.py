"""When a process of a server stays or goes, and what becomes of an approved call whose words have changed."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from support.mcp_peer import peer_of, table
from support.portbook_process import TESTS, run
from support.running_processes import wait_until

TOOL = {"name": "t", "inputSchema": {"type": "object"}, "description": "Words one."}
ASK = '[[policy.rules]]\nname = "ask"\ntools = ["box.*"]\naction = "ask"\n'


def offering(folder: Path, *lines: str, **lists: Any) -> str:
    (folder / "box.json").write_text(json.dumps(lists))
    program = str(TESTS / "fixtures" / "telling_server.py")
    return table("box", f"command = {json.dumps([sys.executable, program, 'box.json'])}", *lines)


def test_an_approved_call_of_a_tool_with_other_words_says_what_to_approve(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(ASK + offering(tmp_path, tools=[TOOL]))
    assert run("pin", cwd=tmp_path).code == 0
    waiting = run("call", "box.t", "--json", cwd=tmp_path)
    found = re.search(r'approval_id"?: ?"?([0-9a-f-]+)', waiting.err + waiting.out.decode())
    assert found is not None
    assert run("approvals", "approve", found[1], cwd=tmp_path).code == 0
    offering(tmp_path, tools=[{**TOOL, "description": "Words two."}])
    refused = run("call", "box.t", "--approval", found[1], cwd=tmp_path)
    told = refused.err + refused.out.decode()
    assert refused.code == 3
    assert "approve them with `portbook pin box`" in told
    assert "The API or server behind the tool failed" not in told


def test_no_process_stays_that_belongs_to_no_session(tmp_path: Path) -> None:
    settings = offering(tmp_path, 'isolation = "session"', 'start = "eager"', tools=[TOOL])

    def is_stopped(restarts: int) -> bool:
        (row,) = json.loads(run("upstreams", "--json", cwd=tmp_path).out)["upstreams"]
        return (row["state"], row.get("restarts"), row.get("tools")) == ("stopped", restarts, 1)

    with peer_of(tmp_path, settings) as peer:
        assert peer.names() == ["box__t"]
        wait_until(lambda: is_stopped(0))
        assert run("upstreams", "restart", "box", cwd=tmp_path).code == 0
        wait_until(lambda: is_stopped(1))
        assert peer.text("box__t") == "done"


def test_a_server_is_not_idle_while_a_client_watches_one_of_its_resources(tmp_path: Path) -> None:
    lists = {"tools": [TOOL], "resources": [{"uri": "r:1", "name": "r"}], "updates_s": 3}
    with peer_of(tmp_path, offering(tmp_path, "idle_s = 1", **lists)) as peer:
        assert peer.text("box__t") == "done"
        assert "result" in peer.answer("resources/subscribe", {"uri": "r:1"})
        peer.hear("notifications/resources/updated")
