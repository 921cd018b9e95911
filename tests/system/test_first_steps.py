"""What a call does in its first step, which the door takes itself, ends no other call and not the door."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from support.in_process_connection import META, STATELESS_META
from support.mcp_peer import Peer, peer_of
from support.portbook_process import run

TOOLS = """
import asyncio
from pathlib import Path

from portbook import Toolset

toolset = Toolset("steps")

@toolset.tool(effect="write")
async def put(name: str) -> str:
    while not Path("go").exists():
        await asyncio.sleep(0.01)
    Path(f"ran.{name}").touch()
    return name
"""

SETTINGS = '[python]\ntoolsets = ["tools.py"]\n'
ASK = '[policy]\napprover = "client"\n[[policy.rules]]\nname = "ask"\ntools = ["*"]\naction = "ask"\n'


def until_asked(peer: Peer) -> Any:
    """Return the next request of the server."""
    while True:
        message = json.loads(peer.lines.get(timeout=60))
        if "method" in message and "id" in message:
            return message


@pytest.mark.covers("design.doors.first-step")
def test_a_client_that_answers_a_question_with_an_error_ends_its_own_call_alone(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    with peer_of(tmp_path, SETTINGS + ASK) as peer:
        call: dict[str, Any] = {"name": "put", "arguments": {"name": "x"}}
        for _ in range(
            2
        ):  # the second time the approval is known, and nothing is waited for before the question
            number = peer.start("tools/call", call)
            peer.write({"id": until_asked(peer)["id"], "error": {"code": -1, "message": "no window"}})
            answer = peer.finish(number)
            assert answer["result"]["isError"]
            waiting = json.loads(_approvals(tmp_path))["approvals"]
            call["_meta"] = {"portbook/approval_id": waiting[0]["approval_id"]}
        assert peer.answer("ping")["result"] == {}


def _approvals(folder: Path) -> str:
    return run("approvals", "--json", cwd=folder).out


def test_a_call_that_is_cancelled_in_the_same_read_never_runs(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS)
    with peer_of(tmp_path, SETTINGS, "2026-07-28") as peer:
        own = {**STATELESS_META, META + "clientCapabilities": {"extensions": {META + "tasks": {}}}}
        params = {"name": "put", "arguments": {"name": "cancelled"}, "_meta": own}
        lines = (
            {"jsonrpc": "2.0", "id": 100, "method": "tools/call", "params": params},
            {
                "jsonrpc": "2.0",
                "method": "notifications/cancelled",
                "params": {"requestId": 100, "_meta": own},
            },
        )
        assert peer.process.stdin is not None
        peer.process.stdin.write(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
        peer.process.stdin.flush()
        assert peer.names() == ["put"]  # both were read before this
        (tmp_path / "go").touch()
        assert peer.text("put", {"name": "next"}) == "next"
        assert (tmp_path / "ran.next").exists()
        time.sleep(0.3)  # many times what it would take
        assert not (tmp_path / "ran.cancelled").exists()
