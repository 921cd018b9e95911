"""A person approves a call, among fakes: admitted under a ticket, given back where nothing ran."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from portbook.access.approval_state_and_binding import Ask
from portbook.errors import Failed, Reason, Refused
from portbook.model import CallerContext, Done
from portbook.redaction import Redactor
from portbook.stages.rules_in_force import Rules
from support.fake_world import (
    ASKING,
    CALLERS,
    CANARY,
    CATALOG,
    World,
    a_call,
    a_policy,
    a_rule,
    case,
    raising,
)

REQUIRED = Refused(Reason.APPROVAL_REQUIRED, details={"approval_id": "ticket-1", "expires_at": "then"})


@pytest.mark.covers("002.approval.required")
def test_a_call_that_nobody_approved_is_recorded_and_never_executed() -> None:
    world = World(policy=ASKING)
    world.approvals.refusal = REQUIRED
    completed = world.cross(a_call(tool="refund"))
    assert isinstance(completed.outcome, Refused)
    assert (completed.outcome.reason, completed.outcome.details) == (REQUIRED.reason, REQUIRED.details)
    assert completed.approval == REQUIRED.details["approval_id"]
    assert world.diary == ["asked", "recorded", "returned"]
    assert world.execution["decision"] == "ask"
    assert world.execution["approval_id"] == REQUIRED.details["approval_id"]
    assert world.execution["error_class"] == "APPROVAL_REQUIRED"


def test_a_person_is_asked_with_all_that_the_decision_rests_on_and_shown_no_secret() -> None:
    world = World(policy=ASKING, redactor=Redactor(secrets=[CANARY]))
    world.run(a_call(tool="refund", context=CallerContext(session="s-1"), approval="ticket-1", wait_ms=500))
    ((ask, approval_id, wait_ms),) = world.approvals.asked
    tool = CATALOG.find("refund")
    assert tool is not None
    assert ask == Ask(
        tool="refund",
        arguments={"text": CANARY},
        shown={"text": "[redacted]"},
        tool_digest=tool.digest,
        policy_digest=ASKING.digest,
        caller="ada",
        session="s-1",
        rule="ask it",
        place="test.toml:0",
    )
    assert (approval_id, wait_ms) == ("ticket-1", 500)


def test_an_approved_call_runs_under_its_ticket() -> None:
    world = World(policy=ASKING)
    completed = world.cross(a_call(tool="refund"))
    assert completed.outcome == Done(b'"hello"')
    assert completed.approval == "ticket-1"
    assert world.diary == ["asked", "intended", "ran", "ticket-1 done", "recorded", "returned"]
    assert world.execution["approval_id"] == "ticket-1"
    assert world.sink.intents[0]["approval_id"] == "ticket-1"


@pytest.mark.covers("002.approval.given-back")
@pytest.mark.parametrize(
    ("behave", "ticket"),
    [
        case("it raised", raising(ValueError()), "ticket-1 failed"),
        case("its deadline passed", raising(Failed(Reason.TIMEOUT)), "ticket-1 failed"),
        case("its result was withheld", lambda: 5, "ticket-1 failed"),
        case("it was cancelled", raising(asyncio.CancelledError()), "ticket-1 failed"),
        case("every worker was busy", raising(Refused(Reason.BUSY)), "ticket-1 given back"),
        case("its address was denied", raising(Refused(Reason.POLICY_VIOLATION)), "ticket-1 given back"),
    ],
)
def test_a_ticket_is_given_back_where_its_call_never_ran_and_spent_where_it_may_have(
    behave: Callable[[], Any], ticket: str
) -> None:
    world = World(behave, policy=ASKING)
    with contextlib.suppress(asyncio.CancelledError):
        world.run(a_call())
    assert world.diary[:4] == ["asked", "ran", ticket, "recorded"]


def test_a_ticket_is_given_back_where_the_intent_cannot_be_written() -> None:
    world = World(policy=ASKING)
    world.sink.intent_failure = OSError(28, "full")
    assert world.run(a_call(tool="refund")).reason is Reason.NOT_RECORDED
    assert world.diary == ["asked", "intended", "ticket-1 given back", "recorded", "returned"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        case("its sender left", asyncio.CancelledError(), "CANCELLED"),
        case("the store broke", OSError(CANARY), "STORE_UNUSABLE"),
    ],
)
def test_a_call_that_ends_while_it_waits_for_a_person_is_recorded_as_one_that_never_ran(
    error: BaseException, reason: str
) -> None:
    world = World(policy=ASKING)
    world.approvals.refusal = error
    with contextlib.suppress(asyncio.CancelledError):
        world.run(a_call())
    assert world.diary[:2] == ["asked", "recorded"]
    assert (world.record["error"]["reason"], world.record["error"]["executed"]) == (reason, False)
    assert CANARY not in json.dumps(world.record)


def test_a_call_that_waits_for_a_person_is_not_approved_under_other_rules() -> None:
    world = World(policy=ASKING)
    admit = world.approvals.admit

    async def slowly(ask: Ask, approval_id: str | None, wait_ms: int) -> str:
        world.pipeline.govern(Rules(callers=CALLERS, policy=a_policy(a_rule("deny"))))
        return await admit(ask, approval_id, wait_ms)

    world.approvals.admit = slowly  # type: ignore[method-assign]
    refused = world.run(a_call(tool="refund"))
    assert isinstance(refused, Refused)
    assert (refused.reason, refused.details["why"]) == (Reason.APPROVAL_REFUSED, "policy")
    assert "ticket-1 given back" in world.diary
    assert world.executor.runs == []
    assert world.approvals.asked[0][0].policy_digest == ASKING.digest
    assert world.execution["rule"] == "ask it (test.toml:0)"
    assert world.run(a_call(tool="refund")).reason is Reason.POLICY_VIOLATION
