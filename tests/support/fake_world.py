"""A pipeline among fakes: what the tests of the path of a call share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from portbook.access.approval_state_and_binding import Ask
from portbook.audit.record_views_and_fields import RecordLines, whole_views
from portbook.dialects.exchange_contract import Exchange
from portbook.errors import Reason, Refused
from portbook.model import Arrival, Call, CallerContext, Completed, IdBytes, JSONObject, Run, Start
from portbook.pipeline import Pipeline
from portbook.policy import Limits, Policy, read_policy
from portbook.stages.rules_in_force import Rules
from portbook.stores.caller_keys import AllowedKey, Callers, digest_of_key
from portbook.tools.catalog import Catalog, Tool
from portbook.tools.http_operation import HttpOperation
from portbook.tools.spec import Effect, ToolSpec

KEY = "the key"
GUESTS_KEY = "the key of a guest"
OPERATORS_KEY = "the key of the operator"
CANARY = "canary-4711"


def never_called(arguments: JSONObject) -> Any:
    raise AssertionError("the pipeline called a function itself")


def a_spec(name: str, output: Any, effect: Effect = Effect.READ) -> ToolSpec:
    schema: JSONObject = {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
        "additionalProperties": False,
    }
    return ToolSpec(name, "", schema, output, effect, never_called)


ELSEWHERE = HttpOperation("elsewhere", "https://elsewhere.example", "GET", "/")
SECRETIVE: JSONObject = {
    "type": "object",
    "properties": {"token": {"type": ["string", "integer", "boolean"]}, "plain": {"type": "string"}},
}
PRECISE: JSONObject = {"type": "object", "properties": {"token": {"type": "string", "minLength": 11}}}

CATALOG = Catalog(
    [
        a_spec("echo", {"type": "string"}),
        a_spec("anything", True),
        a_spec("refund", True, Effect.WRITE),
        a_spec("wipe", True, Effect.DESTRUCTIVE),
        a_spec("secretive", SECRETIVE),
        a_spec("precise", PRECISE),
        replace(a_spec("hasty", True), timeout_ms=50),
        replace(a_spec("elsewhere.get", True), operation=ELSEWHERE),
    ]
)

CALLERS = Callers(
    [AllowedKey("ada", digest_of_key(KEY)), AllowedKey("guest", digest_of_key(GUESTS_KEY), ("echo", "any*"))],
    required=True,
    operator_key=OPERATORS_KEY,
)


def a_policy(*rules: dict[str, Any], **limits: Any) -> Policy:
    return read_policy(Limits(**limits), rules, [], lambda path: f"test.toml:{path[-1]}")


def a_rule(action: str, **conditions: Any) -> dict[str, Any]:
    return {"name": f"{action} it", "action": action, **conditions}


class FakeExecutor:
    """Does what it is told instead of running a tool, and remembers what it was asked to run."""

    def __init__(self, behave: Callable[[], Any], diary: list[str]) -> None:
        self.behave = behave
        self.diary = diary
        self.calls: list[tuple[str, JSONObject]] = []
        self.runs: list[Run] = []

    def prepare(self, tool: Tool) -> Start:
        return partial(self._execute, tool)

    async def _execute(self, tool: Tool, arguments: JSONObject, run: Run) -> Any:
        self.diary.append("ran")
        self.calls.append((tool.spec.name, arguments))
        self.runs.append(run)
        result = self.behave()
        return await result if asyncio.iscoroutine(result) else result


class FakeApprovals:
    """Says what it was told to, and remembers what it was asked and told."""

    def __init__(self, diary: list[str]) -> None:
        self.diary = diary
        self.refusal: BaseException | None = None
        self.asked: list[tuple[Ask, str | None, int]] = []

    async def admit(self, ask: Ask, approval_id: str | None, wait_ms: int) -> str:
        self.diary.append("asked")
        self.asked.append((ask, approval_id, wait_ms))
        if self.refusal is not None:
            raise self.refusal
        return "ticket-1"

    async def complete(self, approval_id: str) -> None:
        self.diary.append(f"{approval_id} done")

    def finish(self, approval_id: str, *, is_done: bool) -> None:
        self.diary.append(f"{approval_id} {'done' if is_done else 'failed'}")

    async def decide(self, approval_id: str, decision: str, *, by: str, reason: str | None = None) -> None:
        self.diary.append(f"{approval_id}: {decision} by {by}")

    async def restore(self, approval_id: str) -> None:
        self.diary.append(f"{approval_id} restored")

    def may_start(self, approval_id: str) -> bool:
        return True

    def give_back(self, approval_id: str) -> None:
        self.diary.append(f"{approval_id} given back")


class FakeSink:
    """Keeps records and writes into the diary of the test."""

    def __init__(self, diary: list[str], failure: Exception | None = None) -> None:
        self.records: list[Any] = []
        self.executions: list[Any] = []
        self.intents: list[Any] = []
        self.bases: list[Any] = []
        self.diary = diary
        self.failure = failure
        self.intent_failure: Exception | None = None
        self.look_failure: OSError | None = None
        self.mend_failure: OSError | None = None

    def look(self) -> None:
        if self.look_failure is not None:
            raise self.look_failure

    def mend(self) -> None:
        self.diary.append("mended")
        if self.mend_failure is not None:
            raise self.mend_failure

    def explain(self, basis: bytes) -> None:
        self.bases.append(json.loads(basis))

    def intend(self, intent: bytes) -> None:
        self.diary.append("intended")
        if self.intent_failure is not None:
            raise self.intent_failure
        self.intents.append(json.loads(intent))

    def write_all(self, records: Sequence[RecordLines]) -> dict[int, OSError]:
        for envelope, execution in map(whole_views, records):
            self.diary.append("recorded")
            if self.failure is not None:
                raise self.failure
            self.records.append(json.loads(envelope))
            self.executions.append(json.loads(execution))
        return {}


class FakeClock:
    """Every look at it is a quarter of a second after the one before, or as far as it is told."""

    def __init__(self, step: float = 0.25) -> None:
        self.ticks = 0.0
        self.step = step

    def now(self) -> str:
        return "2026-01-02T03:04:05.678Z"

    def tick(self) -> float:
        self.ticks += self.step
        return self.ticks


class CountingIds:
    deterministic = False

    def __init__(self) -> None:
        self.count = 0

    def name(self, content: bytes) -> IdBytes:
        assert content == b""
        return next(self.drawn)

    @property
    def drawn(self) -> Iterator[IdBytes]:
        self.count += 1
        yield b"request-%d" % self.count, b"trace-%d" % self.count, b"span-%d" % self.count


class World:
    """A pipeline among fakes."""

    def __init__(
        self,
        behave: Callable[[], Any] = lambda: "hello",
        *,
        sink_failure: Exception | None = None,
        ids: Any = None,
        turn: Any = None,
        step: float = 0.25,
        **given: Any,
    ) -> None:
        rules: dict[str, Any] = {"callers": CALLERS, **given}
        self.diary: list[str] = []
        self.warnings: list[str] = []
        self.executor = FakeExecutor(behave, self.diary)
        self.approvals = FakeApprovals(self.diary)
        self.sink = FakeSink(self.diary, sink_failure)
        self.pipeline = Pipeline(
            catalog=CATALOG,
            rules=Rules(**rules),
            executor=self.executor,
            approvals=self.approvals,
            sink=self.sink,
            clock=FakeClock(step),
            ids=ids or CountingIds(),
            warn=self.warnings.append,
            turn=turn,
        )

    async def completed(self, call: Call | Exchange) -> Completed:
        completed = await self.pipeline.run(Exchange(call) if isinstance(call, Call) else call)
        self.diary.append("returned")
        return completed

    def cross(self, call: Call | Exchange) -> Completed:
        return asyncio.run(self.completed(call))

    def run(self, call: Call | Exchange) -> Any:
        return self.cross(call).outcome

    @property
    def record(self) -> Any:
        (record,) = self.sink.records
        return record

    @property
    def execution(self) -> Any:
        (execution,) = self.sink.executions
        return execution


def a_call(**changes: Any) -> Call:
    call = Call(
        arrival=Arrival("test", "test", key=KEY),
        method="mcp.tool.invoke",
        tool="echo",
        arguments={"text": CANARY},
        input_bytes=22,
        context=CallerContext(),
        trace=None,
        content={"method": "mcp.tool.invoke", "params": {}},
    )
    return replace(call, **changes)


class FakeExchange(Exchange):
    """A call with the behaviour that a test gives it."""

    def __init__(self, call: Call, **behaviour: Any) -> None:
        super().__init__(call)
        for name, value in behaviour.items():
            setattr(self, name, value)


def exchange_of(call: Call, **behaviour: Any) -> FakeExchange:
    return FakeExchange(call, **behaviour)


NO_KEY = Arrival("test", "test")
WRONG_KEY = Arrival("test", "test", key="wrong")
GUEST = Arrival("test", "test", key=GUESTS_KEY)
OPERATOR = Arrival("test", "test", key=OPERATORS_KEY)


def raising(error: BaseException) -> Callable[[], Any]:
    def behave() -> Any:
        raise error

    return behave


def case(name: str, *values: object) -> Any:
    return pytest.param(*values, id=name)


def refusal(name: str, reason: Reason, **changes: Any) -> Any:
    return pytest.param(changes, reason, id=name)


FLAW = Refused(Reason.BAD_ENVELOPE)

ASKING = a_policy(a_rule("ask", tools=["refund", "echo"]))
