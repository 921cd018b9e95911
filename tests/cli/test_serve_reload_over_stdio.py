"""`portbook serve --stdio --reload`: changed files are taken up on the connection that the client has."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from support.portbook_process import PORTBOOK, child, invoke, run

PATIENCE_S = 60.0
TOOLS = """\
import time
from pathlib import Path

from portbook import Toolset
from words.spoken import WORD

toolset = Toolset("x")


@toolset.tool(effect="read")
def look() -> str:
    return WORD


@toolset.tool(effect="read")
def wait() -> str:
    Path("waiting").touch()
    while not Path("go").exists():
        time.sleep(0.01)
    return WORD
"""
SETTINGS = '[python]\ntoolsets = ["tools.py"]\n[docs]\nenabled = false\n'
CHANGED = "notifications/tools/list_changed"
LATEST = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Talk:
    """A client of a server that reloads; both of the server's streams are read all the time."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.process = process
        self.folder = folder
        self.messages: Queue[Any] = Queue()
        self.lines: Queue[str] = Queue()
        assert process.stdout is not None
        assert process.stderr is not None
        _reading(process.stdout, lambda line: self.messages.put(json.loads(line)))
        _reading(process.stderr, lambda line: self.lines.put(line.decode()))

    def send(self, message: bytes | dict[str, Any]) -> None:
        assert self.process.stdin is not None
        data = message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def get(self, is_it: Callable[[Any], bool]) -> Any:
        """Return the next message that is wanted; others are passed over."""
        while not is_it(message := self.messages.get(timeout=PATIENCE_S)):
            pass
        return message

    def request(self, identifier: int, method: str, **params: Any) -> Any:
        self.send({"id": identifier, "method": method, "params": params})
        return self.get(lambda message: message.get("id") == identifier)

    def begin(self) -> None:
        about = {"name": "me", "version": "1"}
        self.request(1000, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=about)
        self.send({"method": "notifications/initialized"})

    def look(self, identifier: int = 1) -> str:
        answer = self.request(identifier, "tools/call", name="look", arguments={})
        return str(answer["result"]["content"][0]["text"])

    def told(self, words: str) -> str:
        while words not in (line := self.lines.get(timeout=PATIENCE_S)):
            pass
        return line

    def say(self, word: str) -> None:
        (self.folder / "words" / "spoken.py").write_text(f"WORD = {word!r}\n")

    def wait_for(self, name: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not (self.folder / name).exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)


def _reading(stream: Any, take: Callable[[bytes], None]) -> None:
    def read() -> None:
        for line in stream:
            take(line)

    threading.Thread(target=read, daemon=True).start()


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "__init__.py").touch()
    (tmp_path / "words" / "spoken.py").write_text('WORD = "old"\n')
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "portbook.toml").write_text(SETTINGS)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with child([*PORTBOOK, "serve", "--stdio", "--reload"], cwd=tmp_path, **pipes) as process:
        yield Talk(process, tmp_path)
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.covers("design.reload.stdio")
def test_a_changed_module_is_taken_up_on_the_same_connection(talk: Talk) -> None:
    talk.begin()
    assert talk.look() == "old"
    for word in ("new", "newer"):
        talk.say(word)
        talk.told("reloaded: the changed files are in force")
        assert talk.look() == word


@pytest.mark.covers("design.reload.lists")
def test_a_client_hears_of_a_changed_list_and_of_none_that_is_as_before(talk: Talk) -> None:
    talk.begin()
    talk.say("new")  # the list stays as it is
    talk.told("reloaded")
    assert talk.look() == "new"
    path = talk.folder / "tools.py"
    path.write_text(path.read_text().replace("def look", "def glance"))
    heard = talk.get(lambda message: "method" in message)
    assert heard["method"] == CHANGED
    assert talk.messages.empty()
    listed = talk.request(2, "tools/list")["result"]["tools"]
    assert {tool["name"] for tool in listed} == {"glance", "wait"}


def test_a_subscription_of_2026_hears_of_it_and_ends_so_that_the_client_subscribes_again(talk: Talk) -> None:
    wanted = {"notifications": {"toolsListChanged": True}, "_meta": LATEST}
    talk.send({"id": "s", "method": "subscriptions/listen", "params": wanted})
    talk.get(lambda message: message.get("method") == "notifications/subscriptions/acknowledged")
    path = talk.folder / "tools.py"
    path.write_text(path.read_text().replace("def look", "def glance"))
    talk.get(lambda message: message.get("method") == CHANGED)
    assert "result" in talk.get(lambda message: message.get("id") == "s")
    listed = talk.request(2, "tools/list", _meta=LATEST)["result"]["tools"]
    assert {tool["name"] for tool in listed} == {"glance", "wait"}


@pytest.mark.covers("design.reload.broken")
def test_a_broken_change_leaves_the_old_in_force_and_says_so(talk: Talk) -> None:
    talk.begin()
    broken = "WORD = (\n"
    (talk.folder / "words" / "spoken.py").write_text(broken)
    assert "spoken.py:1:8: not valid Python" in talk.told("error: ")
    talk.told("reload failed; what was served before stays in force")
    assert talk.look() == "old"
    talk.say("mended")
    talk.told("reloaded")
    assert talk.look() == "mended"


def test_changed_settings_are_taken_up_too(talk: Talk) -> None:
    talk.begin()
    rule = '[[policy.rules]]\nname = "no"\naction = "deny"\ntools = ["look"]\n'
    (talk.folder / "portbook.toml").write_text(SETTINGS + rule)
    talk.told("reloaded")
    answer = talk.request(1, "tools/call", name="look", arguments={})
    assert answer["result"]["_meta"]["portbook/refusal"]["reason"] == "POLICY_VIOLATION"


@pytest.mark.covers("design.reload.calls")
def test_a_call_under_way_ends_in_the_old_one(talk: Talk) -> None:
    talk.begin()
    talk.send({"id": 7, "method": "tools/call", "params": {"name": "wait", "arguments": {}}})
    talk.wait_for("waiting")
    talk.say("new")
    talk.told("reloaded")
    assert talk.look() == "new"
    (talk.folder / "go").touch()
    ended = talk.get(lambda message: message.get("id") == 7)
    assert ended["result"]["content"][0]["text"] == "old"
    assert talk.look(2) == "new"


def test_a_call_that_others_wait_for_ends_in_the_old_one_and_they_run_in_the_new(talk: Talk) -> None:
    talk.send(invoke("wait", {}, id=1))  # an envelope: answered in turn
    talk.send(invoke("look", {}, id=2))
    talk.wait_for("waiting")
    talk.say("new")
    talk.told("reloaded")
    (talk.folder / "go").touch()
    assert [talk.get(lambda _: True)["result"] for _ in range(2)] == ["old", "new"]


def test_a_call_under_way_and_the_server_both_end_with_the_client(talk: Talk) -> None:
    talk.begin()
    talk.send({"id": 7, "method": "tools/call", "params": {"name": "wait", "arguments": {}}})
    talk.wait_for("waiting")
    talk.say("new")
    talk.told("reloaded")
    assert talk.process.stdin is not None
    talk.process.stdin.close()
    (talk.folder / "go").touch()
    assert talk.get(lambda message: message.get("id") == 7)["result"]["content"][0]["text"] == "old"


# Imported for as long as the test wants.
HANGING = """\
import time
from pathlib import Path

Path("importing").touch()
while not Path("imported").exists():
    time.sleep(0.01)
WORD = "late"
"""


@pytest.mark.covers("design.reload.hanging")
def test_while_an_import_hangs_the_old_one_answers_and_a_further_change_is_taken_up(talk: Talk) -> None:
    talk.begin()
    (talk.folder / "words" / "spoken.py").write_text(HANGING)
    talk.wait_for("importing")
    talk.told("the changed files are still loading; what was served before stays in force until then")
    assert talk.look() == "old"
    talk.say("mended")
    talk.told("reloaded")
    assert talk.look() == "mended"


def test_an_import_that_takes_long_is_taken_up_when_it_ends(talk: Talk) -> None:
    talk.begin()
    (talk.folder / "words" / "spoken.py").write_text(HANGING)
    talk.wait_for("importing")
    assert talk.look() == "old"
    (talk.folder / "imported").touch()
    talk.told("reloaded")
    assert talk.look() == "late"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_it_while_an_import_hangs(talk: Talk, number: int) -> None:
    talk.begin()
    (talk.folder / "words" / "spoken.py").write_text(HANGING)
    talk.wait_for("importing")
    talk.process.send_signal(number)
    assert talk.process.wait(PATIENCE_S) == 0


def test_a_signal_stops_it_where_only_the_second_import_hangs(talk: Talk) -> None:
    talk.begin()
    once = 'from pathlib import Path\nWORD = "x"\nif Path("tried").exists():\n'
    body = "".join(f"    {line}\n" for line in HANGING.splitlines())
    (talk.folder / "words" / "spoken.py").write_text(f'{once}{body}Path("tried").touch()\n')
    talk.wait_for("importing")
    talk.process.send_signal(signal.SIGTERM)
    assert talk.process.wait(PATIENCE_S) == 0


def test_it_is_for_one_door(tmp_path: Path) -> None:
    finished = run("serve", "--stdio", "--http", "--reload", cwd=tmp_path)
    assert finished.code == 2
    assert "--reload is for one door; leave out --stdio or --http" in finished.err
