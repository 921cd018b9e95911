"""The names of a tool through the doors: listed for model APIs, canonical for all that governs a call."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from portbook.testing import TestClient
from support.in_process_connection import META, STATELESS_META, handshake
from support.mcp_peer import small_server, table
from support.portbook_process import (
    PORTBOOK,
    Finished,
    HttpServer,
    environment,
    http_server,
    invoke,
    records,
    run,
)

# What model APIs accept: one other name in a list, and clients refuse the whole list.
PORTABLE = re.compile(r"[a-zA-Z0-9_-]{1,64}")

TOOLS = """
from portbook import Context, Toolset

toolset = Toolset("names")

@toolset.tool(name="orders.get_order", effect="read", inline=True)
def get_order(order_id: str) -> str:
    return order_id

@toolset.tool(name="orders0", effect="read", inline=True)
def orders0(order_id: str) -> str:
    return order_id

@toolset.tool(effect="read", inline=True)
def createIssue(order_id: str) -> str:
    return order_id

@toolset.tool(name="Issues.create-issue", effect="read", inline=True)
def create(order_id: str) -> str:
    return order_id

@toolset.tool(name="orders.confirm", effect="read")
async def confirm(context: Context, order_id: str) -> str:
    answer = await context.elicit("Is it right?", bool)
    return f"{order_id} {answer.content}"

@toolset.tool(name="orders.slow", effect="read", task="required")
async def slow(context: Context, order_id: str) -> str:
    answer = await context.elicit("Is it right?", bool)
    return f"{order_id} {answer.content}"

@toolset.prompt(name="orders.greet")
def greet() -> str:
    return "hello"
"""

# Canonical, and what clients may call it by; the first is the listed one.
NAMES = {
    "createissue_7sqobj1ih5": ("createIssue", "createissue_7sqobj1ih5"),
    "issues.create_issue_ac6c6hap7x": (
        "Issues__create-issue",
        "Issues.create-issue",
        "issues.create_issue_ac6c6hap7x",
    ),
    "orders.get_order": ("orders__get_order", "orders.get_order"),
    "orders0": ("orders0",),
}
CONFIRM = ("orders__confirm", "orders.confirm")
EACH_NAME = [(canonical, name) for canonical, names in NAMES.items() for name in names]
BOTH_WAYS = pytest.mark.parametrize(("first", "then"), [CONFIRM, CONFIRM[::-1]])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "portbook.toml").write_text("[docs]\nenabled = false\n[ids]\ndeterministic = true\n")
    return tmp_path


def frame(method: str, **params: Any) -> bytes:
    params["_meta"] = {**STATELESS_META, **params.get("_meta", {})}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()


def over_stdio(folder: Path, *frames: bytes) -> Finished:
    return run("serve", "--stdio", "tools.py", stdin=b"".join(each + b"\n" for each in frames), cwd=folder)


def names_in(answer: Any, member: str = "tools") -> list[str]:
    return [each["name"] for each in answer["result"][member]]


def posted(server: HttpServer, name: str, header: str | None = None, **given: Any) -> Any:
    """The answer to a call over HTTP; the header names the tool as the body does, unless told otherwise."""
    body = frame("tools/call", name=name, arguments={"order_id": "o-1"}, **given)
    headers = {
        "content_type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp_protocol_version": "2026-07-28",
        "mcp_method": "tools/call",
        "mcp_name": header or name,
    }
    response = server.request("/mcp", body, **headers)
    text = response.body.decode()
    if response.headers["content-type"].startswith("text/event-stream"):
        text = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")][-1]
    return json.loads(text)


@pytest.mark.covers("design.names.listed")
def test_every_listed_name_is_one_that_model_apis_accept_in_canonical_order(folder: Path) -> None:
    opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": handshake("2025-06-18")}
    older = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).encode()
    finished = over_stdio(folder, frame("tools/list"), json.dumps(opening).encode(), older)
    assert finished.code == 0, finished.err
    by_id = {answer["id"]: answer for answer in finished.answers}
    for answer in (by_id[1], by_id[2]):
        listed = names_in(answer)
        assert all(PORTABLE.fullmatch(name) for name in listed)
        # As the canonical names are ordered, where orders.slow comes before orders0.
        assert listed == [
            *("createIssue", "Issues__create-issue", "orders__confirm"),
            *("orders__get_order", "orders__slow", "orders0"),
        ]


def test_prompts_keep_their_names(folder: Path) -> None:
    listed, got = over_stdio(folder, frame("prompts/list"), frame("prompts/get", name="orders.greet")).answers
    assert names_in(listed, "prompts") == ["orders.greet"]
    assert "messages" in got["result"]


@pytest.mark.covers("design.names.called")
def test_a_tool_is_called_by_each_of_its_names_and_recorded_under_the_canonical_one(folder: Path) -> None:
    calls = [frame("tools/call", name=name, arguments={"order_id": "o-1"}) for _, name in EACH_NAME]
    finished = over_stdio(folder, *calls)
    texts = [answer["result"]["content"][0]["text"] for answer in finished.answers]
    assert texts == ["o-1"] * len(EACH_NAME)
    written = records(folder / "runs")
    assert [each["metadata"]["toolId"] for each in written] == [f"mcp.tool:{name}" for name, _ in EACH_NAME]
    # The same call is the same call by whichever name: its deterministic ids say so.
    traces = {(each["metadata"]["toolId"], each["traceId"]) for each in written}
    assert len(traces) == len(NAMES)


@pytest.mark.parametrize(
    "name", ["create_issue", "createissue", "CREATEISSUE", "orders_get_order", "Orders0"]
)
def test_no_other_spelling_is_a_name(folder: Path, name: str) -> None:
    [answer] = over_stdio(folder, frame("tools/call", name=name, arguments={"order_id": "o-1"})).answers
    assert (answer["error"]["code"], answer["error"]["message"]) == (-32602, "Unknown tool")


def test_the_other_contracts_keep_the_canonical_name(folder: Path) -> None:
    known, unknown = over_stdio(
        folder,
        invoke("orders.get_order", {"order_id": "o-1"}),
        invoke("orders__get_order", {"order_id": "o-1"}),
    ).answers
    assert known["result"] == "o-1"
    assert unknown["error"]["data"]["canonical_code"] == "NOT_FOUND"
    with http_server(cwd=folder, tools=("tools.py",)) as server:
        listed = server.request("/tools").json["tools"]
    assert [each["name"] for each in listed][:3] == [*sorted(NAMES)[:2], "orders.confirm"]


@pytest.mark.covers("design.names.rounds")
def test_a_round_begun_under_one_name_ends_under_the_other_and_headers_equal_the_body(folder: Path) -> None:
    able = {"_meta": {META + "clientCapabilities": {"elicitation": {}}}}
    with http_server(cwd=folder, tools=("tools.py",)) as server:
        for first, then in (CONFIRM, CONFIRM[::-1]):
            asked = posted(server, first, **able)["result"]
            [question] = asked["inputRequests"]
            answers = {question: {"action": "accept", "content": {"value": True}}}
            given = {**able, "inputResponses": answers, "requestState": asked["requestState"]}
            # The header repeats the body, letter for letter: proxies know nothing of our names.
            assert posted(server, then, first, **given)["error"]["code"] == -32020
            assert posted(server, then, **given)["result"]["content"][0]["text"] == "o-1 True"
            assert posted(server, "orders0", **given)["error"]["code"] == -32602


@BOTH_WAYS
def test_a_task_begins_under_either_name(folder: Path, first: str, then: str) -> None:
    able = {META + "clientCapabilities": {"elicitation": {}, "extensions": {META + "tasks": {}}}}
    name = first.replace("confirm", "slow")
    [answer] = over_stdio(
        folder, frame("tools/call", name=name, arguments={"order_id": "o-1"}, _meta=able)
    ).answers
    assert answer["result"]["resultType"] == "task"


@BOTH_WAYS
def test_an_approval_asked_for_under_one_name_is_redeemed_under_the_other(
    folder: Path, first: str, then: str
) -> None:
    first, then = (each.replace("confirm", "get_order") for each in (first, then))
    rule = {"name": "orders", "tools": ["orders.*"], "action": "ask"}
    with TestClient(folder / "tools.py", policy={"rules": [rule]}) as client:
        assert client.call(first, order_id="o-1").approval_id is not None
        assert client.approve(then).tool == "orders.get_order"
        assert client.call(then, order_id="o-1").value == "o-1"


@pytest.mark.covers("design.names.collision")
@pytest.mark.parametrize(
    ("names", "listed"),
    [
        pytest.param(("a.b", "a__b"), "a__b", id="dot and underscores"),
        pytest.param(("A.b", "A__b"), "A__b", id="author's names"),
    ],
)
def test_two_tools_under_one_name_stop_the_start_unless_canonical_names_are_listed(
    folder: Path, names: tuple[str, str], listed: str
) -> None:
    declared = "".join(f"@toolset.tool(name={name!r})\ndef f{at}(): ...\n" for at, name in enumerate(names))
    (folder / "tools.py").write_text(f"from portbook import Toolset\ntoolset = Toolset('t')\n{declared}")
    finished = over_stdio(folder, frame("tools/list"))
    assert finished.code == 2
    assert f"tools {names[0]!r} and {names[1]!r} would both be {listed!r} for MCP clients" in finished.err
    if listed == listed.lower():
        with (folder / "portbook.toml").open("a") as settings:
            settings.write('[server]\ntool_names = "canonical"\n')
        assert names_in(*over_stdio(folder, frame("tools/list")).answers) == [*names]


@pytest.mark.covers("design.names.canonical")
def test_the_setting_keeps_canonical_names_in_the_list(folder: Path) -> None:
    with (folder / "portbook.toml").open("a") as settings:
        settings.write('[server]\ntool_names = "canonical"\n')
    calls = [
        frame("tools/call", name=name, arguments={"order_id": "o-1"})
        for name in ("orders.get_order", "createIssue")
    ]
    listed, *called = over_stdio(folder, frame("tools/list"), *calls).answers
    assert names_in(listed) == sorted([*NAMES, "orders.confirm", "orders.slow"])
    assert ["result" in each for each in called] == [True, True]


@pytest.mark.covers("design.names.shown")
def test_portbook_tools_shows_the_listed_name_beside_the_canonical_one(folder: Path) -> None:
    tools = {each["name"]: each for each in json.loads(run("tools", "tools.py", cwd=folder).out)["tools"]}
    assert {name: tools[name]["listed"] for name in NAMES} == {
        name: names[0] for name, names in NAMES.items()
    }
    assert tools["issues.create_issue_ac6c6hap7x"]["declared"] == "Issues.create-issue"
    controller, terminal = os.openpty()
    subprocess.run(
        [*PORTBOOK, "tools", "tools.py"],
        stdout=terminal,
        cwd=folder,
        env=environment(NO_COLOR="1"),
        check=True,
    )
    os.close(terminal)
    shown = os.read(controller, 65536).decode()
    os.close(controller)
    assert "orders.get_order (orders__get_order) " in shown
    assert "orders0 " in shown
    assert "(orders0)" not in shown


def test_policy_and_keys_match_the_canonical_name(folder: Path) -> None:
    rule = {"name": "no issues", "tools": ["createissue_*"], "action": "deny"}
    with TestClient(folder / "tools.py", policy={"rules": [rule]}, callers={"ada": ["orders.*"]}) as client:
        assert "createIssue" not in client.as_caller("ada").tools()
        assert client.as_caller("ada").call("orders__get_order", order_id="o-1").value == "o-1"
    with TestClient(folder / "tools.py", policy={"rules": [rule]}) as client:
        assert client.call("createIssue", order_id="o-1").reason == "POLICY_VIOLATION"


@pytest.mark.covers("design.names.commands")
def test_call_and_explain_take_every_name_that_a_listing_shows(folder: Path) -> None:
    given = ("--toolset", "tools.py", "order_id=o-1")
    tools = json.loads(run("tools", "tools.py", cwd=folder).out)["tools"]
    for tool in (each for each in tools if each["name"] in NAMES):
        for name in {tool["name"], tool["listed"], tool["declared"], tool["tool"]}:
            called = run("call", name, *given, cwd=folder)
            assert (called.code, json.loads(called.out)) == (0, "o-1"), (name, called.err)
            explained = json.loads(run("explain", name, *given, cwd=folder).out)
            assert explained["tool"] == tool["tool"], name


def test_call_takes_the_names_of_tools_of_mcp_servers(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text(table("box", small_server()))
    listed = json.loads(run("tools", cwd=tmp_path).out)["tools"]
    for name in ("box__echo", "box.echo"):
        called = run("call", name, "text=hello", cwd=tmp_path)
        assert (called.code, b"hello" in called.out) == (0, True), (name, called.err, listed)


def test_names_in_the_http_table_may_have_capitals_and_hyphens(folder: Path) -> None:
    (folder / "portbook.toml").write_text(
        '[docs]\nenabled = false\n[http.Git-Hub]\nbase_url = "https://api.example.com"\n'
        '[http.Git-Hub.tools.createIssue]\nmethod = "POST"\npath = "/issues"\n'
    )
    [tool] = [
        each
        for each in json.loads(run("tools", "tools.py", cwd=folder).out)["tools"]
        if each["declared"] == "Git-Hub.createIssue"
    ]
    assert tool["listed"] == "Git-Hub__createIssue"
    assert re.fullmatch(r"git_hub\.createissue_[0-9a-z]{10}", tool["name"])
