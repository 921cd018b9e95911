"""The scenarios of the conformance suite over STDIO, at all five revisions: all that STDIO can carry."""

from __future__ import annotations

import itertools
import json
import queue
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.in_process_connection import EVERY_REVISION, HANDSHAKES, META, STATELESS_META, handshake
from support.mcp_http_client import EVERYTHING
from support.portbook_process import PORTBOOK, child

CAPABILITIES = {"elicitation": {}, "sampling": {}, "roots": {}}
TASKS = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "m"}
FILLED = {"name": "Alice", "ok": True, "color": "blue", "username": "a", "email": "b", "context": "c"}
ANSWERS: dict[str, Any] = {
    "elicitation/create": {"action": "accept", "content": FILLED},
    "sampling/createMessage": SAMPLED,
    "roots/list": {"roots": [{"uri": "file:///work"}]},
}


class Peer:
    """A client over STDIO that answers what it is asked."""

    def __init__(self, revision: str, process: subprocess.Popen[bytes]) -> None:
        self.revision = revision
        self._process = process
        self._ids = itertools.count(1)
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self.heard: list[Any] = []
        assert process.stdout is not None
        out = process.stdout
        self.reading = threading.Thread(target=lambda: [self._lines.put(line) for line in out], daemon=True)
        self.reading.start()
        if revision in HANDSHAKES:
            self.result("initialize", {**handshake(revision), "capabilities": CAPABILITIES})
            self.write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    @property
    def is_stateless(self) -> bool:
        return self.revision not in HANDSHAKES

    def write(self, message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def read(self) -> Any:
        return json.loads(self._lines.get(timeout=20))

    def start(self, method: str, params: dict[str, Any]) -> int:
        number = next(self._ids)
        if self.is_stateless:
            own = {META + "clientCapabilities": CAPABILITIES, **params.get("_meta", {})}
            params = {**params, "_meta": {**STATELESS_META, **own}}
        self.write({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        return number

    def answer(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """Send a request; return its answer. What is asked meanwhile is answered, what is told is heard."""
        number = self.start(method, params or {})
        while True:
            message = self.read()
            if message.get("id") == number and "method" not in message:
                return message
            if "id" in message:
                assert not self.is_stateless, "a request of its own, where there is no connection to speak of"
                reply = {"jsonrpc": "2.0", "id": message["id"], "result": ANSWERS[message["method"]]}
                self.write(reply)
            self.heard.append(message)

    def result(self, method: str, params: dict[str, Any] | None = None) -> Any:
        answer = self.answer(method, params)
        assert "result" in answer, answer
        return answer["result"]

    def call(self, tool: str, more: dict[str, Any] | None = None, **arguments: Any) -> Any:
        """Call a tool to its end, in as many rounds as that takes."""
        self.heard.clear()
        params: dict[str, Any] = {"name": tool, "arguments": arguments, **(more or {})}
        result = self.result("tools/call", params)
        while result.get("resultType") == "input_required":
            answers = {key: ANSWERS[asked["method"]] for key, asked in result["inputRequests"].items()}
            rounds = {"inputResponses": answers, "requestState": result["requestState"]}
            result = self.result("tools/call", {**params, **rounds})
        return result

    def text(self, tool: str, more: dict[str, Any] | None = None, **arguments: Any) -> str:
        return self.call(tool, more, **arguments)["content"][0]["text"]

    def methods(self) -> list[str]:
        return [message["method"] for message in self.heard]


@pytest.fixture(scope="module", params=EVERY_REVISION)
def peer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    folder: Path = tmp_path_factory.mktemp("stdio")
    with child(
        [*PORTBOOK, "serve", "--stdio", str(EVERYTHING)],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        peer = Peer(request.param, process)
        yield peer
        process.stdin.close()
        assert process.wait(30) == 0
        peer.reading.join(30)


def _tools(peer: Peer) -> None:
    listed = [tool["name"] for tool in peer.result("tools/list")["tools"]]
    assert listed == [tool["name"] for tool in peer.result("tools/list")["tools"]]
    schema = next(t for t in peer.result("tools/list")["tools"] if t["name"] == "json_schema_2020_12_tool")
    assert schema["inputSchema"]["$defs"]["address"]["$anchor"] == "addressDef"


def _contents(peer: Peer) -> None:
    kinds = [block["type"] for block in peer.call("test_multiple_content_types")["content"]]
    assert kinds == ["text", "image", "resource"]
    assert peer.call("test_error_handling")["isError"] is True


def _progress(peer: Peer) -> None:
    peer.call("test_tool_with_progress", {"_meta": {"progressToken": "t"}})
    assert [message["params"]["progress"] for message in peer.heard] == [0, 50, 100]


def _logging(peer: Peer) -> None:
    if peer.is_stateless:
        peer.call("test_logging_tool")
        assert peer.heard == []
        peer.call("test_logging_tool", {"_meta": {META + "logLevel": "debug"}})
        assert peer.methods() == ["notifications/message"]
    else:
        assert peer.result("logging/setLevel", {"level": "debug"}) == {}
        peer.call("test_tool_with_logging")
        assert peer.methods() == ["notifications/message"] * 3


def _resources(peer: Peer) -> None:
    assert {"test://static-text"} <= {r["uri"] for r in peer.result("resources/list")["resources"]}
    assert peer.result("resources/read", {"uri": "test://template/123/data"})["contents"][0]["text"]
    unknown = peer.answer("resources/read", {"uri": "test://no-such"})["error"]
    assert unknown["code"] == (-32602 if peer.is_stateless else -32002)


def _subscriptions(peer: Peer) -> None:
    uri = "test://watched-resource"
    if not peer.is_stateless:
        assert peer.result("resources/subscribe", {"uri": uri}) == {}
        peer.call("touch_watched_resource")
        assert "notifications/resources/updated" in peer.methods()
        assert peer.result("resources/unsubscribe", {"uri": uri}) == {}
        return
    wanted = {"toolsListChanged": True, "resourceSubscriptions": [uri]}
    number = peer.start("subscriptions/listen", {"notifications": wanted})
    assert peer.read()["method"] == "notifications/subscriptions/acknowledged"
    peer.call("touch_watched_resource")
    peer.call("test_trigger_prompt_change")
    assert "notifications/prompts/list_changed" not in peer.methods()
    cancelled = {"requestId": number, "_meta": dict(STATELESS_META)}
    peer.write({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})
    peer.call("touch_watched_resource")
    assert "notifications/resources/updated" not in peer.methods()


def _prompts(peer: Peer) -> None:
    assert peer.result("prompts/list")["prompts"]
    assert peer.result("prompts/get", {"name": "test_prompt_with_image"})["messages"][0]["content"]["data"]
    ref = {"type": "ref/prompt", "name": "test_prompt_with_arguments"}
    given = {"ref": ref, "argument": {"name": "arg1", "value": "teste"}}
    assert peer.result("completion/complete", given)["completion"]["values"] == ["tester"]


def _sampling(peer: Peer) -> None:
    assert peer.text("test_sampling", prompt="capital?") == "LLM response: Paris"


def _roots(peer: Peer) -> None:
    assert peer.text("test_input_required_result_list_roots") == "file:///work"


def _elicitation(peer: Peer) -> None:
    if peer.revision < "2025-06-18":  # which came with it
        assert peer.call("test_elicitation", message="who?")["isError"] is True
        return
    assert "action=accept" in peer.text("test_elicitation", message="who?")
    assert peer.text("test_input_required_result_multi_round") == "Alice likes blue"


def _reconnection(peer: Peer) -> None:
    assert peer.text("test_reconnection") == "Reconnection test completed"  # there is no stream to let go of


def _tampered(peer: Peer) -> None:
    if not peer.is_stateless:
        return
    name = {"name": "test_input_required_result_tampered_state"}
    asked = peer.result("tools/call", name)
    given = {"inputResponses": {"confirm": ANSWERS["elicitation/create"]}}
    bad = peer.answer("tools/call", {**name, **given, "requestState": asked["requestState"] + "x"})
    assert bad["error"]["code"] == -32602


def _missing(peer: Peer) -> None:
    if peer.is_stateless:
        none = {"_meta": {META + "clientCapabilities": {}}}
        error = peer.answer("tools/call", {"name": "test_missing_capability", **none})["error"]
        assert error["code"] == -32021


def _tasks(peer: Peer) -> None:
    given = {"name": "slow_compute", "arguments": {"seconds": 0.05, "label": "x"}}
    knows = {"_meta": {META + "clientCapabilities": TASKS}}
    result = peer.result("tools/call", {**given, **knows} if peer.is_stateless else given)
    if not peer.is_stateless:
        assert result["content"]
        return
    assert result["resultType"] == "task"
    state: Any = {"status": "working"}
    while state["status"] == "working":
        state = peer.result("tasks/get", {"taskId": result["taskId"], **knows})
    assert state["result"]["content"]


def _skills(peer: Peer) -> None:
    if peer.is_stateless:
        assert peer.result("skills/list")["skills"]
    else:
        assert peer.answer("skills/list")["error"]["code"] == -32601


def _hello(peer: Peer) -> None:
    if peer.is_stateless:
        assert peer.result("server/discover")["supportedVersions"] == ["2026-07-28"]
        assert peer.answer("ping")["error"]["code"] == -32601
    else:
        assert peer.result("ping") == {}


SCENARIOS: dict[str, Callable[[Peer], None]] = {
    "hello": _hello,
    "tools": _tools,
    "contents": _contents,
    "progress": _progress,
    "logging": _logging,
    "resources": _resources,
    "subscriptions": _subscriptions,
    "prompts": _prompts,
    "sampling": _sampling,
    "roots": _roots,
    "elicitation": _elicitation,
    "reconnection": _reconnection,
    "tampered state": _tampered,
    "missing capability": _missing,
    "tasks": _tasks,
    "skills": _skills,
}


@pytest.mark.covers("design.conformance.stdio")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_scenario_passes_over_stdio(peer: Peer, scenario: str) -> None:
    SCENARIOS[scenario](peer)
