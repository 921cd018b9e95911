"""Tools that fork: what their processes are told is not told to the server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.portbook_process import PORTBOOK, child, environment, http_server, invoke

CALLS = 8

TOOLS = """
import multiprocessing, os, signal, sys

from portbook import Toolset

toolset = Toolset("forking")

@toolset.tool(effect="read")
def pool(text: str) -> dict[str, int]:
    with multiprocessing.get_context("fork").Pool(1) as workers:  # which it ends with SIGTERM
        return {"length": workers.apply(len, (text,))}

@toolset.tool(effect="read", inline=True)
def interrupted() -> dict[str, int]:
    process = os.fork()
    if not process:
        signal.pause()
    os.kill(process, signal.SIGHUP)
    return {"ended": -os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])}

@toolset.tool(effect="read", inline=True)
def hung_up() -> dict[str, int]:
    process = os.fork()
    if not process:
        signal.raise_signal(signal.SIGHUP)
        os._exit(7)
    return {"ended": os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])}
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, processes are not forked")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "portbook.toml").write_text("[docs]\nenabled = false\n")
    return tmp_path


def frame(tool: str, arguments: dict[str, Any]) -> bytes:
    return invoke(tool, arguments) + b"\n"


def test_a_pool_of_processes_does_not_stop_a_server_over_stdio(folder: Path) -> None:
    frames = [frame("pool", {"text": "abc"}), frame("interrupted", {})] * CALLS
    command = [*PORTBOOK, "serve", "--stdio", "tools.py"]
    pipe = subprocess.PIPE
    with child(command, cwd=folder, env=environment(), stdin=pipe, stdout=pipe, stderr=pipe) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdin.write(b"".join(frames))
        server.stdin.flush()
        answers = [json.loads(server.stdout.readline()) for _ in frames]
        assert server.poll() is None  # its input is still open
        server.stdin.close()
        assert (server.wait(30), server.stderr.read()) == (0, b"")
    told = [json.dumps(answer) for answer in answers]
    assert sum('"length": 3' in each for each in told) == CALLS, told
    assert sum('"ended": 1' in each for each in told) == CALLS, told


@pytest.mark.parametrize(("before", "ended"), [("", -1), ("trap '' HUP; ", 7)], ids=["heard", "ignored"])
def test_a_forked_process_ignores_what_its_server_was_started_to_ignore(
    folder: Path, before: str, ended: int
) -> None:
    (folder / "portbook.toml").write_text("[docs]\nenabled = false\n[audit]\nkeep = 9\n")
    done = subprocess.run(
        ["sh", "-c", f'{before}exec "$@"', "sh", *PORTBOOK, "serve", "--stdio", "tools.py"],
        input=frame("hung_up", {}),
        cwd=folder,
        env=environment(),
        capture_output=True,
        timeout=60,
    )
    assert f'"ended":{ended}' in done.stdout.decode(), done.stderr


def test_nor_one_over_http(folder: Path) -> None:
    with http_server(cwd=folder, tools=("tools.py",)) as server:
        for _ in range(CALLS):
            body = json.dumps({"session_id": "s", "tool_id": "pool", "args": {"text": "abc"}}).encode()
            answer = server.request("/execute", body, content_type="application/json")
            assert answer.json["result"] == {"length": 3}
        assert server.process.poll() is None
