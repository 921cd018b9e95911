"""Servers that misbehave, and kills: the next call is served, and no process is left behind."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from support.counts import count
from support.leftover_processes import PROC
from support.mcp_peer import peer_of, ready_server, small_server, table
from support.portbook_process import SAMPLE_TOOLS, records, run
from support.running_processes import PATIENCE_S, running, wait_until


def assert_none_left(mark: str) -> None:
    wait_until(lambda: not running(mark))


def _wrapper_of(processes: list[int]) -> int:
    """The one that the keeper started: its parent is one of them, and that one's is not."""
    parents = {
        pid: int((PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()[1]) for pid in processes
    }
    keeper = next(pid for pid in processes if parents[pid] not in parents)
    return next(pid for pid in processes if parents[pid] == keeper)


@pytest.mark.covers("design.servers.hygiene")
@pytest.mark.parametrize("mode", ["garbage", "long-lines", "stderr", "answers-twice", "dies-at-discover"])
def test_a_server_that_says_more_than_it_should_is_still_served(tmp_path: Path, mode: str) -> None:
    with peer_of(tmp_path, table("small", small_server(mode))) as peer:
        for at in range(3):
            assert peer.text("small__echo", {"text": f"call {at}"}) == f"call {at}"
    assert len((tmp_path / "stderr").read_bytes()) < 1_000_000  # of 6 MB


# It leaves a process that forks and ends at once, for a minute, and that holds a pipe open.
FLEEING = """
import os, sys, time
until = time.monotonic() + 60
told = os.open(sys.argv[1], os.O_WRONLY)
os.write(told, b'.')
if os.fork():
    sys.exit(1)
os.setsid()
os.closerange(0, 3)
while time.monotonic() < until:
    if os.fork():
        os._exit(0)
"""


@pytest.mark.skipif(not PROC.is_dir(), reason="only Linux shows the processes below another")
def test_what_a_server_left_does_not_escape_by_forking_again_and_again(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb", buffering=0) as told:
        command = json.dumps([sys.executable, "-c", FLEEING, str(pipe)])
        (tmp_path / "portbook.toml").write_text(f"[mcp.box]\ncommand = {command}\n")
        assert run("pin", "box", cwd=tmp_path).code == 1
        assert told.read(1) == b"."
        # More of them where it was started twice; at the end, and only then, nothing instead of None.
        wait_until(lambda: told.read(64) == b"")


@pytest.mark.covers("design.servers.malformed")
@pytest.mark.parametrize(
    ("mode", "words", "pointer"),
    [
        ("bad-result", "BAD_RESULT", "/content"),
        ("not-json", "and was withheld: an answer is not JSON", ""),
        ("huge", "and was withheld: an answer is too large", ""),
        ("closes", "UPSTREAM_ERROR", None),
    ],
)
def test_a_malformed_answer_fails_its_call_and_the_next_one_is_served(
    tmp_path: Path, mode: str, words: str, pointer: str | None
) -> None:
    with peer_of(tmp_path, table("small", small_server(mode))) as peer:
        assert words in json.dumps(peer.call("small__echo", {"text": "x"}))
        assert peer.text("small__write") == "write"
    if pointer:
        assert pointer in json.dumps(records(tmp_path / "log"))


def test_an_answer_to_another_request_is_no_answer(tmp_path: Path) -> None:
    with peer_of(tmp_path, table("small", small_server("other-id"), "timeout_ms = 2000")) as peer:
        assert "TIMEOUT" in json.dumps(peer.call("small__echo", {"text": "x"}))
        assert peer.text("small__write") == "write"


def test_a_server_that_never_answers_initialize_is_given_up(tmp_path: Path) -> None:
    with peer_of(tmp_path, table("small", small_server("mute"), "timeout_ms = 300")) as peer:
        assert peer.names() == []
        assert peer.call("small__echo", {"text": "x"})["code"] == -32602


def test_a_server_that_starts_slowly_is_spoken_to_in_its_own_revision(tmp_path: Path) -> None:
    behind = tmp_path / "behind"
    behind.mkdir()
    # A program that is fetched when it is first started: longer than a first answer is waited for.
    fetch = f'cd "{behind}"; [ -e fetched ] || sleep 3.2; touch fetched'
    slow = f'{fetch}; exec "$0" -m portbook serve --stdio "$1"'
    command = json.dumps(["sh", "-c", slow, sys.executable, str(SAMPLE_TOOLS)])
    with peer_of(tmp_path, table("slow", f"command = {command}")) as peer:
        assert peer.text("slow__echo", {"text": "x"}) == "x"
        status = ready_server(tmp_path)
    assert (status["revision"], status["last_error"]) == ("2026-07-28", None)


@pytest.mark.covers("design.servers.orphans")
@pytest.mark.soak("upstream kills")
def test_no_process_is_left_of_a_wrapper_whose_grandchild_hangs(tmp_path: Path) -> None:
    for at in range(count("upstream kills")):
        mark = f"mark-{os.getpid()}-{at}"
        command = json.dumps([sys.executable, str(_server()), "hangs-in-grandchild", mark])
        with peer_of(tmp_path, table("small", f"command = {command}")) as peer:
            assert peer.text("small__echo", {"text": "x"}) == "x"
            assert len(running(mark)) >= 3  # the keeper, the wrapper and the server
            if at % 2:
                peer.process.send_signal(signal.SIGKILL)
                peer.process.wait(PATIENCE_S)
        assert_none_left(mark)


@pytest.mark.soak("upstream restarts")
def test_no_process_and_no_descriptor_is_left_over_many_kills_of_a_server(tmp_path: Path) -> None:
    """The wrapper is killed, as by a system without memory, and its grandchild hangs; it is started again."""
    mark = f"killed-{os.getpid()}"
    command = json.dumps([sys.executable, str(_server()), "hangs-in-grandchild", mark])
    with peer_of(tmp_path, table("small", f"command = {command}")) as peer:
        opened = PROC / str(peer.process.pid) / "fd"
        counts: list[int] = []
        assert peer.text("small__echo", {"text": "x"}) == "x"
        for _ in range(count("upstream restarts")):
            before = running(mark)
            os.kill(_wrapper_of(before), signal.SIGKILL)
            assert run("upstreams", "restart", "small", cwd=tmp_path).code == 0
            wait_until(lambda before=before: len(now := running(mark)) == 3 and not {*now} & {*before})
            assert peer.text("small__echo", {"text": "x"}) == "x"
            counts.append(len(list(opened.iterdir())))
        assert max(counts) <= counts[0] + 1  # one more may be a moment's
    assert_none_left(mark)


def _server() -> Path:
    from support.mcp_peer import SMALL_SERVER

    return SMALL_SERVER
