"""The path of a call among fakes: the order of its stages, and the record of every ending."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from portbook.dialects.exchange_contract import Exchange
from portbook.errors import Ending, Failed, Finding, Reason, Refused
from portbook.ids import ContentIds
from portbook.model import Completed, Done, Identity
from portbook.tools.catalog import Catalog, Tool
from support.fake_world import (
    CANARY,
    FLAW,
    NO_KEY,
    WRONG_KEY,
    World,
    a_call,
    a_spec,
    case,
    exchange_of,
    raising,
    refusal,
)


def test_a_call_that_passes_every_check_is_done_and_recorded() -> None:
    world = World()
    assert world.run(a_call()) == Done(b'"hello"')
    assert world.executor.calls == [("echo", {"text": CANARY})]
    assert (world.record["status"], world.record["outputBytes"], world.record["error"]) == ("ok", 7, None)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        refusal("everything is wrong", FLAW.reason, flaw=FLAW, arrival=NO_KEY, tool="no", arguments={}),
        refusal("a flaw comes before the key", FLAW.reason, flaw=FLAW, arrival=NO_KEY),
        refusal("a flaw comes before the tool", FLAW.reason, flaw=FLAW, tool=None),
        refusal("the key comes before the tool", Reason.UNAUTHORIZED, arrival=NO_KEY, tool="no"),
        refusal("the key comes before the arguments", Reason.UNAUTHORIZED, arrival=WRONG_KEY, arguments={}),
        refusal("the tool comes before the arguments", Reason.UNKNOWN_TOOL, tool="no", arguments={}),
        refusal("no key", Reason.UNAUTHORIZED, arrival=NO_KEY),
        refusal("a wrong key", Reason.UNAUTHORIZED, arrival=WRONG_KEY),
        refusal("an unknown tool", Reason.UNKNOWN_TOOL, tool="no"),
        refusal("a tool of another case", Reason.UNKNOWN_TOOL, tool="Echo"),
        refusal("no tool", Reason.UNKNOWN_TOOL, tool=None),
        refusal("bad arguments", Reason.BAD_ARGUMENTS, arguments={"text": 5}),
    ],
)
def test_the_first_stage_that_refuses_decides_and_nothing_runs(
    changes: dict[str, Any], reason: Reason
) -> None:
    world = World()
    outcome = world.run(a_call(**changes))
    assert isinstance(outcome, Refused)
    assert outcome.reason is reason
    assert world.executor.calls == []
    assert (world.record["status"], world.record["error"]["reason"]) == ("error", reason.value)
    assert world.record["error"]["executed"] is False


def test_bad_arguments_are_refused_with_findings_and_without_their_values() -> None:
    world = World()
    outcome = world.run(a_call(arguments={"text": 5, "more": CANARY}))
    assert outcome.findings == (
        Finding("", 'unexpected property "more"', "additionalProperties", "/additionalProperties"),
        Finding("/text", "expected string", "type", "/properties/text/type"),
    )
    assert CANARY not in json.dumps(world.record)


ENDINGS = [
    case("it returns", lambda: "hello", Done, None),
    case("it raises", raising(ValueError(CANARY)), Failed, Reason.TOOL_FAILED),
    case("it raises what is no error of a tool", raising(StopAsyncIteration()), Failed, Reason.TOOL_FAILED),
    case("it was never started", raising(Refused(Reason.BUSY)), Refused, Reason.BUSY),
    case(
        "its arguments were refused late",
        raising(Refused(Reason.BAD_ARGUMENTS)),
        Refused,
        Reason.BAD_ARGUMENTS,
    ),
    case("its deadline passed", raising(Failed(Reason.TIMEOUT)), Failed, Reason.TIMEOUT),
    case("its result has another type", lambda: 5, Failed, Reason.BAD_RESULT),
    case("its result is none", lambda: None, Failed, Reason.BAD_RESULT),
]


@pytest.mark.parametrize(("behave", "kind", "reason"), ENDINGS)
def test_every_ending_is_recorded_once_and_before_it_is_returned(
    behave: Callable[[], Any], kind: type[Any], reason: Reason | None
) -> None:
    world = World(behave)
    outcome = world.run(a_call())
    assert type(outcome) is kind
    assert world.diary == ["ran", "recorded", "returned"]
    if reason is None:
        assert world.record["error"] is None
    else:
        assert outcome.reason is reason
        assert world.record["error"]["reason"] == reason.value
        assert world.record["error"]["executed"] is (kind is Failed)
    assert CANARY not in json.dumps(world.record)


@pytest.mark.parametrize(
    "result",
    [
        case("NaN", float("nan")),
        case("infinity, deep inside", {"a": [float("inf")]}),
        case("a set", {1}),
        case("bytes", b"x"),
        case("an object", object()),
        case("a key that is no string", {1: 1}),
        case("a lone surrogate", "\ud800"),
        case("more digits than Python writes", 10**5000),
        case("nested too deeply", json.loads("[" * 900 + "]" * 900)),
    ],
)
def test_a_result_that_json_cannot_hold_is_withheld(result: object) -> None:
    world = World(lambda: result)
    outcome = world.run(a_call(tool="anything"))
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.BAD_RESULT
    assert [finding.keyword for finding in outcome.findings] == ["json"]
    assert world.record["error"]["code"] == "INVALID_OUTPUT"


def test_a_result_that_breaks_its_schema_is_withheld_and_stands_in_no_record() -> None:
    world = World(lambda: [CANARY])
    outcome = world.run(a_call())
    assert [(finding.pointer, finding.message) for finding in outcome.findings] == [("", "expected string")]
    assert CANARY not in json.dumps(world.record)


def test_a_tools_exception_is_recorded_by_type_and_place_and_never_by_its_text() -> None:
    def inner() -> None:
        raise LookupError(CANARY)

    def outer() -> None:
        inner()

    world = World(outer)
    outcome = world.run(a_call())
    note = world.record["error"]["note"]
    line = inner.__code__.co_firstlineno + 1
    assert note.startswith(f"LookupError at test_pipeline.py:{line} in inner < test_pipeline.py:")
    assert outcome.note == note
    assert CANARY not in json.dumps(world.record)


def test_what_nobody_foresaw_is_recorded_and_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_self: Catalog, _name: str, _kind: str = "tool") -> Tool:
        raise ZeroDivisionError(CANARY)

    monkeypatch.setattr(Catalog, "find", broken)
    world = World()
    outcome = world.run(a_call())
    assert isinstance(outcome, Refused)
    assert outcome.reason is Reason.INTERNAL
    assert world.record["error"]["executed"] is False
    assert world.diary == ["recorded", "returned"]
    assert world.record["error"]["note"].startswith("ZeroDivisionError at test_pipeline.py:")
    assert CANARY not in json.dumps(world.record)


@pytest.mark.parametrize(("side", "ending"), [("input_schema", Refused), ("output_schema", Failed)])
def test_a_schema_that_fails_when_it_is_first_used_is_no_fault_of_the_caller(
    monkeypatch: pytest.MonkeyPatch, side: str, ending: type
) -> None:
    changed: Any = {side: {"type": "object", "patternProperties": {"(": False}}, "are_schemas_checked": True}
    tool = Catalog([replace(a_spec("echo", True), **changed)]).find("echo")
    monkeypatch.setattr(Catalog, "find", lambda *_: tool)
    world = World()
    outcome = world.run(a_call())
    assert isinstance(outcome, ending)
    assert outcome.reason is Reason.INTERNAL
    assert world.record["error"]["note"].startswith("NotCompiled at ")


def test_what_nobody_foresaw_after_a_tool_has_run_is_a_failure() -> None:
    def seal(tool: object, result: Any, body: bytes, *beside: object) -> bytes:
        raise ZeroDivisionError(CANARY)

    world = World()
    outcome = world.run(exchange_of(a_call(), seal=seal))
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.INTERNAL
    assert world.record["error"]["executed"] is True


def test_an_ending_kept_as_a_value_keeps_no_frames_alive() -> None:
    for behave in (raising(ValueError()), raising(Failed(Reason.TIMEOUT)), lambda: {1}):
        outcome = World(behave).run(a_call())
        assert isinstance(outcome, Ending)
        assert (outcome.__traceback__, outcome.__context__, outcome.__cause__) == (None, None, None)


def test_a_cancelled_call_is_recorded_and_stays_cancelled() -> None:
    async def scenario(world: World, started: asyncio.Event) -> None:
        task = asyncio.create_task(world.completed(a_call()))
        await asyncio.wait_for(started.wait(), 30)
        assert world.sink.records == []
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    async def main() -> World:
        started = asyncio.Event()

        async def hang() -> None:
            started.set()
            await asyncio.Event().wait()

        world = World(hang)
        await scenario(world, started)
        return world

    world = asyncio.run(main())
    assert world.diary == ["ran", "recorded"]
    error = world.record["error"]
    assert (error["reason"], error["executed"]) == ("CANCELLED", True)


@pytest.mark.parametrize("error", [asyncio.CancelledError(), KeyboardInterrupt(), SystemExit(3)], ids=repr)
def test_what_ends_more_than_the_call_is_recorded_and_passed_on(error: BaseException) -> None:
    world = World()

    async def completed() -> None:
        world.executor.behave = raising(error)
        with pytest.raises(type(error)):
            await world.completed(a_call())

    asyncio.run(completed())
    assert world.diary == ["ran", "recorded"]
    assert world.record["error"]["reason"] == "CANCELLED"


def test_a_cancelled_call_stays_cancelled_even_if_its_record_cannot_be_kept() -> None:
    world = World(raising(asyncio.CancelledError()), sink_failure=OSError())
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(world.completed(a_call()))
    assert world.diary == ["ran", "recorded"]


def test_calls_at_the_same_time_have_a_record_each() -> None:
    async def later() -> str:
        await asyncio.sleep(0)
        return "hello"

    async def main() -> list[Completed]:
        return await asyncio.gather(*(world.pipeline.run(Exchange(a_call())) for _ in range(20)))

    world = World(later)
    crossings = asyncio.run(main())
    assert all(completed.outcome == Done(b'"hello"') for completed in crossings)
    recorded = [record["requestId"] for record in world.sink.records]
    assert sorted(recorded) == sorted(completed.identity.request for completed in crossings)
    assert len(set(recorded)) == 20


def test_the_record_has_the_names_that_are_returned() -> None:
    world = World()
    identity = asyncio.run(world.completed(a_call())).identity
    assert identity == Identity("request-1", "trace-1", "span-1")
    assert [world.record[name] for name in ("requestId", "traceId", "spanId")] == list(identity)


def test_a_trace_that_the_sender_named_is_kept() -> None:
    world = World()
    identity = asyncio.run(world.completed(a_call(trace="the sender's"))).identity
    assert identity == Identity("request-1", "the sender's", "span-1")
    assert world.record["traceId"] == "the sender's"


@pytest.mark.parametrize(
    ("content", "other", "is_same"),
    [
        case("another order of keys", {"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        case("another value", {"a": 1}, {"a": 2}, False),
        case("bytes that are no message", b"x", b"x", True),
        case("other bytes", b"x", b"y", False),
    ],
)
def test_deterministic_names_are_made_of_the_content_alone(content: Any, other: Any, is_same: bool) -> None:
    def identity(content: Any, **changes: Any) -> Identity:
        return asyncio.run(World(ids=ContentIds()).completed(a_call(content=content, **changes))).identity

    assert (identity(content) == identity(other, arrival=NO_KEY, arguments={})) is is_same
