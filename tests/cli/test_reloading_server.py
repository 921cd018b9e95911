"""`portbook serve --reload`: changed files are taken up without refusing a connection or losing a call."""

from __future__ import annotations

import http.client
import json
import re
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.portbook_process import PORTBOOK, child, environment, run

PATIENCE_S = 60.0
TOOLS = """\
import time
from pathlib import Path

from portbook import Toolset

toolset = Toolset("x")


@toolset.tool(effect="read")
def look() -> str:
    return "{word}"


@toolset.tool(effect="read")
def wait() -> str:
    Path("waiting").touch()
    while not Path("go").exists():
        time.sleep(0.01)
    return "{word}"
"""


class Watched:
    """A server that reloads, and the folder of its files."""

    def __init__(self, process: subprocess.Popen[str], folder: Path) -> None:
        self.process = process
        self.folder = folder
        self.port = int(re.findall(r"http://127\.0\.0\.1:(\d+)/ ", self.told("serving "))[0])

    def told(self, words: str) -> str:
        """Read what the server says until a line has these words."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if words in line:
                return line
        raise AssertionError(f"never said: {words}")

    def write(self, word: str) -> None:
        (self.folder / "tools.py").write_text(TOOLS.replace("{word}", word))

    def call(self, tool: str = "look") -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        body = json.dumps({"tool_id": tool, "args": {}, "session_id": "s"})
        connection.request("POST", "/execute", body, {"content-type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer["result"]

    def mcp(self, method: str, params: dict[str, Any], session: str | None = None) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        if session is not None:
            headers |= {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
        url = f"http://127.0.0.1:{self.port}/mcp"
        request = urllib.request.Request(url, json.dumps(message).encode(), headers)
        return urllib.request.urlopen(request, timeout=PATIENCE_S)

    def listening(self, session: str) -> Any:
        """The session's own stream, opened; its lines end with the server that it is open at."""
        headers = {
            "accept": "text/event-stream",
            "mcp-session-id": session,
            "mcp-protocol-version": "2025-11-25",
        }
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/mcp", headers=headers)
        return urllib.request.urlopen(request, timeout=PATIENCE_S)

    def comes_to_answer(self, result: Any) -> None:
        """Call until the new server answers: the old one takes connections until it has read its signal."""
        deadline = time.monotonic() + PATIENCE_S
        while self.call() != result:
            assert time.monotonic() < deadline


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    (tmp_path / "tools.py").write_text(TOOLS.replace("{word}", "old"))
    (tmp_path / "portbook.toml").write_text('[python]\ntoolsets = ["tools.py"]\n[server]\nport = 0\n')
    command = [*PORTBOOK, "serve", "--http", "--reload"]
    with child(
        command, cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        yield Watched(process, tmp_path)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0


def test_a_changed_toolset_is_taken_up_at_the_same_port(watched: Watched) -> None:
    assert watched.call() == "old"
    watched.write("new")
    watched.told("reloaded: the changed files are in force")
    watched.comes_to_answer("new")


def test_a_broken_change_leaves_the_old_in_force_and_says_so(watched: Watched) -> None:
    (watched.folder / "tools.py").write_text("from portbook import Toolset\nx = (\n")
    assert "error: tools.py:2:5: not valid Python" in watched.told("error: ")
    watched.told("reload failed; what was served before stays in force")
    assert watched.call() == "old"
    watched.write("mended")
    watched.told("reloaded")
    watched.comes_to_answer("mended")


def test_changed_settings_are_taken_up_too(watched: Watched) -> None:
    config = watched.folder / "portbook.toml"
    rule = '[[policy.rules]]\nname = "no"\naction = "deny"\ntools = ["look"]\n'
    config.write_text(config.read_text() + rule)
    watched.told("reloaded")
    watched.comes_to_answer(None)


def test_a_call_under_way_ends_in_the_old_one(watched: Watched) -> None:
    answers: list[Any] = []
    caller = threading.Thread(target=lambda: answers.append(watched.call("wait")))
    caller.start()
    deadline = time.monotonic() + PATIENCE_S
    while not (watched.folder / "waiting").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    watched.write("new")
    watched.told("reloaded")
    watched.comes_to_answer("new")
    (watched.folder / "go").touch()
    caller.join(PATIENCE_S)
    assert answers == ["old"]


def test_a_client_that_listens_hears_of_a_changed_list_and_finds_it_in_its_session(watched: Watched) -> None:
    about = {"name": "me", "version": "1"}
    opening = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": about}
    session = watched.mcp("initialize", opening).headers["mcp-session-id"]
    with watched.listening(session) as stream:
        path = watched.folder / "tools.py"
        path.write_text(path.read_text().replace("def look", "def glance"))
        heard = [line for line in stream if line.startswith(b"data: {")]
    assert [json.loads(line[6:])["method"] for line in heard] == ["notifications/tools/list_changed"]
    listed = json.loads(watched.mcp("tools/list", {}, session).read())["result"]["tools"]
    assert {tool["name"] for tool in listed} == {"glance", "wait"}


def test_a_server_that_never_starts_ends(tmp_path: Path) -> None:
    finished = run("serve", "--http", "--reload", "--port", "0", "nowhere.py", cwd=tmp_path)
    assert finished.code == 2
    assert "nowhere.py: no such file" in finished.err
