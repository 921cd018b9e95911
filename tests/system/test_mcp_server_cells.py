"""Every cell of eras: what a server asks reaches the client, and progress and cancellation come through.

A server of the handshake era asks during the call, one of 2026-07-28 in its answer; a client of the handshake
era is asked over its connection, one of 2026-07-28 answers with its next request.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.mcp_peer import Peer, peer_of, small_server, table
from support.running_processes import wait_until

ERAS = ("2025-11-25", "2026-07-28")
MAY_ASK = 'may_ask = ["elicitation", "sampling", "roots"]'

MODERN = """
from portbook import Context, Roots, Sample, Toolset

toolset = Toolset("asking")
NAME = {"properties": {"name": {"type": "string"}}}


@toolset.tool(effect="read")
async def elicit(context: Context) -> str:
    return (await context.elicit("Your name?", NAME)).content["name"]


@toolset.tool(effect="read")
async def sample(context: Context) -> str:
    return (await context.sample("?")).text


@toolset.tool(effect="read")
async def roots(context: Context) -> str:
    return (await context.roots())[0]["uri"]


@toolset.tool(effect="read")
async def report(context: Context) -> str:
    for at in (1, 2):
        await context.progress(at, 2)
    return "reported"


@toolset.tool(effect="read")
async def wait(context: Context) -> None:
    import asyncio
    import sys
    await context.progress(1)
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        print("cancelled", file=sys.stderr, flush=True)
        raise
"""

ANSWERED = {"elicit": "Ada", "sample": "Paris", "roots": "file:///work"}
ASKED = {"elicit": "elicitation/create", "sample": "sampling/createMessage", "roots": "roots/list"}


def _server(era: str, folder: Path) -> str:
    if era == "2025-11-25":
        return small_server()
    (folder / "behind").mkdir()
    (folder / "behind" / "asking.py").write_text(MODERN)
    program = (
        "import os, sys; os.chdir(sys.argv[1]); os.execv(sys.executable, [sys.executable, *sys.argv[2:]])"
    )
    behind = [sys.executable, "-c", program, str(folder / "behind"), "-m", "portbook", "serve", "--stdio"]
    return f"command = {json.dumps([*behind, 'asking.py'])}"


@pytest.fixture(scope="module", params=[(client, server) for client in ERAS for server in ERAS], ids=str)
def cell(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    client, server = request.param
    folder = tmp_path_factory.mktemp("cell")
    with peer_of(folder, table("small", _server(server, folder), MAY_ASK), client) as peer:
        peer.folder = folder
        yield peer


@pytest.mark.covers("design.servers.cells")
@pytest.mark.parametrize("question", ANSWERED)
def test_what_a_server_asks_reaches_the_client_and_the_answer_the_server(cell: Peer, question: str) -> None:
    cell.heard.clear()
    assert ANSWERED[question] in cell.text(f"small__{question}")
    assert ASKED[question] in cell.methods()


def test_progress_comes_through(cell: Peer) -> None:
    cell.heard.clear()
    assert cell.text("small__report", _meta={"progressToken": "t"}) == "reported"
    told = [each["params"] for each in cell.heard if each["method"] == "notifications/progress"]
    assert [(each["progressToken"], each["progress"]) for each in told] == [("t", 1), ("t", 2)]


def test_a_cancelled_call_is_cancelled_at_the_server(cell: Peer) -> None:
    params = {"name": "small__wait", "arguments": {}, "_meta": {"progressToken": "w"}}
    number = cell.start("tools/call", params)
    cell.hear("notifications/progress")  # so that it is there
    cell.write({"method": "notifications/cancelled", "params": {"requestId": number}})
    until = time.monotonic() + 20
    while b"cancelled" not in (cell.folder / "stderr").read_bytes():
        assert time.monotonic() < until
        time.sleep(0.02)
    assert cell.text("small__report", _meta={"progressToken": "t"}) == "reported"


@pytest.mark.parametrize("client", ERAS)
def test_a_server_asks_only_what_the_settings_allow(tmp_path: Path, client: str) -> None:
    with peer_of(tmp_path, table("small", small_server()), client) as peer:
        assert "may_ask does not allow sampling" in peer.text("small__sample")
        assert "sampling/createMessage" not in peer.methods()


def test_an_answer_without_the_state_of_its_caller_is_not_taken(tmp_path: Path) -> None:
    with peer_of(tmp_path, table("small", small_server(), MAY_ASK), "2026-07-28") as peer:
        asked = peer.answer("tools/call", {"name": "small__elicit", "arguments": {}})["result"]
        given = {"inputResponses": {"question_1": {"action": "accept", "content": {"name": "Eve"}}}}
        state = asked["requestState"]
        other = {"name": "small__elicit", "arguments": {"other": 1}, **given, "requestState": state}
        assert peer.answer("tools/call", other)["error"]["code"] == -32602
        tampered = {"name": "small__elicit", "arguments": {}, **given, "requestState": state[:-2] + "xx"}
        assert peer.answer("tools/call", tampered)["error"]["code"] == -32602
        once = {"name": "small__elicit", "arguments": {}, **given, "requestState": state}
        assert "Eve" in json.dumps(peer.answer("tools/call", once)["result"])
        assert "is gone" in json.dumps(peer.answer("tools/call", once)["result"])


def test_what_a_server_reports_between_two_rounds_reaches_the_second(tmp_path: Path) -> None:
    with peer_of(tmp_path, table("small", small_server(), MAY_ASK), "2026-07-28") as peer:
        params: dict[str, Any] = {"name": "small__elicit", "arguments": {}}
        held = peer.answer("tools/call", {**params, "_meta": {"progressToken": "first"}})["result"]
        peer.text("small__report")  # during which the server reports for the held call
        given = {key: peer.given(each) for key, each in held["inputRequests"].items()}
        rounds = {"inputResponses": given, "requestState": held["requestState"]}
        ended = peer.answer("tools/call", {**params, **rounds, "_meta": {"progressToken": "second"}})
        assert "Ada" in json.dumps(ended["result"])
        told = [each["params"] for each in peer.heard if each["method"] == "notifications/progress"]
        reports = [(each["progressToken"], each["progress"]) for each in told]
        assert reports == [("first", 1), ("second", 2), ("second", 3)]


def test_a_held_call_is_gone_when_its_server_is(tmp_path: Path) -> None:
    with peer_of(tmp_path, table("small", small_server()), "2026-07-28") as peer:
        params: dict[str, Any] = {"name": "small__elicit", "arguments": {}}
        held = peer.answer("tools/call", params)["result"]
        process = peer.text("small__process")
        os.kill(int(process), signal.SIGKILL)
        wait_until(lambda: peer.call("small__process").get("content", [{}])[0].get("text", "").isdigit())
        given = {key: peer.given(each) for key, each in held["inputRequests"].items()}
        rounds = {"inputResponses": given, "requestState": held["requestState"]}
        told = json.dumps(peer.answer("tools/call", {**params, **rounds}))
    assert "the call that waited for this answer is gone" in told
    assert "never retrieved" not in (tmp_path / "stderr").read_text()
