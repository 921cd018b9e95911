"""How calls of servers end, the same at every door: errors of tools and of the protocol, wrong results."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.every_door import DOORWAYS, Asked, Doorway
from support.mcp_peer import small_server, table
from support.pinned_folder import LIST, SEND, PinnedFolder
from support.portbook_process import http_server, invoke, over_stdio, run

SETTINGS = table("small", small_server()) + "[docs]\nenabled = false\n"


@pytest.fixture(scope="module", params=DOORWAYS)
def door(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doorway]:
    folder = tmp_path_factory.mktemp("endings")
    (folder / "portbook.toml").write_text(SETTINGS)
    with DOORWAYS[request.param](folder, None) as opened:
        yield opened


@pytest.mark.covers("design.servers.endings-everywhere")
@pytest.mark.parametrize(
    ("tool", "reason", "details"),
    [
        ("fail", "TOOL_ERROR", {}),
        ("refuse", "UPSTREAM_ERROR", {"upstream_code": -32050}),
        ("miscount", "BAD_RESULT", {}),
        ("count", "OK", {}),
    ],
)
def test_an_ending_has_its_reason_at_every_door(
    door: Doorway, tool: str, reason: str, details: dict[str, Any]
) -> None:
    verdict = door(Asked(f"small.{tool}"))
    assert verdict.reason == reason
    assert details.items() <= verdict.details.items()


def test_the_content_of_an_error_is_relayed_and_redacted_at_every_door(door: Doorway) -> None:
    verdict = door(Asked("small.fail"))
    assert b"no such page: password=[redacted]" in verdict.raw
    assert b"hunter2" not in verdict.raw


def test_a_result_is_the_structured_content_or_the_content(door: Doorway) -> None:
    assert door(Asked("small.count")).result in ({"n": 1}, 1)  # MCP has the text `1` beside it


def test_a_tool_of_a_server_is_none_of_the_tools_that_are_called_by_their_names_alone(tmp_path: Path) -> None:
    frame = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "small.fail", "params": {}}).encode()
    (tmp_path / "portbook.toml").write_text(SETTINGS)
    [answer] = over_stdio(frame, cwd=tmp_path).answers
    assert (answer["result"]["ok"], answer["result"]["reason"]) == (False, "unsupported")


# One of each dialect and transport.
FEW = ("POST /execute", "POST /rpc, envelope", "STDIO, MCP 2025-11-25", "POST /mcp, MCP 2026-07-28")


@pytest.mark.parametrize("name", FEW)
def test_nothing_of_a_withheld_tool_is_told_at_any_door(tmp_path: Path, name: str) -> None:
    _withhold(tmp_path)
    with DOORWAYS[name](tmp_path, None) as ask:
        verdict = ask(Asked("box.send"))
        assert verdict.reason == "TOOL_WITHHELD"
        assert b"canary" not in verdict.raw
        # A tool that was never approved, called by a name that is almost its own.
        assert ask(Asked("box.canar")).reason == "UNKNOWN_TOOL"
        assert b"canary" not in ask(Asked("box.canar")).raw


def test_no_page_and_no_list_has_anything_of_a_withheld_tool(tmp_path: Path) -> None:
    _withhold(tmp_path)
    with http_server(cwd=tmp_path, tools=()) as server:
        assert server.rpc(invoke("box.list", {})).status == 200
        for path in ("/", "/tools", "/openapi.json", "/docs", "/health?deep=1", "/tools/box.canary"):
            answer = server.request(path)
            assert b"canary" not in answer.body.replace(path.encode(), b""), path
        assert b"box.list" in server.request("/tools").body
        assert b"box.send" not in server.request("/tools").body


def _withhold(folder: Path) -> None:
    """Let a server change an approved tool, and add another one."""
    pinned = PinnedFolder(folder, 'start = "eager"\non_change = { words = "ask" }')
    assert run("pin", cwd=folder).code == 0
    changed = {**SEND, "description": "canary", "title": "canary"}
    added = {"name": "canary", "description": "canary", "inputSchema": {"type": "object"}}
    pinned.offer(changed, added, LIST)
