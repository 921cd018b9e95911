"""A tool asks its caller, the same way in both eras: on the connection, or in rounds."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from portbook.settings import load_settings
from support.in_process_connection import META
from support.mcp_answers import ALL, ANSWERS
from support.mcp_http_client import EVERYTHING, Client, capable, run, serving

# Tools that ask, and what they say in the end.
ASKING = {
    "elicitation": "Hello, Alice!",
    "sampling": "Paris",
    "list_roots": "file:///work",
    "request_state": "state-ok: accept",
    "multiple_inputs": "Paris Alice, 1 roots",
    "multi_round": "Alice likes blue",
}


async def answered_live(client: Client, tool: str) -> Any:
    """Call a tool and answer what it asks, on the connection."""
    exchange = client.ask("tools/call", {"name": tool, "arguments": {}})
    done: set[str] = set()
    while True:
        await exchange.until(lambda: exchange.is_over or bool(_open(exchange.messages, done)))
        for request in _open(exchange.messages, done):
            done.add(request["id"])
            assert (await client.reply(request, ANSWERS[request["method"]])).status == 202
        if exchange.is_over and not _open(exchange.messages, done):
            return exchange.messages[-1]["result"]


def _open(messages: list[Any], done: set[str]) -> list[Any]:
    return [m for m in messages if "method" in m and "id" in m and m["id"] not in done]


async def answered_in_rounds(client: Client, tool: str, **more: Any) -> Any:
    """Call a tool and answer what it asks, each time with the next request."""
    params: dict[str, Any] = {"name": tool, "arguments": {}, **capable(**ALL), **more}
    result = await client.result("tools/call", params)
    while result["resultType"] == "input_required":
        answers = {key: ANSWERS[request["method"]] for key, request in result["inputRequests"].items()}
        rounds = {"inputResponses": answers, "requestState": result["requestState"]}
        result = await client.result("tools/call", {**params, **rounds})
    return result


@pytest.mark.covers("design.ask.both-eras")
@pytest.mark.parametrize("tool", ASKING)
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_one_tool_asks_in_both_eras(tmp_path: Path, tool: str, revision: str) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open(revision, **ALL)
            ask = answered_in_rounds if revision == "2026-07-28" else answered_live
            result = await ask(client, f"test_input_required_result_{tool}")
            assert result["content"][0]["text"] == ASKING[tool]

    run(main())


def test_a_prompt_can_ask_too(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            params = {"name": "test_input_required_result_prompt", **capable(**ALL)}
            result = await client.result("prompts/get", params)
            assert result["resultType"] == "input_required"
            answers = {"user_context": {"action": "accept", "content": {"context": "spring"}}}
            result = await client.result("prompts/get", {**params, "inputResponses": answers})
            assert result["messages"][0]["content"]["text"] == "Use this context: spring"

    run(main())


@pytest.mark.covers("design.ask.capabilities")
@pytest.mark.parametrize("tool", ["elicitation", "sampling", "list_roots"])
def test_a_client_is_asked_nothing_that_it_did_not_say_it_can(tmp_path: Path, tool: str) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            name = f"test_input_required_result_{tool}"
            await client.open("2025-11-25")
            result = (await client.ask("tools/call", {"name": name}).ended()).messages
            assert len(result) == 1
            assert result[0]["result"]["isError"] is True
            client.session = None
            await client.open("2026-07-28")
            exchange = await client.ask("tools/call", {"name": name}).ended()
            assert (exchange.status, exchange.json["error"]["code"]) == (400, -32021)
            needed = {"elicitation": "elicitation", "sampling": "sampling", "list_roots": "roots"}[tool]
            assert exchange.json["error"]["data"]["requiredCapabilities"] == {needed: {}}

    run(main())


# -- logging


@pytest.mark.parametrize(("level", "count"), [("debug", 1), ("info", 1), ("warning", 0), (None, 0)])
def test_a_log_goes_to_whoever_asked_for_it_with_the_request(
    tmp_path: Path, level: str | None, count: int
) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            meta = {} if level is None else {"_meta": {META + "logLevel": level}}
            exchange = await client.ask("tools/call", {"name": "test_logging_tool", **meta}).ended()
            logs = [m for m in exchange.messages if m.get("method") == "notifications/message"]
            assert [log["params"]["data"] for log in logs] == ["Logged once"] * count

    run(main())


# -- approval where the client is

POLICY = """
[[policy.rules]]
name = "ask first"
action = "ask"
tools = ["test_trigger_tool_change"]
approver = "client"
"""

YES = {"action": "accept", "content": {"approve": True}}
NO = {"action": "accept", "content": {"approve": False}}


@contextlib.asynccontextmanager
async def governed(folder: Path, revision: str, tools: Path = EVERYTHING) -> AsyncIterator[Client]:
    config = folder / "portbook.toml"
    config.write_text(POLICY)
    async with serving(folder, tools, config=config) as client:
        await client.open(revision, elicitation={})
        yield client


CALL: dict[str, Any] = {"name": "test_trigger_tool_change", "arguments": {}}


async def asked_in_a_round(client: Client, call: dict[str, Any] = CALL) -> tuple[str, dict[str, Any]]:
    """Make a call that needs consent; return the name of the question, and what answers it with a yes."""
    asked = await client.result("tools/call", {**call, **capable(elicitation={})})
    [(name, question)] = asked["inputRequests"].items()
    assert f"Allow {call['name']}" in question["params"]["message"]
    answers = {"inputResponses": {name: YES}, "requestState": asked["requestState"]}
    return name, {**call, **capable(elicitation={}), **answers}


@pytest.mark.covers("design.approval.client")
@pytest.mark.parametrize("consent", [YES, NO, {"action": "decline"}])
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_person_behind_the_client_approves_where_policy_lets_them(
    tmp_path: Path, revision: str, consent: dict[str, Any]
) -> None:
    async def main() -> None:
        async with governed(tmp_path, revision) as client:
            if revision == "2026-07-28":
                name, again = await asked_in_a_round(client)
                result = await client.result("tools/call", {**again, "inputResponses": {name: consent}})
            else:
                exchange = client.ask("tools/call", CALL)
                await exchange.until(lambda: bool(exchange.messages))
                await client.reply(exchange.messages[0], consent)
                result = (await exchange.ended()).messages[-1]["result"]
            assert bool(result.get("isError")) == (consent != YES)
            record = client.sink.executions[-1]
            ticket = client.served.approvals.ticket(record["approval_id"])
            assert ticket is not None
            assert (ticket.decided_by, ticket.state) == ("client", "done" if consent == YES else "denied")
            assert record["decision"] == "ask"

    run(main())


def test_a_yes_that_nobody_was_asked_for_counts_for_nothing(tmp_path: Path) -> None:
    async def main() -> None:
        async with governed(tmp_path, "2026-07-28") as client:
            unasked = {"inputResponses": {"portbook_approval": YES}, **capable(elicitation={})}
            assert (await client.result("tools/call", {**CALL, **unasked}))["resultType"] == "input_required"
            # The name alone says that it was asked for; once it has run, nobody was asked about another run.
            _, again = await asked_in_a_round(client)
            del again["requestState"]
            assert (await client.result("tools/call", again))["resultType"] == "complete"
            assert (await client.result("tools/call", again))["resultType"] == "input_required"

    run(main())


def test_one_yes_is_good_for_one_run(tmp_path: Path) -> None:
    tools = tmp_path / "paying.py"
    tools.write_text(
        "from portbook import Context, Toolset\n"
        "toolset = Toolset('paying')\n"
        "ran = []\n"
        "@toolset.tool(effect='write')\n"
        "async def test_trigger_tool_change(context: Context) -> int:\n"
        "    await context.elicit('Sure?')\n"
        "    ran.append(1)\n"
        "    return len(ran)\n"
    )

    async def main() -> None:
        async with governed(tmp_path, "2026-07-28", tools) as client:
            _, again = await asked_in_a_round(client)
            asked = await client.result("tools/call", again)
            assert list(asked["inputRequests"]) == ["question_1"]
            last = {**again, "inputResponses": {"question_1": {"action": "accept", "content": {}}}}
            last["requestState"] = asked["requestState"]
            assert (await client.result("tools/call", last))["structuredContent"] == 1
            for replayed in (last, again):
                refused = await client.result("tools/call", replayed)
                assert refused["_meta"]["portbook/refusal"]["reason"] == "APPROVAL_REFUSED"
                assert refused["_meta"]["portbook/refusal"]["why"] == "used"

    run(main())


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_a_policy_that_changes_while_the_person_thinks_is_heeded(tmp_path: Path, revision: str) -> None:
    async def main() -> None:
        async with governed(tmp_path, revision) as client:
            config = tmp_path / "portbook.toml"
            deny = POLICY.replace('"ask"\n', '"deny"\n').replace('approver = "client"\n', "")
            if revision == "2026-07-28":
                _, again = await asked_in_a_round(client)
                config.write_text(deny)
                client.served.govern(load_settings(config, {}, {}, tmp_path))
                result = await client.result("tools/call", again)
            else:
                exchange = client.ask("tools/call", CALL)
                await exchange.until(lambda: bool(exchange.messages))
                config.write_text(deny)
                client.served.govern(load_settings(config, {}, {}, tmp_path))
                await client.reply(exchange.messages[0], YES)
                result = (await exchange.ended()).messages[-1]["result"]
            assert result["isError"] is True
            assert client.sink.records[-1]["error"]["executed"] is False

    run(main())


@pytest.mark.parametrize(
    ("declared", "is_asked"),
    [({}, True), ({"form": {}}, True), ({"form": {}, "url": {}}, True), ({"url": {}}, False)],
)
def test_a_client_that_opens_pages_alone_is_shown_no_form(
    tmp_path: Path, declared: dict[str, Any], is_asked: bool
) -> None:
    async def main() -> None:
        async with serving(tmp_path, EVERYTHING) as client:
            await client.open("2026-07-28")
            params = {"name": "test_input_required_result_elicitation", **capable(elicitation=declared)}
            exchange = await client.ask("tools/call", params).ended()
            if is_asked:
                assert exchange.json["result"]["resultType"] == "input_required"
            else:
                assert exchange.json["error"]["data"]["requiredCapabilities"] == {"elicitation": {"form": {}}}

    run(main())


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25"])
def test_a_client_that_cannot_be_asked_gets_the_operators_ticket(tmp_path: Path, revision: str) -> None:
    async def main() -> None:
        async with governed(tmp_path, revision) as client:
            if revision == "2025-11-25":  # which could be asked, if it heard anything before the answer
                client.accept = "application/json"
            result = await client.result("tools/call", CALL)
            assert result["_meta"]["portbook/refusal"]["reason"] == "APPROVAL_REQUIRED"

    run(main())


def test_a_client_that_cannot_ask_is_told_of_the_operators_approval(tmp_path: Path) -> None:
    config = tmp_path / "portbook.toml"
    config.write_text(POLICY)

    async def main() -> None:
        async with serving(tmp_path, EVERYTHING, config=config) as client:
            await client.open("2026-07-28")
            result = await client.result("tools/call", {"name": "test_trigger_tool_change"})
            refusal = result["_meta"]["portbook/refusal"]
            assert refusal["reason"] == "APPROVAL_REQUIRED"
            ticket = client.served.approvals.ticket(refusal["approval_id"])
            assert ticket is not None
            assert ticket.tool == "test_trigger_tool_change"

    run(main())
