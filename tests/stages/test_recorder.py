"""What is written of a call, among fakes: its intent before it runs, its record before it is answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from portbook.errors import Failed, Reason, Refused
from portbook.executors.threads import LoopTurn
from portbook.model import NO_CONTEXT, CallerContext, Done
from portbook.redaction import Redactor
from portbook.stages.state import CallState
from support.fake_world import (
    ASKING,
    CANARY,
    FLAW,
    World,
    a_call,
    a_policy,
    case,
    exchange_of,
    raising,
)


@pytest.mark.covers("002.log.intent-first")
@pytest.mark.parametrize(
    ("tool", "intended"), [("echo", []), ("refund", ["intended"]), ("wipe", ["intended"])]
)
def test_the_intent_of_a_call_with_effects_is_written_before_it_runs_and_of_a_read_never(
    tool: str, intended: list[str]
) -> None:
    world = World()
    world.run(a_call(tool=tool))
    assert world.diary == [*intended, "ran", "recorded", "returned"]
    names = ("request_id", "trace_id", "tool_id", "decision", "rule", "caller", "effect")
    for intent in world.sink.intents:
        assert [intent[name] for name in names] == [world.execution[name] for name in names]


@pytest.mark.covers("002.log.no-intent-no-run")
def test_a_call_whose_intent_cannot_be_written_is_refused_before_it_runs() -> None:
    world = World()
    world.sink.intent_failure = OSError(28, CANARY)
    outcome = world.run(a_call(tool="refund"))
    assert isinstance(outcome, Refused)
    assert outcome.reason is Reason.NOT_RECORDED
    assert world.diary == ["intended", "recorded", "returned"]
    assert world.record["error"]["executed"] is False
    assert CANARY not in json.dumps([world.record, world.execution])
    assert [warning.partition(":")[0] for warning in world.warnings] == [
        "records cannot be written, calls are refused until they can"
    ]


@pytest.mark.covers("002.log.on-failure")
def test_a_call_whose_intent_cannot_be_written_runs_where_an_operator_would_rather_go_on() -> None:
    world = World(on_audit_failure="warn")
    world.sink.intent_failure = world.sink.failure = OSError(28, "full")
    for _ in range(2):
        assert world.run(a_call(tool="refund")) == Done(b'"hello"')
    once = ["intended", "ran", "recorded", "returned"]
    assert world.diary == [*once, "mended", *once]
    assert world.warnings == ["records cannot be written, calls continue: [Errno 28] full"]  # said once


def test_calls_are_refused_until_records_can_be_written_again() -> None:
    world = World(sink_failure=OSError(28, "full"))
    assert world.run(a_call()).reason is Reason.NOT_RECORDED
    assert not world.pipeline.is_recording
    world.sink.mend_failure = OSError(28, "full")
    world.diary.clear()
    refused = world.run(a_call())
    assert isinstance(refused, Refused)
    assert refused.reason is Reason.NOT_RECORDED
    assert world.diary == ["mended", "recorded", "returned"]
    world.sink.mend_failure = world.sink.failure = None
    assert isinstance(world.run(a_call()), Done)
    assert world.pipeline.is_recording
    world.diary.clear()
    world.run(a_call())
    assert world.diary == ["ran", "recorded", "returned"]


def test_a_call_is_refused_before_it_runs_where_it_can_be_told_that_no_record_would_be_kept() -> None:
    world = World()
    world.sink.look_failure = world.sink.mend_failure = OSError(2, "gone")
    assert world.run(a_call()).reason is Reason.NOT_RECORDED
    assert world.diary == ["mended", "recorded", "returned"]
    assert [warning.rpartition(": ")[2] for warning in world.warnings] == ["[Errno 2] gone"]
    world.sink.mend_failure = None  # mending is all that it takes
    assert isinstance(world.run(a_call()), Done)


def test_a_flawed_message_is_told_its_flaw_even_while_records_cannot_be_written() -> None:
    world = World(sink_failure=OSError(28, "full"))
    world.run(a_call())
    assert world.run(a_call(flaw=FLAW)).reason is FLAW.reason


def test_neither_record_nor_intent_nor_ticket_holds_a_secret_that_its_sender_says_of_itself() -> None:
    world = World(policy=ASKING, redactor=Redactor(secrets=[CANARY]))
    context = CallerContext(CANARY, CANARY, CANARY, 1, CANARY, CANARY, CANARY)
    world.run(a_call(tool="refund", context=context, arguments={"text": "x"}))
    assert CANARY not in json.dumps([world.record, world.execution, world.sink.intents])
    assert world.approvals.asked[0][0].session == "[redacted]"


def test_arguments_are_recorded_without_secrets_where_an_operator_asked_for_them() -> None:
    rules: dict[str, Any] = {"records_arguments": True, "redactor": Redactor(secrets=[CANARY])}
    for arguments, recorded in (({"text": CANARY}, {"text": "[redacted]"}), ({"text": 5}, {"text": 5})):
        world = World(**rules)
        world.run(a_call(arguments=arguments))
        assert world.execution["arguments"] == recorded
        assert "arguments" not in world.record
    unknown, unasked = World(**rules), World()
    unknown.run(a_call(tool="no"))
    unasked.run(a_call())
    assert "arguments" not in unknown.execution
    assert "arguments" not in unasked.execution


@pytest.mark.parametrize(
    ("changes", "behave"),
    [
        case("a success", {}, lambda: "hello"),
        case("a refusal", {"tool": "no"}, lambda: "hello"),
        case("a failure", {}, raising(ValueError())),
    ],
)
def test_nothing_is_acknowledged_whose_record_cannot_be_kept(
    changes: dict[str, Any], behave: Callable[[], Any]
) -> None:
    world = World(behave, sink_failure=OSError(28, CANARY))
    outcome = world.run(a_call(**changes))
    assert not isinstance(outcome, Done)
    if isinstance(outcome, Failed):
        assert outcome.reason is Reason.NOT_RECORDED
        assert outcome.note is not None
        assert outcome.note.startswith("OSError at fake_world.py:")
        assert CANARY not in outcome.note
    assert world.diary[-2:] == ["recorded", "returned"]


@pytest.mark.parametrize(
    ("step", "took"),
    [(-0.000_005, 0.0), (-1.5, 0.0), (0.0, 0.0), (0.000_04, 0.04), (0.1, 100.0), (1.2345, 1234.5)],
)
def test_a_duration_has_thousandths_and_is_never_below_zero(step: float, took: float) -> None:
    world = World(step=step)
    world.run(a_call())
    assert world.record["durationMs"] == took


def test_time_comes_from_the_clock_that_was_handed_in() -> None:
    world = World()
    world.run(a_call())
    assert (world.record["ts"], world.record["durationMs"]) == ("2026-01-02T03:04:05.678Z", 250.0)
    assert (world.execution["timestamp"], world.execution["latency_ms"]) == (world.record["ts"], 250.0)


def at_once(world: World, monkeypatch: pytest.MonkeyPatch, calls: int) -> list[CallState]:
    """Run calls that never wait, and hold their records meanwhile."""
    monkeypatch.setattr(world.executor, "prepare", lambda tool: lambda arguments, run: "hello")
    with world.pipeline.recorder:
        states = [world.pipeline.begin(exchange_of(a_call())) for _ in range(calls)]
        assert world.diary == []
    return [state for state in states if isinstance(state, CallState)]


def test_records_are_held_in_a_block_and_written_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    states = at_once(world, monkeypatch, 2)
    assert world.diary == ["recorded", "recorded"]
    assert [state.outcome for state in states] == [Done(b'"hello"')] * 2


def test_records_that_are_held_are_written_with_the_next_one_that_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    monkeypatch.setattr(world.executor, "prepare", lambda tool: lambda arguments, run: "hello")
    recorder = world.pipeline.recorder
    recorder.hold()
    world.pipeline.begin(exchange_of(a_call()))
    recorder.release()
    assert world.diary == []
    world.pipeline.begin(exchange_of(a_call()))
    assert world.diary == ["recorded", "recorded"]
    recorder.flush()
    assert world.diary == ["recorded", "recorded"]


def test_calls_that_wait_and_end_in_one_turn_are_recorded_before_any_of_them_is_answered() -> None:
    async def main() -> list[str]:
        gate = asyncio.Event()

        async def wait() -> str:
            await gate.wait()
            return "hello"

        world = World(wait, turn=LoopTurn())
        calls = [asyncio.ensure_future(world.completed(a_call())) for _ in range(3)]
        await asyncio.sleep(0)
        gate.set()
        await asyncio.gather(*calls)
        return world.diary

    assert asyncio.run(main()) == [*["ran"] * 3, *["recorded"] * 3, *["returned"] * 3]


def test_a_call_that_is_cancelled_while_it_waits_is_recorded_at_once() -> None:
    async def main() -> list[Any]:
        world = World(asyncio.Event().wait, turn=LoopTurn())
        call = asyncio.ensure_future(world.completed(a_call()))
        await asyncio.sleep(0)
        call.cancel()
        await asyncio.wait((call,))
        return world.sink.records

    [record] = asyncio.run(main())
    assert record["error"]["reason"] == "CANCELLED"


def test_only_the_calls_whose_records_cannot_be_written_end_without_a_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    monkeypatch.setattr(world.sink, "write_all", lambda records: {1: OSError(28, "full")})
    endings = [state.outcome for state in at_once(world, monkeypatch, 3)]
    assert [getattr(ending, "reason", None) for ending in endings] == [None, Reason.NOT_RECORDED, None]
    assert world.pipeline.is_recording  # the last one could be written


def test_after_a_record_that_cannot_be_made_failures_are_still_those_of_their_own_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()

    def unmade(*_: Any) -> None:
        raise ValueError

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr("portbook.stages.recorder.record_lines", unmade)
        with pytest.raises(ValueError, match=r"^$"):
            world.run(a_call())
    monkeypatch.setattr(world.sink, "write_all", lambda views: {len(views) - 1: OSError(28, "full")})
    outcome = world.run(a_call())
    assert isinstance(outcome, Failed)


@pytest.mark.parametrize("order", ["denied allowed", "allowed denied"])
def test_a_denial_while_dialling_is_recorded_with_its_own_call_alone(order: str) -> None:
    world = World(policy=a_policy(allowed_domains=("elsewhere.example",)))
    arrival = a_call().arrival

    def deny() -> None:
        raise Refused(Reason.POLICY_VIOLATION, note="private address")

    for wanted in order.split():
        world.executor.behave = deny if wanted == "denied" else lambda: "hello"
        world.run(a_call(tool="elsewhere.get", arrival=arrival, context=NO_CONTEXT))
    decisions = {each["status_code"]: each["decision"] for each in world.sink.executions}
    assert decisions == {200: "allow", 403: "deny"}
