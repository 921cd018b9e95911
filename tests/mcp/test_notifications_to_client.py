"""Messages that the server sends by itself: to whoever asked for them, and checked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from portbook.mcp.list_and_resource_changes import ChangeNotification
from portbook.mcp.notifications_to_client import META_SUBSCRIPTION, Notifications
from portbook.protocol.revisions_and_methods import REVISIONS
from portbook.tools.toolset import Changed
from support.every_revision import VALIDATOR, every_revision
from support.in_process_connection import EVERY_REVISION, Connection, params

PROGRESS = """
import asyncio, threading
from portbook import Context, Toolset
toolset = Toolset("progress")
@toolset.tool
def in_thread(context: Context, steps: int) -> int:
    for step in range(steps): context.progress(step, steps, "working")
    return steps
@toolset.tool(inline=True)
def inline(context: Context) -> str:
    context.progress(0.5)
    return "done"
@toolset.tool
async def later(context: Context) -> str:
    context.progress(1, 2)
    await asyncio.sleep(0)
    context.progress(2, 2)
    return "done"
"""


@pytest.mark.covers("001.mcp.progress")
@every_revision
def test_progress_is_told_to_who_asked_for_it(tmp_path: Path, revision: str) -> None:
    tools = tmp_path / "progress.py"
    tools.write_text(PROGRESS)
    connection = Connection(tools=tools).open(revision)
    for name, arguments, expected in (
        ("in_thread", {"steps": 3}, [0, 1, 2]),
        ("inline", {}, [0.5]),
        ("later", {}, [1, 2]),
    ):
        before = len(connection.client.notifications)
        given = params(revision, name=name, arguments=arguments, _meta={"progressToken": "t-1"})
        assert "result" in connection.request("tools/call", given)
        told = connection.client.notifications[before:]
        assert [message["params"]["progress"] for message in told] == expected
        for message in told:
            assert message["params"]["progressToken"] == "t-1"
            VALIDATOR.validate("notifications/progress", message, revision)
        connection.request("tools/call", params(revision, name=name, arguments=arguments))
        assert connection.client.notifications[before:] == told


def test_a_context_is_no_argument(tmp_path: Path) -> None:
    tools = tmp_path / "progress.py"
    tools.write_text(PROGRESS)
    connection = Connection(tools=tools).open("2025-11-25")
    listed = {tool["name"]: tool for tool in connection.request("tools/list")["result"]["tools"]}
    assert list(listed["in_thread"]["inputSchema"]["properties"]) == ["steps"]


class Counting:
    """A validator that lets everything pass, and remembers what it was shown."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def findings(self, message_type: str, message: object, revision: str) -> tuple[()]:
        self.seen.append((message_type, revision))
        return ()


def outgoing() -> tuple[Notifications, Counting]:
    validator = Counting()
    return Notifications(validator, "enforce", lambda _: None), validator  # type: ignore[arg-type]


@pytest.mark.parametrize("changed", [Changed("tool"), Changed("resource", "a://b")])
def test_a_notice_is_checked_once_in_each_revision_however_many_hear_of_it(changed: Changed) -> None:
    out, validator = outgoing()
    change = ChangeNotification(changed)
    newest = REVISIONS["2026-07-28"]
    for _ in range(100):
        for revision in EVERY_REVISION:
            change.message(out, REVISIONS[revision])
    plain = json.loads(change.message(out, newest))
    tags = [1, "1", 1.0, 2, "sub"]
    tagged = [change.message(out, newest, tag) for tag in tags * 2]
    assert [revision for _, revision in validator.seen] == list(EVERY_REVISION)
    assert [json.loads(each)["params"]["_meta"][META_SUBSCRIPTION] for each in tagged] == tags * 2
    assert tagged[2] != tagged[0]
    without = json.loads(tagged[0])
    del without["params"]["_meta"]
    assert without == {**plain, "params": plain.get("params", {})}


def test_a_notice_that_goes_to_subscriptions_alone_is_checked_too() -> None:
    out, validator = outgoing()
    change = ChangeNotification(Changed("tool"))
    for tag in range(10):
        change.message(out, REVISIONS["2026-07-28"], tag)
    assert validator.seen == [("notifications/tools/list_changed", "2026-07-28")]
