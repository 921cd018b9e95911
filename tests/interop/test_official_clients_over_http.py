"""Live sessions over HTTP, in both eras, with the clients that the MCP project itself publishes."""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from support import sdks
from support.mcp_http_client import EVERYTHING
from support.portbook_process import environment, http_server

# How each client is told which era to speak, and the revision that it then speaks.
MODES = {
    "python": {"auto": "2026-07-28", "legacy": "2025-11-25"},
    "typescript": {
        "auto": "2026-07-28",
        "2025-11-25": "2025-11-25",
        "2025-06-18": "2025-06-18",
        "2025-03-26": "2025-03-26",
    },
}
SESSIONS = [(client, mode) for client, modes in MODES.items() for mode in modes]

Seen = dict[str, Any]


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Seen]:
    """Hold the sessions of one client, when first asked for."""

    @functools.cache
    def hold(client: str) -> Seen:
        try:
            command = _command(client)
        except sdks.Unavailable as unavailable:
            return {"unavailable": str(unavailable)}
        folder = tmp_path_factory.mktemp(client)
        with http_server(cwd=folder, tools=(str(EVERYTHING),)) as server:
            orders = {"url": f"{server.url}/mcp", "modes": list(MODES[client])}
            done = subprocess.run(
                command,
                input=json.dumps(orders),
                capture_output=True,
                text=True,
                env=environment(),
                cwd=folder,
                timeout=150,
            )
        assert done.returncode == 0, done.stderr
        written = (folder / "runs").rglob("2*.jsonl")  # not the link to the latest
        lines = [json.loads(line) for path in written for line in path.read_text().splitlines()]
        return {**json.loads(done.stdout), "records": [line for line in lines if "metadata" in line]}

    return hold


def _command(client: str) -> list[str]:
    if client == "python":
        return [str(sdks.python_sdk()), str(sdks.HERE / "python_http_client.py")]
    modules = sdks.node_packages()
    return [modules.node.node, str(sdks.HERE / "typescript_http_client.mjs"), str(modules.folder)]


def _available(seen: Seen) -> Seen:
    if reason := seen.get("unavailable"):
        sdks.skip_unless_ci(reason)
    return seen


@pytest.mark.covers("design.mcp-http.clients")
@pytest.mark.parametrize(("client", "mode"), SESSIONS, ids=[f"{client}-{mode}" for client, mode in SESSIONS])
def test_an_official_client_completes_a_session(
    client: str, mode: str, sessions: Callable[[str], Seen]
) -> None:
    seen = _available(sessions(client))[mode]
    assert "failed" not in seen, seen
    revision = MODES[client][mode]
    assert seen["version"] == revision
    assert "greet" in seen["tools"]
    assert (seen["call"], seen["last"]) == ("Hello, World!", "Hello, again!")
    assert json.loads(seen["resource"])["id"] == "7"
    assert seen["prompt"] == "Prompt with arguments: arg1='a', arg2='b'"
    if revision >= "2025-06-18":  # which elicitation came with
        assert seen["elicitation"] == "Hello, Alice!"
    assert seen["progress"] == [[0, 100], [50, 100], [100, 100]]


@pytest.mark.parametrize("client", MODES)
def test_a_call_that_a_client_gives_up_is_cancelled(client: str, sessions: Callable[[str], Seen]) -> None:
    records = _available(sessions(client))["records"]
    given_up = [record for record in records if record["metadata"]["toolId"] == "mcp.tool:slow_compute"]
    assert {record["metadata"]["schemaVersion"] for record in given_up} == set(MODES[client].values())
    assert {record["error"] and record["error"]["reason"] for record in given_up} == {"CANCELLED"}
