"""Workers at one address are one server: approvals, keys, sessions and records hold, whichever answers."""

from __future__ import annotations

import json
import re
import resource
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from support.counts import count
from support.portbook_process import PORTBOOK, child, run
from support.supervised_workers import PATIENCE_S, Workers, wait_until, workers

OPERATOR = "the operator's key, which is long enough"
RULES = """
[audit]
checkpoint_s = 1
keep = 1
[keys]
required = true
[[policy.rules]]
name = "a person"
tools = ["enter"]
where = { "/number" = { pattern = "^asked-" } }
action = "ask"
"""
DOUBTFUL = """
[[policy.rules]]
name = "nothing"
tools = ["no_such_tool"]
action = "deny"
"""
REDEMPTIONS = 64


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """Three workers that share the keys, approvals and sessions of one SQLite file."""
    folder = tmp_path_factory.mktemp("three")
    (folder / "portbook.toml").write_text(RULES)
    key = new_key(folder, "ada")
    with workers(folder, 3, settings=RULES + DOUBTFUL, PORTBOOK_OPERATOR_KEY=OPERATOR) as served:
        served.key = key
        yield served


def new_key(folder: Path, name: str) -> str:
    made = run("keys", "create", name, "--json", cwd=folder)
    assert made.code == 0, made.err
    return str(json.loads(made.out)["key"])


def initialize(served: Workers, at: HTTPConnection) -> dict[str, str]:
    """Open a session; return the headers of its requests."""
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    answer = served.request("/mcp", message, at, accept="application/json, text/event-stream")
    assert answer.status == 200, answer
    return {
        "accept": "application/json, text/event-stream",
        "mcp_session_id": answer.headers["mcp-session-id"],
        "mcp_protocol_version": "2025-11-25",
    }


def ask_who(served: Workers, at: HTTPConnection, session: dict[str, str]) -> Any:
    message: Any = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "who", "arguments": {}},
    }
    return served.request("/mcp", message, at, **session)


@pytest.mark.covers("design.workers.one-address")
def test_every_worker_answers_at_the_address_that_one_line_names(three: Workers) -> None:
    assert three.process.pid not in three.each(), "the process that supervises does not serve"
    (line,) = [line for line in three.said if "serving " in line]
    assert line.startswith("portbook: serving 3 tools with 3 workers; open http://127.0.0.1:")


def test_connections_that_stay_open_are_spread_over_all_workers(three: Workers) -> None:
    answering = Counter(three.who(three.connection()) for _ in range(12))
    assert len(answering) == 3, answering


@pytest.mark.covers("design.workers.warnings")
def test_what_is_doubtful_in_the_settings_is_told_by_one_worker_for_all(three: Workers) -> None:
    (line,) = [line for line in three.said if "matches nothing that is served" in line]
    assert line.startswith("portbook: worker 1: warning: portbook.toml:")


def test_a_line_about_what_a_tool_raised_names_the_worker(three: Workers) -> None:
    three.call("wait", name="no/such/folder")
    line = three.told("raised FileNotFoundError")
    assert re.match(r"portbook: worker [123]: tool wait raised ", line), line


@pytest.mark.covers("design.workers.health")
def test_any_worker_tells_how_all_of_them_are_doing(three: Workers) -> None:
    for connection in three.each().values():
        found = three.request("/health", at=connection).body
        assert (found["status"], found["checks"]["workers"]) == ("ok", {"status": "ok"})
        assert found["workers"] == {
            "wanted": 3,
            "ready": 3,
            "each": [{"worker": number, "state": "ready", "restarts": 0} for number in (1, 2, 3)],
        }


@pytest.mark.covers("design.workers.unwell")
def test_a_worker_that_cannot_write_records_is_told_by_every_worker(three: Workers) -> None:
    held = three.each()
    unwell, at_unwell = held.popitem()
    before = resource.prlimit(unwell, resource.RLIMIT_FSIZE)
    resource.prlimit(unwell, resource.RLIMIT_FSIZE, (0, before[1]))  # a full disk, for this process alone
    assert three.call("who", at_unwell).status == 503
    for connection in held.values():

        def is_told(connection: HTTPConnection = connection) -> bool:
            found = three.request("/health", at=connection)
            return found.status == 503 and "audit" in found.body["checks"]["workers"]["problem"]

        wait_until(is_told, lambda: "it is not told")
    resource.prlimit(unwell, resource.RLIMIT_FSIZE, before)
    for connection in held.values():

        def is_well(connection: HTTPConnection = connection) -> bool:
            return three.request("/health", at=connection).status == 200

        wait_until(is_well, lambda: "it stays unwell")


@pytest.mark.soak("worker redemptions")
@pytest.mark.covers("design.workers.approvals")
def test_an_approval_is_asked_decided_and_redeemed_at_different_workers_once(three: Workers) -> None:
    asking, deciding, redeeming = three.each().values()
    held = [redeeming, *(three.connection() for _ in range(REDEMPTIONS - 1))]
    for number in range(count("worker redemptions")):
        redeem_at_once(three, f"asked-{number}", asking, deciding, held)


def redeem_at_once(
    three: Workers, number: str, asking: HTTPConnection, deciding: HTTPConnection, held: list[HTTPConnection]
) -> None:
    refused = three.call("enter", asking, number=number)
    approval = refused.body["error"]["details"]["approval_id"]
    told = three.request(
        f"/approvals/{approval}", {"decision": "approve"}, deciding, authorization=f"Bearer {OPERATOR}"
    )
    assert told.status == 200, told
    with ThreadPoolExecutor(REDEMPTIONS) as pool:
        redeem = partial(three.call, "enter", approval=approval, number=number)
        statuses = Counter(answer.status for answer in pool.map(redeem, held))
    assert statuses[200] == 1, statuses
    assert three.ledger().count(number) == 1


@pytest.mark.covers("design.workers.keys")
def test_a_revoked_key_is_refused_by_every_worker_within_a_second(three: Workers) -> None:
    key = new_key(three.folder, "eve")
    held = three.each()
    session = {"authorization": f"Bearer {key}"}
    session |= initialize_with(three, next(iter(held.values())), session)
    for connection in held.values():
        assert ask_who(three, connection, session).status == 200
    assert run("keys", "revoke", "eve", cwd=three.folder).code == 0
    time.sleep(1.0)  # the promise: from here on, no worker may answer
    assert [ask_who(three, connection, session).status for connection in held.values()] == [401] * 3


def initialize_with(served: Workers, at: HTTPConnection, headers: dict[str, str]) -> dict[str, str]:
    before, served.key = served.key, headers["authorization"].removeprefix("Bearer ")
    try:
        return initialize(served, at)
    finally:
        served.key = before


@pytest.mark.covers("design.workers.sessions")
def test_a_session_is_known_to_every_worker_and_ended_for_all_within_a_second(three: Workers) -> None:
    held = three.each()
    opening, ending, _ = held.values()
    session = initialize(three, opening)
    for pid, connection in held.items():
        answer = ask_who(three, connection, session)
        assert (answer.status, answer.body["result"]["structuredContent"]["result"]) == (200, pid)
    assert three.request("/mcp", at=ending, method="DELETE", **session).status == 204
    time.sleep(1.0)  # the promise, as above
    assert [ask_who(three, connection, session).status for connection in held.values()] == [404] * 3


@pytest.mark.covers("design.workers.records")
def test_the_records_of_all_workers_are_followed_counted_and_verified(three: Workers) -> None:
    held = three.each()
    live = list((three.folder / "runs/mcp_server/execution").glob("2*.jsonl"))
    assert len(live) == 3, "one run is kept, and none is pruned while its worker writes to it"
    followed: list[str] = []
    with child(
        [*PORTBOOK, "audit", "tail", "-n", "1", "-f"], cwd=three.folder, stdout=subprocess.PIPE, text=True
    ) as tail:
        assert tail.stdout is not None
        threading.Thread(target=followed.extend, args=(tail.stdout,), daemon=True).start()
        wait_until(lambda: bool(followed), lambda: "nothing is followed")
        followed.clear()
        for number, connection in enumerate(held.values()):
            assert three.call("enter", connection, number=f"followed-{number}").status == 200
        wait_until(lambda: sum("enter" in line for line in followed) == 3, lambda: str(followed))
        tail.send_signal(signal.SIGINT)
        assert tail.wait(PATIENCE_S) == 0
    counted = three.request("/operator/figures", authorization=f"Bearer {OPERATOR}").body
    assert counted["total"]["calls"] >= 3 + 3, counted
    verified = run("audit", "verify", cwd=three.folder)
    assert verified.code == 0, verified.out.decode() + verified.err
