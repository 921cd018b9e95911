"""`TestClient`, as a test of a user's uses it."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from contextvars import ContextVar
from datetime import date
from pathlib import Path

import pytest

from portbook import NotJSON, Toolset
from portbook.testing import LogMessage, NoResult, Progress, TestClient, Violation
from support.mcp_tasks import KNOWS
from support.shop_toolset import LARGE_REFUNDS, toolset


def test_a_call_has_the_value_that_the_tool_returned() -> None:
    with TestClient(toolset) as client:
        result = client.call("refund", order=5, cents=100)
        assert result.is_ok
        assert result.value == {"refunded": 100}
        assert (result.reason, result.message, result.violations, result.details) == (None, "", [], {})
        assert result.executed
        assert result.record == client.records[-1]
        assert (result.record["status"], result.execution["caller"]) == ("ok", "anonymous")
        assert [intent["tool_id"] for intent in client.intents] == ["mcp.tool:refund"]


def test_arguments_can_be_a_mapping_too() -> None:
    with TestClient(toolset) as client:
        assert client.call("refund", {"order": 5}, cents=100).value == {"refunded": 100}


def test_wrong_arguments_are_refused_with_their_places_and_the_tool_never_runs() -> None:
    with TestClient(toolset) as client:
        result = client.call("refund", order="five")
        assert not result.is_ok
        assert result.reason == "BAD_ARGUMENTS"
        assert result.violations == [
            Violation("", 'missing property "cents"'),
            Violation("/order", "expected integer"),
        ]
        assert not result.executed


def test_a_large_refund_runs_once_the_test_has_approved_it() -> None:
    with TestClient(toolset, policy=LARGE_REFUNDS) as client:
        result = client.call("refund", order=5, cents=20_000)
        assert result.reason == "APPROVAL_REQUIRED"
        assert (result.decision, result.rule) == ("ask", "large refunds need a person")
        assert not result.executed
        client.approve(result, reason="called the customer")
        again = client.call("refund", order=5, cents=20_000)
        assert again.value == {"refunded": 20_000}
        assert again.approval_id == result.approval_id
        assert client.call("refund", order=5, cents=20_000).reason == "APPROVAL_REQUIRED"


def test_what_policy_denies_never_runs_and_names_its_rule() -> None:
    with TestClient(toolset, policy=LARGE_REFUNDS) as client:
        result = client.call("wipe")
        assert (result.reason, result.decision, result.rule) == (
            "POLICY_VIOLATION",
            "deny",
            "nothing destructive",
        )
        assert not result.executed
        assert client.intents == []


def test_secrets_are_taken_out_of_results() -> None:
    with TestClient(toolset) as client:
        result = client.call("account")
        assert result.is_redacted
        assert result.value == {"password": "[redacted]", "name": "Ada"}


def test_a_resource_is_read_and_a_prompt_is_got() -> None:
    with TestClient(toolset) as client:
        assert client.read("shop://3").text == "shelf 3"
        assert client.read("shop://3").value == [{"uri": "shop://3", "text": "shelf 3"}]
        assert client.read("nowhere://3").reason == "UNKNOWN_RESOURCE"
        [message] = client.prompt("greeting", name="Ada").value
        assert message == {"role": "user", "content": {"type": "text", "text": "Greet Ada."}}
        assert client.prompt("greeting", {"name": "Ada"}).text == "Greet Ada."
        assert client.prompt("nothing").reason == "UNKNOWN_PROMPT"


def test_lists_are_what_the_caller_sees() -> None:
    with TestClient(toolset, callers={"clerk": ["refund", "ord*"], "boss": "*"}) as client:
        clerk = client.as_caller("clerk")
        assert [*clerk.tools()] == ["orders", "refund"]
        assert clerk.tools()["refund"]["description"] == "Give money back."
        assert {*client.as_caller("boss").tools()} == {*client.tools()}
        assert [*client.resources()] == ["shop://{shelf}"]
        assert [*client.prompts()] == ["greeting"]


def test_more_tools_than_a_page_has_are_all_listed() -> None:
    many = Toolset("many")
    for number in range(250):
        many.tool(name=f"tool{number:03}", effect="read")(lambda: None)
    with TestClient(many) as client:
        assert len(client.tools()) == 250


def test_who_may_not_list_is_told_so() -> None:
    with (
        TestClient(toolset, callers=["ada"]).with_key("wrong") as client,
        pytest.raises(NoResult, match="UNAUTHORIZED"),
    ):
        client.tools()


def script(client: TestClient) -> bytes:
    """A day's work: many ways in which a call can leave its mark."""
    client.call("refund", order=5, cents=20_000)
    client.approve("refund")
    client.call("refund", order=5, cents=20_000)
    client.call("refund", order="five")
    client.clock.advance(1.5)
    client.as_caller("ada").call("account")
    client.call("broken")
    client.call("fit")
    client.in_revision("2025-11-25").call("fit")
    client.with_meta({"capture_provenance": True}).call("orders", customer="password=hunter2hunter2")
    client.read("shop://3")
    client.send(b"{")
    approvals = repr(client.approvals()).encode()
    return client.record_bytes + repr(client.executions).encode() + repr(client.intents).encode() + approvals


@pytest.mark.parametrize("mode", ["replace", "hash"])
def test_two_runs_leave_the_same_bytes(mode: str) -> None:
    def run() -> bytes:
        with TestClient(
            toolset,
            policy=LARGE_REFUNDS,
            settings={"redaction": {"mode": mode}, "audit": {"arguments": True}},
            callers=["ada"],
            answers={"size": "L"},
        ) as client:
            return script(client)

    first = run()
    assert first == run()
    assert first.count(b"\n") == 12
    assert b"hunter2" not in first
    assert b'"ts":"2026-01-01T00:00:01.500Z"' in first


def test_ids_of_tasks_are_the_same_in_every_run() -> None:
    later = Toolset("later")

    @later.tool(effect="read", task="required")
    async def slow() -> int:
        await asyncio.Event().wait()  # a tool that never waits is answered at once, without a task
        return 5

    def run() -> str:
        with TestClient(later) as client:
            made = client.request("tools/call", {"name": "slow", "arguments": {}, **KNOWS})
            return made["result"]["taskId"]

    assert run() == run()


def test_a_client_leaves_no_file_and_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = {*threading.enumerate()}
    with TestClient(toolset, policy=LARGE_REFUNDS) as client:
        client.call("count")  # inline
        assert {*threading.enumerate()} - before == set()
        client.call("refund", order=5, cents=20_000)
        client.approve()
        client.call("refund", order=5, cents=20_000)
        started = {*threading.enumerate()} - before
    for thread in started:
        thread.join(10)
    assert not any(thread.is_alive() for thread in started)
    assert [*tmp_path.iterdir()] == []


def test_clients_side_by_side_share_nothing() -> None:
    with TestClient(toolset) as one, TestClient(toolset) as two:
        one.call("stock")
        one.clock.advance(5)
        assert two.records == []
        assert two.clock.now() == "2026-01-01T00:00:00.000Z"
        assert two.call("stock").value == 7
    assert toolset._watchers == []


def test_a_closed_client_says_so() -> None:
    client = TestClient(toolset)
    view = client.in_revision("2025-11-25")
    client.close()
    client.close()
    for each in (client, view):
        with pytest.raises(RuntimeError, match="client is closed"):
            each.call("stock")


def test_inside_a_running_loop_it_points_to_the_asynchronous_client() -> None:
    with TestClient(toolset) as client:

        async def main() -> None:
            client.call("stock")

        with pytest.raises(RuntimeError, match="use AsyncTestClient"):
            asyncio.run(main())


def test_the_loop_of_the_thread_is_left_alone() -> None:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        with TestClient(toolset) as client:
            client.call("stock")
        assert asyncio.get_event_loop() is loop
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_an_argument_that_is_not_json_is_named_with_its_type() -> None:
    with TestClient(toolset) as client:
        with pytest.raises(NotJSON, match=r"^argument /customer: JSON cannot hold this datetime\.date;"):
            client.call("orders", customer=date(2026, 1, 1))
        assert client.records == []


def test_a_call_sees_the_context_variables_of_its_caller() -> None:
    language = ContextVar("language", default="en")
    speaking = Toolset("speaking")

    @speaking.tool(effect="read", inline=True)
    def inline() -> str:
        return language.get()

    @speaking.tool(effect="read")
    def in_a_thread() -> str:
        return language.get()

    with TestClient(speaking) as client:
        for chosen in ("en", "de", "fr"):
            token = language.set(chosen)
            assert client.call("inline").value == chosen
            assert client.call("in_a_thread").value == chosen
            language.reset(token)


def test_a_client_that_is_not_closed_says_so_by_its_name() -> None:
    client = TestClient(toolset)
    view = client.with_meta({"portbook/attempt": 2})
    assert view.call("stock").value == 7
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        del client
        gc.collect()
        assert caught == []  # a view is left, which can close it
        del view
        gc.collect()
    assert [(each.category, str(each.message)) for each in caught] == [
        (ResourceWarning, "unclosed TestClient; use it in `with`, or call close()")
    ]


def test_the_loop_is_closed_even_where_closing_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    client = TestClient(toolset)
    client.call("stock")
    loop = client._world.runner.get_loop()
    close = client._world.app.sink.close

    def fail() -> None:
        close()
        raise OSError("the disk is full")

    monkeypatch.setattr(client._world.app.sink, "close", fail)
    with pytest.raises(OSError, match="the disk is full"):
        client.close()
    assert loop.is_closed()


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
def test_every_revision_tells_the_same(revision: str) -> None:
    with TestClient(toolset, policy=LARGE_REFUNDS, revision=revision) as client:
        assert client.call("stock").progress == [Progress(1, 2, "half of the shelves")]
        assert client.call("stock").logs == [
            LogMessage("debug", {"shelf": 1}, "shelves"),
            LogMessage("warning", "a shelf is empty"),
        ]
        assert client.call("refund", order=5, cents=20_000).reason == "APPROVAL_REQUIRED"
        assert client.call("refund", order=5).violations == [Violation("", 'missing property "cents"')]
        assert client.call("nothing").reason == "UNKNOWN_TOOL"
        assert client.call("wipe").rule == "nothing destructive"
        assert client.records[-1]["metadata"]["schemaVersion"] == revision
        if revision >= "2025-06-18":
            assert client.call("refund", order=5, cents=1).value == {"refunded": 1}
            assert client.call("orders", customer="Ada").value == [3, 5]


def test_a_client_can_be_used_without_with() -> None:
    client = TestClient(toolset)
    assert client.call("stock").value == 7
    client.close()
