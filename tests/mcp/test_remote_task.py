"""Tasks of other nodes: what the store has of them is what their client would see there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from portbook.errors import Ending, Failed, Finding, Reason, Refused
from portbook.mcp.shared_tasks import RemoteTask, lost_task, stored_text
from portbook.model import JSONObject
from portbook.stores.task_rows import StoredTask

NOW = "2026-01-01T00:00:00.000Z"
STATE: JSONObject = {"taskId": "t", "status": "working", "createdAt": NOW, "lastUpdatedAt": NOW}
ASKING: JSONObject = {**STATE, "status": "input_required", "inputRequests": {"a": {"method": "x"}, "b": {}}}


class Post:
    """Remembers what is said to tasks."""

    def __init__(self) -> None:
        self.said: list[JSONObject] = []
        self.cancelled: list[str] = []

    def say(self, task: RemoteTask, what: JSONObject) -> None:
        self.said.append(what)

    def cancel(self, task: RemoteTask) -> None:
        self.cancelled.append(task.id)

    def watch(self, task: RemoteTask) -> Callable[[], None]:
        return lambda: None


def remote(state: JSONObject, failure: Ending | None = None, **more: Any) -> tuple[RemoteTask, Post]:
    stored = StoredTask("t", "caller", "node", 1, False, stored_text(state, failure))._replace(**more)
    post = Post()
    return RemoteTask(stored, post, lambda: NOW), post


@pytest.mark.parametrize(
    "failure",
    [
        Failed(Reason.UPSTREAM_ERROR, details={"upstream_code": -1}, happened="it broke", is_retryable=False),
        Refused(Reason.BAD_ARGUMENTS, (Finding("/a", "must be a number", "type", "/properties/a"),)),
    ],
    ids=["failed", "refused"],
)
def test_a_failure_is_the_same_at_every_node(failure: Ending) -> None:
    task, _ = remote({**STATE, "status": "failed"}, failure)
    found = task.failure
    assert type(found) is type(failure)
    assert found is not None
    assert (found.reason, found.findings, found.sentence, found.is_retryable) == (
        failure.reason,
        failure.findings,
        failure.sentence,
        failure.is_retryable,
    )
    assert dict(found.details) == dict(failure.details)


def test_a_question_is_answered_once_from_here() -> None:
    task, post = remote(ASKING)
    assert task.is_waiting
    task.answer({"a": {"content": 1}, "unasked": {}})
    assert list(task.questions()) == ["b"]
    task.answer({"a": {"content": 2}})
    task.refuse("b", Failed(Reason.NO_ANSWER, details={"why": "no"}))
    assert not task.is_waiting
    assert post.said == [{"answers": {"a": {"content": 1}}}, {"refused": "b", "why": "no"}]


def test_it_is_cancelled_unless_it_has_ended() -> None:
    task, post = remote(ASKING)
    task.cancel()
    assert task.state()["status"] == "cancelled"
    assert "inputRequests" not in task.state()
    task.cancel()
    ended, unasked = remote({**STATE, "status": "completed"})
    ended.cancel()
    assert (post.cancelled, unasked.cancelled) == (["t"], [])


def test_watchers_hear_of_what_its_node_has_stored_since() -> None:
    task, _ = remote(STATE)
    heard: list[object] = []
    stop = task.watch(lambda: heard.append(task.state()["status"]))
    task.renew(task.stored)
    task.renew(task.stored._replace(number=2, state=stored_text(ASKING, None)))
    stop()
    task.renew(task.stored._replace(number=3, state=stored_text(STATE, None)))
    assert heard == ["input_required"]


def test_a_task_whose_node_is_gone_has_failed_without_a_known_outcome() -> None:
    stored = StoredTask("t", "caller", "node", 4, False, stored_text(ASKING, None))
    task = RemoteTask(lost_task(stored, "2026-01-02T00:00:00.000Z"), Post(), lambda: NOW)
    assert task.is_over
    assert task.failure is not None
    assert task.failure.reason is Reason.OUTCOME_UNKNOWN
    state: Any = task.state()
    assert (state["status"], state["error"]["data"]["reason"]) == ("failed", "OUTCOME_UNKNOWN")
    assert state["lastUpdatedAt"] == "2026-01-02T00:00:00.000Z"
    assert "inputRequests" not in state
