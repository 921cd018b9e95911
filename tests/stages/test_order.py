"""The stages that govern a call, among fakes: policy, redaction, and under which rules."""

from __future__ import annotations

import json
from typing import Any

import pytest

from portbook.access.rate_limit import Rates
from portbook.errors import Failed, Reason, Refused
from portbook.model import Arrival, Caller, CallerContext, Done, Draft, Identity
from portbook.policy import Policy
from portbook.redaction import Redactor
from portbook.stages.rules_in_force import Rules
from portbook.stores.caller_keys import Callers
from support.fake_world import (
    CALLERS,
    CANARY,
    CATALOG,
    GUEST,
    KEY,
    NO_KEY,
    OPERATOR,
    WRONG_KEY,
    World,
    a_call,
    a_policy,
    a_rule,
    case,
    exchange_of,
    refusal,
)

# --- policy decides

DENIED = ["recorded", "returned"]


@pytest.mark.covers("002.policy.before-arguments")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        refusal("the key comes before policy", Reason.UNAUTHORIZED, arrival=NO_KEY, tool="wipe"),
        refusal("the tool comes before policy", Reason.UNKNOWN_TOOL, tool="no"),
        refusal("policy comes before the arguments", Reason.POLICY_VIOLATION, tool="wipe", arguments={}),
        refusal("what policy allows is checked", Reason.BAD_ARGUMENTS, arguments={}),
        refusal("arguments come before a person", Reason.BAD_ARGUMENTS, tool="refund", arguments={"text": 5}),
    ],
)
def test_policy_decides_after_the_tool_is_known_and_before_its_arguments_are_looked_at(
    changes: dict[str, Any], reason: Reason
) -> None:
    rules = [a_rule("deny", effects=["destructive"]), a_rule("ask", effects=["write"])]
    world = World(policy=a_policy(*rules))
    outcome = world.run(a_call(**changes))
    assert outcome.reason is reason
    assert (outcome.findings != ()) is (reason is Reason.BAD_ARGUMENTS)
    assert world.diary == DENIED


@pytest.mark.covers("002.policy.denied")
@pytest.mark.parametrize(
    ("policy", "changes", "reason", "rule"),
    [
        case(
            "by a rule", a_policy(a_rule("deny", tools=["wipe"])), {"tool": "wipe"}, Reason.POLICY_VIOLATION,
            ("deny it", "test.toml:0"),
        ),
        case(
            "by its size", a_policy(max_payload_bytes=21), {}, Reason.PAYLOAD_TOO_LARGE,
            ("max_payload_bytes", "test.toml:max_payload_bytes"),
        ),
        case(
            "by its attempt", a_policy(max_attempts=2), {"context": CallerContext(attempt=3)},
            Reason.POLICY_VIOLATION, ("max_attempts", "test.toml:max_attempts"),
        ),
        case(
            "by its destination", a_policy(allowed_domains=("api.example",)), {"tool": "elsewhere.get"},
            Reason.POLICY_VIOLATION, ("allowed_domains", "test.toml:allowed_domains"),
        ),
        case(
            "by its session", a_policy(a_rule("deny", sessions=["night-*"])),
            {"context": CallerContext(session="night-1")},
            Reason.POLICY_VIOLATION, ("deny it", "test.toml:0"),
        ),
        case(
            "by the session of its transport", a_policy(a_rule("deny", sessions=["night-*"])),
            {"arrival": Arrival("test", "test", KEY, session="night-1")},
            Reason.POLICY_VIOLATION, ("deny it", "test.toml:0"),
        ),
        case(
            "by default", a_policy(default="deny"), {}, Reason.POLICY_VIOLATION,
            ("default", "test.toml:default"),
        ),
    ],
)  # fmt: skip
def test_a_denied_call_is_recorded_with_its_rule_and_never_executed(
    policy: Policy, changes: dict[str, Any], reason: Reason, rule: tuple[str, str]
) -> None:
    world = World(policy=policy)
    outcome = world.run(a_call(**changes))
    assert isinstance(outcome, Refused)
    assert (outcome.reason, outcome.details) == (reason, {"rule": rule[0]})
    assert world.diary == DENIED
    execution = world.execution
    assert (execution["decision"], execution["rule"]) == ("deny", f"{rule[0]} ({rule[1]})")
    assert (execution["caller"], execution["status_code"]) == ("ada", outcome.row.http)
    assert execution["error_class"] == reason.value
    assert world.record["error"]["executed"] is False


def test_an_allowed_call_is_recorded_with_the_rule_that_allowed_it() -> None:
    world = World(policy=a_policy(a_rule("allow", tools=["echo"]), default="deny"))
    assert isinstance(world.run(a_call()), Done)
    execution = world.execution
    assert (execution["decision"], execution["rule"]) == ("allow", "allow it (test.toml:0)")
    assert "error_class" not in execution
    assert (execution["status_code"], execution["effect"]) == (200, "read")


@pytest.mark.parametrize(("arrival", "caller"), [(NO_KEY, None), (WRONG_KEY, None), (GUEST, "guest")])
def test_what_is_refused_before_policy_has_no_decision(arrival: Arrival, caller: str | None) -> None:
    world = World()
    world.run(a_call(arrival=arrival, tool="refund"))
    assert (world.execution["decision"], world.execution["rule"]) == (None, None)
    assert (world.execution["caller"], world.execution["effect"]) == (caller, None)


def test_a_caller_makes_as_many_calls_as_it_may_and_is_told_when_to_come_back() -> None:
    world = World(rates=Rates(1), policy=a_policy(a_rule("deny", tools=["wipe"])))
    assert world.run(a_call(tool="wipe")).reason is Reason.POLICY_VIOLATION  # which counts for nothing
    assert isinstance(world.run(a_call()), Done)
    refused = world.run(a_call(arguments={}))  # which would be refused all the same
    assert (refused.reason, refused.is_retryable) == (Reason.RATE_LIMITED, True)
    # A token in sixty seconds, of which the clock has shown one half of one since the last.
    assert refused.details == {"retry_after_s": 60}
    assert isinstance(world.run(a_call(arrival=GUEST)), Done)
    assert world.executor.calls == [("echo", {"text": CANARY})] * 2


# --- whose call it is


@pytest.mark.covers("002.callers.scopes")
def test_a_tool_that_the_caller_may_not_see_is_as_unknown_as_one_that_is_not_there() -> None:
    seen, missing = World(), World()
    unseen, absent = (
        seen.run(a_call(arrival=GUEST, tool="refund")),
        missing.run(a_call(arrival=GUEST, tool="no")),
    )
    for outcome in (unseen, absent):
        assert (outcome.reason, outcome.findings, outcome.details) == (Reason.UNKNOWN_TOOL, (), {})
    assert seen.executor.calls == []
    alike = [name for name in seen.execution if name != "tool_id"]
    assert [seen.execution[name] for name in alike] == [missing.execution[name] for name in alike]


def test_the_tools_that_a_caller_may_see_are_those_of_its_key() -> None:
    pipeline = World().pipeline

    def names(caller: Caller) -> list[str]:
        return [tool.spec.name for tool in pipeline.visible_to(caller)]

    assert names(Caller("guest", ("echo", "any*"))) == ["anything", "echo"]
    assert names(Caller("anybody")) == sorted(tool.spec.name for tool in CATALOG)
    assert names(Caller("nobody", ())) == []


def test_a_question_about_the_boundary_is_answered_for_its_caller_and_recorded() -> None:
    def handler(caller: Caller) -> Any:
        return {"tools": list(caller.tools)}

    world = World()
    assert world.run(exchange_of(a_call(tool=None, arrival=GUEST), handler=handler)) == Done(
        b'{"tools":["echo","any*"]}'
    )
    assert (world.execution["caller"], world.execution["tool_id"]) == ("guest", None)
    assert (
        world.run(exchange_of(a_call(tool=None, arrival=WRONG_KEY), handler=handler)).reason
        is Reason.UNAUTHORIZED
    )


class Act:
    """What an operator wants done."""

    def __init__(self, refusal: Refused | None = None) -> None:
        self.count = 0
        self.refusal = refusal

    async def __call__(self) -> Any:
        self.count += 1
        if self.refusal is not None:
            raise self.refusal
        return {"state": "approved"}


@pytest.mark.covers("002.callers.operator-acts")
@pytest.mark.parametrize("arrival", [NO_KEY, WRONG_KEY, Arrival("test", "test", key=KEY), GUEST])
def test_an_operators_act_needs_the_operators_key_and_is_not_done_without_it(arrival: Arrival) -> None:
    world, act = World(), Act()
    assert world.run(exchange_of(a_call(tool=None, arrival=arrival), act=act)).reason is Reason.UNAUTHORIZED
    assert act.count == 0
    assert world.execution["error_class"] == "UNAUTHORIZED"


def test_an_operators_act_is_done_and_recorded_as_the_operators() -> None:
    world, act = World(), Act()
    deciding = exchange_of(a_call(tool=None, arrival=OPERATOR, approval="ticket-1"), act=act)
    assert world.run(deciding) == Done(b'{"state":"approved"}')
    assert act.count == 1
    assert (world.execution["caller"], world.execution["status_code"]) == ("operator", 200)
    assert world.execution["approval_id"] == "ticket-1"


def test_an_operators_act_that_is_refused_is_recorded_so() -> None:
    world, act = World(), Act(Refused(Reason.APPROVAL_UNKNOWN))
    assert (
        world.run(exchange_of(a_call(tool=None, arrival=OPERATOR), act=act)).reason is Reason.APPROVAL_UNKNOWN
    )
    assert world.execution["status_code"] == 404


def test_the_operators_key_makes_no_calls() -> None:
    world = World()
    assert world.run(a_call(arrival=OPERATOR)).reason is Reason.UNAUTHORIZED
    assert world.executor.calls == []


# --- secrets are taken out

REDACTOR = Redactor(["token"])


@pytest.mark.covers("002.redaction.result")
@pytest.mark.parametrize(
    ("result", "body", "is_redacted"),
    [
        case("a string", {"token": "x", "plain": "y"}, b'{"token":"[redacted]","plain":"y"}', True),
        case("a number", {"token": 4711}, b'{"token":0}', True),
        case("a truth", {"token": True}, b'{"token":false}', True),
        case("nothing", {"plain": "y"}, b'{"plain":"y"}', False),
    ],
)
def test_a_result_leaves_without_secrets_and_with_its_types(
    result: Any, body: bytes, is_redacted: bool
) -> None:
    world = World(lambda: result, redactor=REDACTOR)
    before = json.dumps(result)
    completed = world.cross(a_call(tool="secretive"))
    assert (completed.outcome, completed.is_redacted) == (Done(body), is_redacted)
    assert world.execution["redaction_applied"] is is_redacted
    assert world.execution["output_bytes"] == world.record["outputBytes"] == len(body)
    assert json.dumps(result) == before  # the tool's own value is not ours to change


def test_a_wire_contract_gets_the_result_without_secrets() -> None:
    sealed: list[Any] = []

    def seal(tool: object, result: Any, body: bytes, *beside: object) -> bytes:
        sealed.append((result, body))
        return b"sealed"

    world = World(lambda: {"token": "x"}, redactor=REDACTOR)
    assert world.run(exchange_of(a_call(tool="secretive"), seal=seal)).wire == b"sealed"
    assert sealed == [({"token": "[redacted]"}, b'{"token":"[redacted]"}')]


def test_a_result_stays_as_it_is_where_redaction_is_switched_off() -> None:
    world = World(lambda: {"token": "x"}, redactor=None)
    assert world.run(a_call(tool="secretive")) == Done(b'{"token":"x"}')
    assert world.execution["redaction_applied"] is False


@pytest.mark.covers("002.redaction.checked-again")
def test_a_result_that_breaks_its_schema_without_its_secrets_is_withheld() -> None:
    world = World(lambda: {"token": "x" * 11}, redactor=REDACTOR)
    outcome = world.run(a_call(tool="precise"))
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.BAD_RESULT
    assert [finding.pointer for finding in outcome.findings] == ["/token"]
    assert world.execution["redaction_applied"] is True


def test_a_result_is_checked_with_its_secrets_too() -> None:
    world = World(lambda: {"token": "x"}, redactor=REDACTOR)
    assert world.run(a_call(tool="precise")).reason is Reason.BAD_RESULT
    assert world.execution["redaction_applied"] is False


def test_findings_name_no_secret_that_was_sent_as_the_name_of_a_member() -> None:
    world = World(redactor=Redactor(secrets=[CANARY]))
    outcome = world.run(a_call(arguments={"text": "a", CANARY: 1}))
    assert [finding.message for finding in outcome.findings] == ['unexpected property "[redacted]"']
    assert CANARY not in json.dumps([world.record, world.execution])


# --- what an executor is told, and under which rules


@pytest.mark.covers("002.policy.timeout")
@pytest.mark.parametrize(
    ("tool", "cap", "expected"),
    [
        case("the default", "echo", None, 30_000),
        case("the default, capped", "echo", 800, 800),
        case("its own", "hasty", None, 50),
        case("its own, below the cap", "hasty", 800, 50),
        case("its own, capped", "hasty", 20, 20),
    ],
)
def test_a_tool_has_its_own_deadline_or_the_default_and_never_more_than_policy_allows(
    tool: str, cap: int | None, expected: int
) -> None:
    world = World(policy=a_policy(max_execution_timeout_ms=cap))
    world.run(a_call(tool=tool))
    assert [run.timeout_ms for run in world.executor.runs] == [expected]


def test_an_executor_is_told_whose_work_the_call_is_part_of() -> None:
    told: list[Any] = []

    def report(done: float, total: float | None, word: Draft[str] | None) -> None:
        told.append((done, total, None if word is None else word.finish()))

    world = World(redactor=REDACTOR)
    arrival = Arrival("test", "test", KEY, session="of the transport")
    world.run(exchange_of(a_call(arrival=arrival, context=CallerContext(correlation="c-1")), report=report))
    (run,) = world.executor.runs
    names = Identity("request-1", "trace-1", "span-1")
    assert run[:4] == (30_000, names, "of the transport", "c-1")
    assert run.report is not None
    run.report(1, 2, "halfway")
    run.report(2, None, None)
    assert told == [(1, 2, "halfway"), (2, None, None)]
    world.run(a_call(arrival=arrival, context=CallerContext(session="its own")))
    assert world.executor.runs[1].session == "its own"


@pytest.mark.covers("002.reload.calls-keep-their-rules")
def test_a_call_keeps_the_rules_that_it_began_with_and_the_next_one_has_the_new() -> None:
    before = Rules(callers=CALLERS, timeout_ms=1)
    after = Rules(callers=Callers(), redactor=REDACTOR, timeout_ms=2, records_arguments=True)
    world = World()
    world.pipeline.govern(before)

    def reload_meanwhile() -> Any:
        world.pipeline.govern(after)
        return {"token": "x"}

    world.executor.behave = reload_meanwhile
    # But for secrets: what is known to be one by the time it leaves does not leave.
    assert world.run(a_call(tool="secretive")) == Done(b'{"token":"[redacted]"}')
    assert world.pipeline.rules is after
    assert world.run(a_call(tool="secretive", arrival=NO_KEY)) == Done(b'{"token":"[redacted]"}')
    assert [run.timeout_ms for run in world.executor.runs] == [1, 2]
    assert ["arguments" in execution for execution in world.sink.executions] == [False, True]
