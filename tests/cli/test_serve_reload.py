"""`portbook serve --reload`: changed files are taken up without refusing a connection or losing a call."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from portbook.cli.serve_reload import ReloadingServer
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


@toolset.tool(effect="read", task="optional")
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

    def answer(self, tool: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        body = json.dumps({"tool_id": tool, "args": {}, "session_id": "s"})
        connection.request("POST", "/execute", body, {"content-type": "application/json"})
        answer = json.loads(connection.getresponse().read())
        connection.close()
        return answer

    def call(self, tool: str = "look") -> Any:
        return self.answer(tool)["result"]

    def refusal(self) -> str:
        return str(self.answer("look")["error"]["code"])

    def mcp(self, method: str, params: dict[str, Any], session: str | None = None, **more: str) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
            **more,
        }
        if session is not None:
            headers |= {"mcp-session-id": session, "mcp-protocol-version": "2025-11-25"}
        url = f"http://127.0.0.1:{self.port}/mcp"
        request = urllib.request.Request(url, json.dumps(message).encode(), headers)
        return urllib.request.urlopen(request, timeout=PATIENCE_S)

    def waits(self) -> None:
        """Return once the tool `wait` runs."""
        deadline = time.monotonic() + PATIENCE_S
        while not (self.folder / "waiting").exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def records_of(self, tool: str) -> list[Any]:
        files = (self.folder / "runs" / "mcp_server" / "envelope_validation").glob("2*.jsonl")
        found = [json.loads(line) for path in files for line in path.read_text().splitlines()]
        return [record for record in found if record["metadata"]["toolId"] == f"mcp.tool:{tool}"]

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
        command,
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    ) as process:
        yield Watched(process, tmp_path)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0
        assert process.returncode in (0, 130), "it ended by itself"  # 130 where its test has ended it


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


def test_a_changed_document_is_taken_up_too(watched: Watched) -> None:
    def describe(name: str) -> str:
        operation = {"operationId": name, "responses": {"200": {"description": "ok"}}}
        return json.dumps({"openapi": "3.1.0", "paths": {"/pets": {"get": operation}}})

    def names() -> set[str]:
        with urllib.request.urlopen(f"http://127.0.0.1:{watched.port}/tools", timeout=PATIENCE_S) as answer:
            return {tool["name"] for tool in json.load(answer)["tools"]}

    (watched.folder / "pets.json").write_text(describe("list_pets"))
    config = watched.folder / "portbook.toml"
    config.write_text(
        config.read_text() + '[http.shop]\nopenapi = "pets.json"\nbase_url = "http://127.0.0.1:1"\n'
    )
    watched.told("reloaded")
    (watched.folder / "pets.json").write_text(describe("all_pets"))
    watched.told("reloaded")
    deadline = time.monotonic() + PATIENCE_S
    while "shop.all_pets" not in names():
        assert time.monotonic() < deadline


def test_a_call_under_way_ends_in_the_old_one(watched: Watched) -> None:
    answers: list[Any] = []
    caller = threading.Thread(target=lambda: answers.append(watched.call("wait")))
    caller.start()
    watched.waits()
    watched.write("new")
    watched.told("reloaded")
    watched.comes_to_answer("new")
    (watched.folder / "go").touch()
    caller.join(PATIENCE_S)
    assert answers == ["old"]


def test_a_task_under_way_ends_in_the_old_one_and_is_recorded(watched: Watched) -> None:
    knows = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": "2026-07-28", f"{prefix}clientCapabilities": knows}
    calling = {"name": "wait", "arguments": {}, "_meta": meta}
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "wait"}
    begun = json.loads(watched.mcp("tools/call", calling, **headers).read())
    assert begun["result"]["resultType"] == "task"
    watched.waits()
    watched.write("new")
    watched.told("reloaded")
    watched.comes_to_answer("new")
    (watched.folder / "go").touch()
    deadline = time.monotonic() + PATIENCE_S
    while not (ended := watched.records_of("wait")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert [record["status"] for record in ended] == ["ok"]


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


# It is imported for as long as the test wants.
HANGING = """\
import time
from pathlib import Path

Path("importing").touch()
while not Path("imported").exists():
    time.sleep(0.01)
"""


def importing(folder: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not (folder / "importing").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_watcher_stops_it_while_an_import_hangs(watched: Watched, number: int) -> None:
    (watched.folder / "tools.py").write_text(HANGING)
    importing(watched.folder)
    watched.process.send_signal(number)
    assert watched.process.wait(PATIENCE_S) == 0
    assert watched.process.stderr is not None
    assert "reload failed" not in watched.process.stderr.read()


def test_a_signal_stops_it_while_its_first_import_hangs(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(HANGING)
    command = [*PORTBOOK, "serve", "--http", "--reload", "--port", "0", "tools.py"]
    with child(command, cwd=tmp_path, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        importing(tmp_path)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 130


def test_an_import_that_ignores_signals_ends_with_the_second(watched: Watched) -> None:
    ignoring = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    (watched.folder / "tools.py").write_text(ignoring + HANGING)
    importing(watched.folder)
    watched.process.send_signal(signal.SIGTERM)
    watched.told("finishing calls in flight")
    watched.process.send_signal(signal.SIGTERM)
    assert watched.process.wait(PATIENCE_S) in (0, 130)


def test_while_an_import_hangs_the_old_server_answers_and_a_further_change_is_taken_up(
    watched: Watched,
) -> None:
    (watched.folder / "tools.py").write_text(HANGING)
    importing(watched.folder)
    watched.told("the changed files are still loading; what was served before stays in force until then")
    assert watched.call() == "old"
    watched.write("mended")
    watched.told("reloaded")
    watched.comes_to_answer("mended")


@pytest.mark.covers("design.reload.orphans")
@pytest.mark.parametrize("is_importing", [False, True], ids=["serving", "while an import hangs"])
def test_no_server_outlives_a_watcher_that_was_killed(tmp_path: Path, is_importing: bool) -> None:
    (tmp_path / "tools.py").write_text(TOOLS.replace("{word}", "old"))
    command = [*PORTBOOK, "serve", "--http", "--reload", "--port", "0", "tools.py"]
    with child(command, cwd=tmp_path, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        Watched(process, tmp_path)
        if is_importing:
            (tmp_path / "tools.py").write_text(HANGING)
            importing(tmp_path)
        process.kill()
        assert process.stderr is not None
        process.stderr.read()  # ends with the last process that could write to it


def test_a_module_that_was_never_imported_is_taken_up_once_it_is_mended(watched: Watched) -> None:
    (watched.folder / "words").mkdir()
    (watched.folder / "words" / "spoken.py").write_text("WORD = (\n")
    path = watched.folder / "tools.py"
    path.write_text("from words.spoken import WORD\n" + TOOLS.replace('"{word}"', "WORD"))
    watched.told("reload failed")
    (watched.folder / "words" / "spoken.py").write_text('WORD = "mended"\n')
    watched.told("reloaded")
    watched.comes_to_answer("mended")


def test_a_reload_says_nothing_of_calls_in_flight(watched: Watched) -> None:
    watched.write("new")
    assert watched.process.stderr is not None
    lines = [next(watched.process.stderr) for _ in range(2)]
    watched.comes_to_answer("new")
    watched.process.send_signal(signal.SIGTERM)
    lines += watched.process.stderr
    said = "".join(lines)
    assert said.count("reloaded: the changed files are in force") == 1
    assert said.count("finishing calls in flight") == 1  # for the signal, and not for the reload


def test_ctrl_c_on_a_terminal_is_one_signal_and_calls_under_way_end(watched: Watched) -> None:
    answers: list[Any] = []
    caller = threading.Thread(target=lambda: answers.append(watched.call("wait")))
    caller.start()
    watched.waits()
    os.killpg(watched.process.pid, signal.SIGINT)  # as a terminal does
    watched.told("finishing calls in flight")
    (watched.folder / "go").touch()
    caller.join(PATIENCE_S)
    assert answers == ["old"]
    assert watched.process.wait(PATIENCE_S) == 0  # a further signal would not wait for it


# Says that it is ready, and handles no signal.
UNHANDLING = """
import json, os, signal
pipe = int(os.environ["_PORTBOOK_TAKE_OVER"].split(",")[1])
os.write(pipe, json.dumps({"files": [], "lists": {}, "address": {}}).encode())
os.close(pipe)
os.kill(WHOM, SIGNAL)
signal.pause()
"""


@pytest.mark.parametrize(
    ("whom", "number", "code"),
    [
        ("os.getppid()", signal.SIGTERM, 0),
        ("os.getppid()", signal.SIGINT, 0),
        ("os.getpid()", signal.SIGTERM, 143),
        ("os.getpid()", signal.SIGKILL, 137),
    ],
)
def test_a_signal_that_ends_the_server_is_a_failure_unless_it_was_passed_on(
    own_signals: None, whom: str, number: int, code: int
) -> None:
    server = UNHANDLING.replace("WHOM", whom).replace("SIGNAL", str(int(number)))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        command = [sys.executable, "-IS", "-c", f"import signal; signal.signal(2, signal.SIG_DFL)\n{server}"]
        assert ReloadingServer(listener, command).run() == code


@pytest.fixture
def own_signals() -> Iterator[None]:
    """Give the process of the tests back its handlers of signals."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_server_that_never_starts_ends(tmp_path: Path) -> None:
    finished = run("serve", "--http", "--reload", "--port", "0", "nowhere.py", cwd=tmp_path)
    assert finished.code == 2
    assert "nowhere.py: no such file" in finished.err


def test_a_process_that_ends_while_it_imports_is_told_of_and_the_old_stays(watched: Watched) -> None:
    (watched.folder / "tools.py").write_text("import os\n\nos._exit(7)\n")
    assert "ended with exit code 7" in watched.told("error: the process that loaded the changed files")
    watched.told("reload failed; what was served before stays in force")
    assert watched.call() == "old"


def test_a_changed_port_is_not_said_to_be_in_force(watched: Watched) -> None:
    config = watched.folder / "portbook.toml"
    config.write_text(config.read_text().replace("port = 0", 'port = 1\nsocket = "here"'))
    told = watched.told("warning: ")
    assert "server.port and server.socket changed; restart to listen there" in told
    assert watched.call() == "old"
    assert not (watched.folder / "here").exists()


@pytest.mark.covers("design.reload.exposed")
def test_a_server_that_still_listens_everywhere_still_wants_keys(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(TOOLS.replace("{word}", "old"))
    config = tmp_path / "portbook.toml"
    config.write_text('[python]\ntoolsets = ["tools.py"]\n[server]\nport = 0\nhost = "0.0.0.0"\n')
    command = [*PORTBOOK, "serve", "--http", "--reload"]
    with child(command, cwd=tmp_path, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        watched = Watched(process, tmp_path)
        assert watched.refusal() == "UNAUTHORIZED"
        config.write_text(config.read_text().replace("0.0.0.0", "127.0.0.1"))
        watched.told("warning: server.host changed; restart to listen there")
        assert watched.refusal() == "UNAUTHORIZED"
