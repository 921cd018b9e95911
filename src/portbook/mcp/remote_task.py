"""`RemoteTask`: a task that a different node runs, as the store has it.

What is said to it goes to that node, which alone decides. It is read again while it is watched.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, cast

from portbook.canonical import json_bytes
from portbook.errors import Ending, Failed, Finding, Reason, Refused
from portbook.mcp.task_board import Task
from portbook.model import JSON, JSONObject
from portbook.stores.task_rows import MAX_OUTLINE, StoredTask
from portbook.wire.jsonrpc import generic_error
from portbook.wire.parsing import parse

__all__ = ["RemoteTask", "TaskPost", "lost_task", "stored_text"]

# What a list does not show of a task.
_NOT_LISTED: Final = ("result", "error", "inputRequests")

_OVER: Final = ("completed", "failed", "cancelled")


class TaskPost(Protocol):
    """Reaches the nodes that run tasks."""

    def say(self, task: RemoteTask, what: JSONObject) -> None:
        """Tell the node that runs a task something of it."""
        ...

    def cancel(self, task: RemoteTask) -> None:
        """Cancel a task, for all nodes."""
        ...

    def watch(self, task: RemoteTask) -> Callable[[], None]:
        """Read a task again whenever it changes; return the function that stops that."""
        ...


class RemoteTask(Task):
    """A task of a different node."""

    def __init__(self, stored: StoredTask, post: TaskPost, now: Callable[[], str]) -> None:
        """See the task as it is stored; `post` reaches its node."""
        super().__init__(stored.id, stored.bound, now)
        self._post = post
        self._said: set[str] = set()
        self._show(stored)

    def _show(self, stored: StoredTask) -> None:
        self.stored = stored
        content = _content_of(stored)
        self._state = cast("JSONObject", content["state"])
        self.failure = _ending_of(content.get("failure"))
        self.made_at = str(self._state["createdAt"])
        self.changed_at = str(self._state["lastUpdatedAt"])

    def renew(self, stored: StoredTask) -> None:
        """Take over what its node has stored since."""
        is_more = self.stored.is_outline and not stored.is_outline
        if is_more or (stored.number, stored.is_over) != (self.stored.number, self.stored.is_over):
            self._show(stored)
            for watcher in tuple(self._watchers):
                watcher()

    @property
    def is_over(self) -> bool:
        """Return whether it has ended."""
        return self._state["status"] in _OVER

    @property
    def is_waiting(self) -> bool:
        """Return whether it waits for its caller's answers."""
        return bool(self.questions())

    def state(self) -> JSONObject:
        """Return its state, as its caller sees it."""
        return self._state

    def ending(self) -> tuple[str, JSONObject, Ending | None]:
        """Return its status, what it ended with, and why it failed."""
        ending = {name: self._state[name] for name in ("result", "error") if name in self._state}
        return str(self._state["status"]), ending, self.failure

    def questions(self) -> dict[str, JSONObject]:
        """Return what it asks and nobody has answered here."""
        asked = cast("dict[str, JSONObject]", self._state.get("inputRequests") or {})
        return {key: request for key, request in asked.items() if key not in self._said}

    def answer(self, answers: JSONObject) -> None:
        """Hand answers to its node, which ignores those that are no use."""
        asked = self.questions()
        told: JSONObject = {key: answer for key, answer in answers.items() if key in asked}
        if told:
            self._said.update(told)
            self._post.say(self, {"answers": told})

    def refuse(self, key: str, failure: Failed) -> None:
        """End a question without an answer."""
        self._said.add(key)
        self._post.say(self, {"refused": key, "why": str(failure.details.get("why", ""))})

    def cancel(self) -> None:
        """Cancel it, if it has not ended."""
        if not self.is_over:
            self._state = {
                **{name: value for name, value in self._state.items() if name != "inputRequests"},
                "status": "cancelled",
            }
            self._post.cancel(self)

    def watch(self, watcher: Callable[[], None]) -> Callable[[], None]:
        """Call `watcher` after every change; return the function that stops it."""
        forget, stop = super().watch(watcher), self._post.watch(self)

        def end() -> None:
            forget()
            stop()

        return end


def stored_text(state: JSONObject, failure: Ending | None) -> str:
    """Return the state of a task, and why it has failed, as the store has it.

    Before one that is large stands a line without what it ended with or asks: lists read no more of it.
    """
    content: JSONObject = {"state": state}
    if failure is not None:
        content["failure"] = {
            "reason": failure.reason.value,
            "is_refused": isinstance(failure, Refused),
            "findings": cast("JSON", [list(finding) for finding in failure.findings]),
            "details": cast("JSON", dict(failure.details)),
            "happened": failure.happened,
            "is_retryable": failure.is_retryable,
        }
    whole = json_bytes(content).decode()
    if len(whole) < MAX_OUTLINE:
        return whole
    outline: JSONObject = {name: value for name, value in state.items() if name not in _NOT_LISTED}
    line = json_bytes({"state": outline}).decode()
    if len(line) >= MAX_OUTLINE:
        outline.pop("statusMessage", None)
        line = json_bytes({"state": outline}).decode()
    return f"{line}\n{whole}"


def _content_of(stored: StoredTask) -> JSONObject:
    return cast("JSONObject", parse(stored.state.rpartition("\n")[2].encode()))


def _ending_of(stored: JSON) -> Ending | None:
    if not isinstance(stored, dict):
        return None
    kind = Refused if stored["is_refused"] else Failed
    findings = tuple(Finding(*cast("list[str]", each)) for each in cast("list[JSON]", stored["findings"]))
    return kind(
        Reason(str(stored["reason"])),
        findings,
        details=cast("JSONObject", stored["details"]),
        happened=cast("str | None", stored["happened"]),
        is_retryable=cast("bool", stored["is_retryable"]),
    )


def lost_task(stored: StoredTask, now: str) -> StoredTask:
    """Return how a task has ended whose node is gone: nobody knows its outcome."""
    lost = Failed(Reason.OUTCOME_UNKNOWN)
    content = _content_of(stored)
    state = cast("JSONObject", content["state"])
    kept = {name: value for name, value in state.items() if name not in ("inputRequests", "statusMessage")}
    ended: JSONObject = {
        **kept,
        "status": "failed",
        "lastUpdatedAt": now,
        "error": cast("JSON", generic_error(lost)),
    }
    return stored._replace(number=stored.number + 1, is_over=True, state=stored_text(ended, lost))
