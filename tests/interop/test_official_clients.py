"""Live sessions over STDIO with the clients that the MCP project itself publishes."""

from __future__ import annotations

import functools
import json
import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from support import sdks
from support.portbook_process import PORTBOOK, SAMPLE_TOOLS, environment

REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")

# The first line of the TypeScript client can offer only the newest revision it knows.
CLIENTS = {"python": REVISIONS, "typescript": REVISIONS, "typescript-1": ("2025-11-25",)}
SESSIONS = [(client, revision) for client, revisions in CLIENTS.items() for revision in revisions]

TEXT = 'grüße 👋 "\u2028"'
CALLS = {
    "good": ("echo", {"text": TEXT}),
    "wrong type": ("echo", {"text": 5}),
    "missing argument": ("echo", {}),
    "unknown tool": ("no_such_tool", {}),
    "raising": ("raising", {"text": "canary"}),
    "wrong result": ("wrong_result", {}),
}

TOOLSETS = (str(SAMPLE_TOOLS), str(sdks.HERE / "progress_tools.py"))

# Notes the server's exit status beside the session: a client that had to kill it leaves none.
NOTE_EXIT = ("sh", "-c", 'notes=$1; shift; "$@"; echo $? >>"$notes"', "note-exit")

Seen = dict[str, Any]


@pytest.fixture(scope="module")
def sessions(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Seen]:
    """Hold the sessions of one client, all of its revisions in one process, when first asked for."""

    @functools.cache
    def hold(client: str) -> Seen:
        try:
            command = _command(client)
        except sdks.Unavailable as unavailable:
            return {"unavailable": str(unavailable)}
        folder = tmp_path_factory.mktemp(client)
        notes = folder / "exits"
        orders = {
            "command": [*NOTE_EXIT, str(notes), *PORTBOOK, "serve", "--stdio", *TOOLSETS],
            "cwd": str(folder),
            "revisions": CLIENTS[client],
            "calls": CALLS,
            "flag": str(folder / "flag"),
        }
        done = subprocess.run(
            command,
            input=json.dumps(orders),
            capture_output=True,
            text=True,
            env=environment(),
            cwd=folder,
            timeout=180,
        )
        assert done.returncode == 0, done.stderr
        exits = notes.read_text().split() if notes.exists() else []
        written = (folder / "runs/mcp_server/envelope_validation").glob(
            "2*.jsonl"
        )  # not the link to the latest
        records = [json.loads(line) for path in written for line in path.read_text().splitlines()]
        return {**json.loads(done.stdout), "exits": exits, "records": records, "stderr": done.stderr}

    return hold


def _command(client: str) -> list[str]:
    if client == "python":
        return [str(sdks.python_sdk()), str(sdks.HERE / "python_client.py")]
    modules = sdks.node_packages()
    line = "1" if client == "typescript-1" else "2"
    return [modules.node.node, str(sdks.HERE / "typescript_client.mjs"), str(modules.folder), line]


def _available(seen: Seen) -> Seen:
    if reason := seen.get("unavailable"):
        sdks.skip_unless_ci(reason)
    return seen


@pytest.fixture(params=SESSIONS, ids="-".join)
def session(request: pytest.FixtureRequest, sessions: Callable[[str], Seen]) -> Seen:
    client, revision = request.param
    all_seen = _available(sessions(client))
    seen = all_seen[revision]
    assert "failed" not in seen, f"{seen['failed']}\n{all_seen['stderr']}"
    return {"revision": revision, **seen}


def test_the_revision_that_a_client_asks_for_is_spoken(session: Seen) -> None:
    assert session["version"] == session["revision"]
    assert session["server"]["name"] == "portbook"
    assert "tools" in session["capabilities"]


def test_a_client_sees_every_tool(session: Seen) -> None:
    tools = {tool["name"]: tool for tool in session["tools"]}
    assert {"echo", "echo_in_thread", "echo_later", "raising", "wait_for", "wrong_result"} <= set(tools)
    assert [
        name for name in tools if not re.fullmatch("[a-zA-Z0-9_-]{1,64}", name)
    ] == []  # as model APIs want
    echo = tools["echo"]
    assert echo["description"] == "Say it again."
    assert echo["inputSchema"]["properties"]["text"]["type"] == "string"
    assert echo["inputSchema"]["required"] == ["text"]
    assert ("outputSchema" in echo) == (session["revision"] >= "2025-06-18")
    assert ("annotations" in echo) == (session["revision"] >= "2025-03-26")


def test_a_good_call_answers_with_text_and_structure(session: Seen) -> None:
    result = session["calls"]["good"]["result"]
    assert result["content"] == [{"type": "text", "text": TEXT}]
    assert not result.get("isError")
    # Structured content came with 2025-06-18, and had to be an object until 2026-07-28.
    structure = {"2025-06-18": {"result": TEXT}, "2025-11-25": {"result": TEXT}, "2026-07-28": TEXT}
    assert result.get("structuredContent") == structure.get(session["revision"])


@pytest.mark.parametrize("call", ["wrong type", "missing argument"])
def test_wrong_arguments_reach_the_model_from_the_revision_on_that_wants_it(session: Seen, call: str) -> None:
    answer = session["calls"][call]
    if session["revision"] >= "2025-11-25":
        assert answer["result"]["isError"] is True
        assert "/text" in answer["result"]["content"][0]["text"] or call == "missing argument"
    else:
        assert answer["error"]["code"] == -32602


def test_an_unknown_tool_is_an_error(session: Seen) -> None:
    assert session["calls"]["unknown tool"]["error"]["code"] == -32602


def test_a_tool_that_raises_is_told_to_the_model_without_the_exceptions_text(session: Seen) -> None:
    result = session["calls"]["raising"]["result"]
    assert result["isError"] is True
    assert "canary" not in json.dumps(result)


def test_a_result_that_breaks_its_promise_is_withheld(session: Seen) -> None:
    answer = session["calls"]["wrong result"]
    assert "error" in answer or answer["result"]["isError"] is True
    assert "canary" not in json.dumps(answer)


def test_ping_is_answered_where_the_revision_has_it(session: Seen) -> None:
    if session["revision"] == "2026-07-28":
        assert "ping" not in session
    else:
        assert set(session["ping"]["result"]) <= {"resultType"}  # the Python SDK adds its default


def test_calls_in_flight_together_each_get_their_own_answer(session: Seen) -> None:
    texts = [answer["result"]["content"][0]["text"] for answer in session["together"]]
    assert texts == [f"call {number}" for number in range(20)]


def test_a_cancelled_call_leaves_the_session_whole(session: Seen) -> None:
    for step in ("meanwhile", "last"):
        assert session[step]["result"]["content"] == [{"type": "text", "text": step}]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_clients_cancellation_stops_the_call(client: str, sessions: Callable[[str], Seen]) -> None:
    records = _available(sessions(client))["records"]
    given_up = [record for record in records if record["metadata"]["toolId"] == "mcp.tool:wait_for"]
    assert {record["metadata"]["schemaVersion"] for record in given_up} == set(CLIENTS[client])
    assert {record["error"] and record["error"]["reason"] for record in given_up} == {"CANCELLED"}


def test_progress_reaches_the_client_before_the_result(session: Seen) -> None:
    steps = session["progress"]["steps"]
    assert [step[:2] for step in steps] == [[1, 3], [2, 3], [3, 3]]
    if session["revision"] >= "2025-03-26":  # the first to have words in it
        assert [step[2] for step in steps] == ["step 1", "step 2", "step 3"]
    assert session["progress"]["result"]["content"] == [{"type": "text", "text": "there"}]


def test_nothing_arrives_that_a_client_does_not_expect(session: Seen) -> None:
    assert session["heard"] == []


@pytest.mark.parametrize("client", CLIENTS)
def test_the_server_ends_by_itself_when_the_client_hangs_up(
    client: str, sessions: Callable[[str], Seen]
) -> None:
    exits = _available(sessions(client))["exits"]
    assert set(exits) == {"0"}
    assert len(exits) >= len(CLIENTS[client])
