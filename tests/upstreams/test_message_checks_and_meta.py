"""Answers of servers by the official schema: enforced, or warned of."""

from __future__ import annotations

import pytest

from portbook.upstreams.message_checks_and_meta import AnswerChecks, BadAnswer
from support.fake_upstream import text, validator

WRONG = {"jsonrpc": "2.0", "id": 1, "result": {"content": [{"type": "text"}]}}


def test_a_violation_has_its_pointer_and_no_value() -> None:
    checks = AnswerChecks(validator(), is_enforced=True, warn=lambda _: None)
    with pytest.raises(BadAnswer) as caught:
        checks.result_in(WRONG, "tools/call", "2025-11-25")
    assert caught.value.findings[0].pointer.startswith("/content")


def test_where_it_is_only_warned_of_the_result_is_used() -> None:
    warned: list[str] = []
    checks = AnswerChecks(validator(), is_enforced=False, warn=warned.append)
    assert checks.result_in(WRONG, "tools/call", "2025-11-25") == WRONG["result"]
    assert "breaks 2025-11-25" in warned[0]


@pytest.mark.parametrize(
    ("result", "is_right"),
    [
        ({"resultType": "complete", **text("x")}, True),
        ({"resultType": "task", "taskId": "t", "status": "working"}, True),
        ({"resultType": "task", "taskId": 5, "status": "working"}, False),
        ({"resultType": "input_required", "inputRequests": {"a": {"method": "roots/list"}}}, True),
        ({"resultType": "input_required", "inputRequests": {"a": {"method": "made/up"}}}, False),
    ],
)
def test_the_type_of_a_result_chooses_its_check(result: dict[str, object], is_right: bool) -> None:
    checks = AnswerChecks(validator(), is_enforced=True, warn=lambda _: None)
    answer = {"jsonrpc": "2.0", "id": 1, "result": result}
    try:
        checks.result_in(answer, "tools/call", "2026-07-28")  # type: ignore[arg-type]
    except BadAnswer:
        assert not is_right
    else:
        assert is_right


def test_a_method_of_an_extension_has_no_official_schema() -> None:
    checks = AnswerChecks(validator(), is_enforced=True, warn=lambda _: None)
    assert checks.result_in({"jsonrpc": "2.0", "id": 1, "result": {"a": 1}}, "tasks/get", "2026-07-28") == {
        "a": 1
    }


@pytest.mark.parametrize(
    ("revision", "task", "is_right"),
    [
        ("2025-11-25", {"taskId": "t", "status": "working"}, True),
        ("2025-11-25", {"taskId": 5, "status": "working"}, False),
        ("2025-06-18", {"taskId": "t", "status": "working"}, False),
    ],
)
def test_a_task_is_an_answer_in_a_revision_with_tasks(revision: str, task: object, is_right: bool) -> None:
    checks = AnswerChecks(validator(), is_enforced=True, warn=lambda _: None)
    answer = {"jsonrpc": "2.0", "id": 1, "result": {"task": task}}
    try:
        checks.result_in(answer, "tools/call", revision)  # type: ignore[arg-type]
    except BadAnswer:
        assert not is_right
    else:
        assert is_right
