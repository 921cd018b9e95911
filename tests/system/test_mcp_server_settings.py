"""Every key of `[mcp.ALIAS]` does what its documentation says, over STDIO and over HTTP."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from support.mcp_http_peer import EVERY_DOOR, HttpPeer, PeerOf
from support.mcp_peer import SMALL_SERVER, Peer, peer_of, small_server, table
from support.portbook_process import http_server, records, run
from support.running_processes import is_running, running, wait_until

ERAS = ("2025-11-25", "2026-07-28")


@pytest.fixture(params=EVERY_DOOR)
def peer_over(request: pytest.FixtureRequest) -> PeerOf:
    return EVERY_DOOR[request.param]


def marked_server(mark: str) -> str:
    """A small server whose processes can be found by a mark in their command."""
    return f"command = {json.dumps([sys.executable, str(SMALL_SERVER), mark])}"


def keys_of(folder: Path, *callers: str) -> list[str]:
    return [run("keys", "create", caller, cwd=folder).out.decode().strip() for caller in callers]


def process_of(peer: Peer) -> str:
    return peer.text("small__process")


@pytest.mark.covers("design.servers.isolation")
def test_each_session_has_a_process_of_its_own_which_ends_with_it(tmp_path: Path) -> None:
    mark = f"session-{os.getpid()}"
    (tmp_path / "portbook.toml").write_text(table("small", marked_server(mark), 'isolation = "session"'))
    with http_server(cwd=tmp_path, tools=()) as server:
        one, other = HttpPeer(server, "2025-11-25"), HttpPeer(server, "2025-11-25")
        first, second = process_of(one), process_of(other)
        assert first != second
        assert (process_of(one), process_of(other)) == (first, second)
        one.end_session()
        wait_until(lambda: not is_running(first))
        assert process_of(other) == second


def test_the_process_of_a_session_of_the_old_transport_ends_with_its_stream(tmp_path: Path) -> None:
    (tmp_path / "front").mkdir()
    settings = table("small", small_server(), 'isolation = "session"') + "[server]\nlegacy_sse = true\n"
    (tmp_path / "portbook.toml").write_text(settings)
    with http_server(cwd=tmp_path, tools=()) as server:
        old = table("old", f'url = "{server.url}/sse"', 'transport = "sse"')
        with peer_of(tmp_path / "front", old) as peer:
            process = peer.text("old__small__process")
            assert is_running(process)
        wait_until(lambda: not is_running(process))


def test_without_sessions_each_caller_has_a_process_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(table("small", small_server(), 'isolation = "session"'))
    keys = keys_of(tmp_path, "ada", "bob")
    with http_server(cwd=tmp_path, tools=()) as server:
        ada, bob = (HttpPeer(server, "2026-07-28", key) for key in keys)
        assert process_of(ada) != process_of(bob)
        assert process_of(ada) == process_of(HttpPeer(server, "2026-07-28", keys[0]))


def test_a_session_that_a_caller_names_is_never_that_of_another_caller(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(table("small", small_server(), 'isolation = "session"'))
    keys = keys_of(tmp_path, "ada", "bob")
    with http_server(cwd=tmp_path, tools=()) as server:

        def process(key: str, session: str) -> str:
            body = json.dumps({"tool_id": "small.process", "args": {}, "session_id": session}).encode()
            headers = {"content_type": "application/json", "authorization": f"Bearer {key}"}
            answer = server.request("/execute", body, **headers)
            return str(answer.json["result"]["content"][0]["text"])

        processes = [process(key, session) for key in keys for session in ("one", "two")]
        assert len(set(processes)) == 4
        assert process(keys[0], "one") == processes[0]


def test_a_shared_server_has_one_process(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(table("small", small_server()))
    with http_server(cwd=tmp_path, tools=()) as server:
        assert len({process_of(HttpPeer(server, each)) for each in (*ERAS, *ERAS)}) == 1


@pytest.mark.covers("design.servers.warn")
def test_an_answer_that_breaks_a_schema_passes_where_it_is_only_warned_of(
    tmp_path: Path, peer_over: PeerOf
) -> None:
    with peer_over(tmp_path, table("small", small_server(), 'validation = "warn"')) as peer:
        assert peer.call("small__miscount")["structuredContent"] == {"m": 1}
        assert "isError" not in peer.call("small__write")
    own = [each for each in records(tmp_path / "log") if each["metadata"]["toolId"]]
    assert [each["metadata"]["outputChecked"] for each in own] == [False, False]


def test_enforced_answers_are_recorded_as_checked(tmp_path: Path, peer_over: PeerOf) -> None:
    with peer_over(tmp_path, table("small", small_server())) as peer:
        assert "BAD_RESULT" in json.dumps(peer.call("small__miscount"))
    assert not any("outputChecked" in each["metadata"] for each in records(tmp_path / "log"))


@pytest.mark.covers("design.servers.idle")
def test_an_idle_server_is_ended_and_started_again(tmp_path: Path, peer_over: PeerOf) -> None:
    with peer_over(tmp_path, table("small", small_server(), "idle_s = 1")) as peer:
        first = process_of(peer)
        wait_until(lambda: not is_running(first))
        assert process_of(peer) != first


@pytest.mark.covers("design.servers.eager")
@pytest.mark.parametrize("start", ["eager", "lazy"])
def test_an_eager_server_runs_before_the_first_call_and_again_after_its_end(
    tmp_path: Path, peer_over: PeerOf, start: str
) -> None:
    mark = f"eager-{os.getpid()}"
    lines = (marked_server(mark), f'start = "{start}"', "idle_s = 1")
    (tmp_path / "portbook.toml").write_text(table("small", *lines))
    assert run("pin", cwd=tmp_path).code == 0  # so that nobody has to ask it what it offers
    with peer_over(tmp_path, table("small", *lines)) as peer:
        if start == "lazy":
            assert not running(mark)
        else:
            wait_until(lambda: bool(running(mark)))
        first = process_of(peer)
        if start == "lazy":
            wait_until(lambda: not running(mark))
        else:
            os.kill(int(first), 9)
            wait_until(lambda: bool(running(mark)) and not is_running(first))


@pytest.mark.covers("design.servers.chosen")
def test_only_the_named_tools_are_served(tmp_path: Path, peer_over: PeerOf) -> None:
    with peer_over(tmp_path, table("small", small_server(), 'tools = ["e*", "write"]')) as peer:
        assert peer.names() == ["small__echo", "small__elicit", "small__environment", "small__write"]
        for name in ("small__process", "small.process"):
            assert peer.call(name)["code"] == -32602


@pytest.mark.covers("design.servers.deadline")
def test_a_call_and_a_start_have_a_deadline(tmp_path: Path, peer_over: PeerOf) -> None:
    settings = table("small", small_server(), "timeout_ms = 2000") + table(
        "mute", small_server("mute"), "timeout_ms = 400"
    )
    with peer_over(tmp_path, settings) as peer:
        assert "TIMEOUT" in json.dumps(peer.call("small__wait"))
        assert peer.text("small__write") == "write"
        wait_until(lambda: b"mcp.mute: it failed: it did not answer initialize within" in _stderr(tmp_path))


@pytest.mark.covers("design.servers.may-ask")
@pytest.mark.parametrize("revision", ERAS)
def test_a_server_samples_only_where_it_is_named(tmp_path: Path, peer_over: PeerOf, revision: str) -> None:
    with peer_over(tmp_path, table("small", small_server()), revision) as peer:
        assert "may_ask does not allow sampling" in peer.text("small__sample")
        assert "Ada" in peer.text("small__elicit")
        assert "file:///work" in peer.text("small__roots")
        assert "sampling/createMessage" not in peer.methods()
    settings = table("small", small_server(), 'may_ask = ["sampling"]')
    with peer_over(tmp_path, settings, revision) as peer:
        assert "Paris" in peer.text("small__sample")
        assert "may_ask does not allow elicitation" in peer.text("small__elicit")
        assert peer.methods().count("elicitation/create") == 0


def _stderr(folder: Path) -> bytes:
    return (folder / "stderr").read_bytes()
