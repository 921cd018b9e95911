"""Pins at the door: what is approved, by whom, when that counts, and what the record has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.pinned_folder import BREAKING, LIST, SEND, WIDENED, PinnedFolder
from support.portbook_process import http_server, run
from support.stdio_session import stdio_session


def executions(folder: PinnedFolder) -> list[dict[str, Any]]:
    path = folder.path / "runs" / "mcp_server" / "execution" / "execution.latest.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.covers("mcp.pins.pending")
def test_without_a_lock_everything_is_withheld_until_it_is_pinned(tmp_path: Path) -> None:
    folder = PinnedFolder(tmp_path)
    resources = [{"uri": "box://canary", "name": "canary"}]
    folder.offer(SEND, LIST, prompts=[{"name": "canary"}], resources=resources, instructions="canary")
    with stdio_session(tmp_path) as client:
        assert client.tools() == {}
        assert client.request("prompts/list")["result"]["prompts"] == []
        assert client.request("resources/list")["result"]["resources"] == []
        assert client.call("box__send") == client.call("box.send") == "TOOL_WITHHELD"
        refused = client.request("prompts/get", {"name": "box__canary"})
        assert refused["error"]["data"]["reason"] == "TOOL_WITHHELD"
        assert b"canary" not in client.received
        assert run("pin", cwd=tmp_path).code == 0
        client.wait_until(lambda: client.tools().keys() == {"box__send", "box__list"})
        assert client.call("box__send") == "send ran"
        assert len(client.request("prompts/list")["result"]["prompts"]) == 1
        assert len(client.request("resources/list")["result"]["resources"]) == 1
    assert (
        "mcp.box: nothing of it is approved yet; run `portbook pin box`" in (tmp_path / "stderr").read_text()
    )


@pytest.mark.covers("mcp.pins.first-use")
def test_on_first_use_what_is_seen_is_approved_and_written_and_nothing_after_it(tmp_path: Path) -> None:
    folder = PinnedFolder(tmp_path, 'trust = "first-use"')
    with stdio_session(tmp_path) as client:
        assert client.tools().keys() == {"box__send", "box__list"}
        assert folder.pinned["tools"].keys() == {"list", "send"}
        folder.offer(WIDENED, LIST, {**LIST, "name": "new"})
        client.wait_until(lambda: client.tools().keys() == {"box__list"})
        assert client.call("box__send") == client.call("box__new") == "TOOL_WITHHELD"
    text = folder.lock.read_text()
    with stdio_session(tmp_path) as client:
        client.call("box__list")
        assert client.tools().keys() == {"box__list"}
    assert folder.lock.read_text() == text


def test_on_first_use_a_lock_that_cannot_be_written_approves_nothing(tmp_path: Path) -> None:
    folder = PinnedFolder(tmp_path, 'trust = "first-use"')
    with stdio_session(tmp_path, "--log-dir", str(tmp_path / "logs")) as client:
        folder.lock.mkdir()
        assert client.tools() == {}
        assert client.call("box__send") == "TOOL_WITHHELD"
    assert "nothing of it is approved" in (tmp_path / "stderr").read_text()


def test_a_review_counts_while_portbook_serves_and_a_broken_lock_changes_nothing(tmp_path: Path) -> None:
    folder = PinnedFolder(tmp_path)
    assert run("pin", cwd=tmp_path).code == 0
    folder.offer(WIDENED, LIST)
    with stdio_session(tmp_path) as client:
        assert client.call("box__list") == "list ran"
        assert client.call("box__send") == "TOOL_WITHHELD"
        good = folder.lock.read_text()
        folder.lock.write_text("broken")
        said = tmp_path / "stderr"
        client.wait_until(lambda: "what was approved before stays approved" in said.read_text())
        assert (client.call("box__list"), client.call("box__send")) == ("list ran", "TOOL_WITHHELD")
        folder.lock.write_text(good)
        assert run("pin", cwd=tmp_path).code == 0
        client.wait_until(lambda: "box__send" in client.tools())
        assert client.call("box__send", {"cc": "x"}) == "send ran"


def test_a_lazy_server_is_listed_from_the_lock_and_not_started(tmp_path: Path) -> None:
    folder = PinnedFolder(tmp_path)
    assert run("pin", cwd=tmp_path).code == 0
    starts = folder.starts
    folder.offer({**SEND, "description": "canary"}, LIST)
    with stdio_session(tmp_path) as client:
        assert client.tools()["box__send"]["description"] == SEND["description"]
        assert folder.starts == starts
        assert client.call("box__send") == "send ran", "only its words have changed, which is accepted"
        assert folder.starts == starts + 1
        assert client.tools()["box__send"]["description"] == "canary"


@pytest.mark.covers("mcp.pins.record")
def test_the_record_of_a_refused_call_has_the_difference_and_the_answer_has_not(tmp_path: Path) -> None:
    folder = PinnedFolder(tmp_path, 'start = "eager"')
    assert run("pin", cwd=tmp_path).code == 0
    folder.offer({**WIDENED, "description": "canary"}, LIST)
    with http_server(cwd=tmp_path, tools=()) as server:
        body = json.dumps({"tool_id": "box.send", "session_id": "s", "args": {"cc": "x"}}).encode()
        response = server.request("/execute", body, content_type="application/json")
    assert response.status == 403
    told = response.json["error"]
    assert (told["code"], told["details"]["reason"]) == ("POLICY_VIOLATION", "TOOL_WITHHELD")
    assert (told["details"]["standing"], told["details"]["grades"]) == ("changed", "words, widened")
    assert b"canary" not in response.body
    assert b'"cc"' not in response.body
    record = executions(folder)[-1]
    assert (record["error_class"], record["tool_id"]) == ("TOOL_WITHHELD", "mcp.tool:box.send")
    difference = record["difference"]
    assert (difference["server"], difference["name"], difference["reaction"]) == ("box", "send", "ask")
    changes = {each["part"]: each for each in difference["changes"]}
    assert changes["inputSchema"]["instances"] == [{"cc": ""}]
    assert changes["description"]["approved"] != changes["description"]["observed"]
    assert "canary" not in json.dumps(record)


_ASK = """
[[policy.rules]]
name = "ask first"
action = "ask"
tools = ["box.*"]

[approvals]
wait_s = 0
"""


@pytest.mark.covers("mcp.pins.approvals")
@pytest.mark.parametrize("start", ["eager", "lazy"])
def test_an_approval_of_a_call_is_void_once_its_tool_has_changed(tmp_path: Path, start: str) -> None:
    folder = PinnedFolder(tmp_path, f'start = "{start}"', _ASK)
    assert run("pin", cwd=tmp_path).code == 0

    def call(client: Any, **meta: str) -> dict[str, Any]:
        named = {f"portbook/{name}": value for name, value in meta.items()}
        params = {"name": "box__send", "arguments": {}, "_meta": named}
        found: dict[str, Any] = client.request("tools/call", params)["result"]
        return found

    with stdio_session(tmp_path) as client:
        ticket = call(client)["_meta"]["portbook/refusal"]["approval_id"]
        assert run("approvals", "approve", ticket, cwd=tmp_path).code == 0
        folder.offer({**SEND, "description": "Sends it elsewhere."}, LIST)
        if start == "eager":
            client.wait_until(lambda: client.tools()["box__send"]["description"] == "Sends it elsewhere.")
        refused = call(client, approval_id=ticket)
        assert refused["isError"]

        def refusal() -> dict[str, Any]:
            found: dict[str, Any] = call(client, approval_id=ticket)["_meta"]["portbook/refusal"]
            assert found["reason"] == "APPROVAL_REFUSED"
            return found

        client.wait_until(lambda: refusal()["why"] == "tool")
    assert not (tmp_path / "calls").exists()


@pytest.mark.parametrize(
    ("approved", "observed", "effect"),
    [
        ({"readOnlyHint": True}, {"readOnlyHint": True}, "read"),
        ({"readOnlyHint": False}, {"readOnlyHint": True}, "destructive"),
        ({"readOnlyHint": True}, {"destructiveHint": False}, "write"),
    ],
)
def test_hints_that_are_not_approved_only_make_an_effect_stricter(
    tmp_path: Path, approved: Any, observed: Any, effect: str
) -> None:
    more = 'start = "eager"\non_change = { annotations = "accept", breaking = "accept" }'
    folder = PinnedFolder(tmp_path, more)
    folder.offer({**SEND, "annotations": approved})
    assert run("pin", cwd=tmp_path).code == 0
    folder.offer({**SEND, "annotations": observed})
    with stdio_session(tmp_path) as client:
        client.tools()
        client.call("box__send")
    assert executions(folder)[-1]["effect"] == effect


def test_a_tool_that_is_accepted_but_was_never_approved_is_destructive(tmp_path: Path) -> None:
    folder = PinnedFolder(tmp_path, 'start = "eager"\non_change = { added = "accept" }')
    folder.offer(LIST)
    assert run("pin", cwd=tmp_path).code == 0
    folder.offer(LIST, SEND)
    with stdio_session(tmp_path) as client:
        assert client.tools()["box__send"]["annotations"].get("readOnlyHint") is not True
        client.call("box__send")
    assert executions(folder)[-1]["effect"] == "destructive"


def test_a_withheld_prompt_has_the_reason_too(tmp_path: Path) -> None:
    folder = PinnedFolder(tmp_path, 'start = "eager"')
    folder.offer(prompts=[{"name": "hello"}, {"name": "bye"}])
    assert run("pin", cwd=tmp_path).code == 0
    folder.offer(prompts=[{"name": "hello", "arguments": [{"name": "canary"}]}, {"name": "bye"}])
    with stdio_session(tmp_path) as client:
        listed = client.request("prompts/list")["result"]["prompts"]
        assert [each["name"] for each in listed] == ["box__bye"]
        refused = client.request("prompts/get", {"name": "box__hello"})
        assert refused["error"]["data"]["reason"] == "TOOL_WITHHELD"
        assert b"canary" not in client.received


def test_a_breaking_change_of_one_server_takes_no_other_tool_down(tmp_path: Path) -> None:
    folder = PinnedFolder(tmp_path, 'start = "eager"')
    assert run("pin", cwd=tmp_path).code == 0
    folder.offer(BREAKING, LIST)
    with stdio_session(tmp_path) as client:
        assert client.tools().keys() == {"box__list"}
        assert client.call("box__list") == "list ran"
    assert "mcp.box: 1 definition is withheld; run `portbook review box`" in (tmp_path / "stderr").read_text()


def test_of_several_servers_only_those_that_are_named_are_served(tmp_path: Path) -> None:
    folder = PinnedFolder(tmp_path)
    text = folder.settings.read_text()
    folder.settings.write_text(text + text[text.index("[mcp.box]") :].replace("box", "bag"))
    assert run("pin", cwd=tmp_path).code == 0
    with stdio_session(tmp_path, "--server", "bag") as client:
        assert client.tools().keys() == {"bag__send", "bag__list"}
        assert client.call("box__send") == "UNKNOWN_TOOL"
    refused = run("serve", "--stdio", "--server", "bags", cwd=tmp_path)
    assert refused.code == 2
    assert "--server: there is no MCP server 'bags' in the settings; did you mean bag?" in refused.err
