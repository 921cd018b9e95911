"""The path of a call, stage by stage. Start reading here.

    read ▶ authenticate ▶ resolve ▶ decide ▶ check arguments ▶ approve ▶ execute
                                                                            │
                record ◀ seal ◀ enclose ◀ redact ◀ check result ◀───────────┘

A stage takes the result of the stage before it, or raises `Refused` (nothing ran) or `Failed` (it ran, or may
have). The order is a promise: a caller without a key learns nothing about the tools, and a caller that may
not call a tool learns nothing about its schema; no person is asked to approve a call that could not run; no
call with effects runs before its intent is written; no secret leaves, and no answer leaves before its record
is written.

The pipeline knows no wire contract, no transport, and no clock but the one it is given.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from types import CoroutineType
from typing import Any, Final, cast

from portbook.access.rate_limit import SecondsToWait
from portbook.canonical import STRICT, NotWritten, canonical_bytes, json_bytes, write
from portbook.clock import Clock
from portbook.dialects.exchange_contract import Exchange
from portbook.errors import Ending, Failed, Reason, Refused
from portbook.exception_place import Fault, place_of
from portbook.executors.cancelled_before_sending import NothingSent
from portbook.globs import matches
from portbook.ids import Ids
from portbook.model import (
    JSON,
    NO_WISH,
    ApiAnswer,
    Call,
    Caller,
    Completed,
    Done,
    IdBytes,
    InputNeeded,
    JSONObject,
    Kind,
    Outcome,
    Run,
)
from portbook.policy import Action, Decision, PolicyInput, decide
from portbook.stages.approval_by_operator_or_client import (
    ApprovalStage,
    require_runnable,
    require_unchanged,
    unusable,
)
from portbook.stages.checked_and_redacted_results import (
    bytes_of,
    checked_relay,
    enclosed,
    has_null,
    is_suspect,
    may_be_enclosed,
    redacted,
    redacted_client,
    redacted_report,
    require_finite,
)
from portbook.stages.ended_without_result import as_outcome, cut_short, fail, paused
from portbook.stages.ports import LARGE_BYTES, Approvals, AtOnce, EndOfTurn, Executor, OffLoop, Sink
from portbook.stages.recorder import Recorder
from portbook.stages.rules_in_force import InForce, PreparedTool, Rules
from portbook.stages.state import CallState
from portbook.text.named_tuple import new_tuple
from portbook.tools.catalog import Catalog, Tool
from portbook.wire.parsing import parse
from portbook.wire.trace_context import is_trace_id

__all__ = ["Pipeline"]

_UNKNOWN: Final[dict[Kind, Reason]] = {
    "tool": Reason.UNKNOWN_TOOL,
    "resource": Reason.UNKNOWN_RESOURCE,
    "prompt": Reason.UNKNOWN_PROMPT,
    "completion": Reason.UNKNOWN_PROMPT,
}

# Taken from here by name: to find a member of an enumeration takes longer than to compare it.
_ALLOW: Final = Action.ALLOW
_DENY: Final = Action.DENY

# From here on, a result is decoded once for all that is searched for in it: bytes are searched more slowly.
_LONG_BYTES: Final = 2048

# A result up to this size is finished on the loop, if it certainly has no secret: a few steps of native code,
# 2 ms for a megabyte.
_AT_ONCE_BYTES: Final = 4 << 20


class Pipeline:
    """Takes a call, returns its outcome, and writes its record."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        rules: Rules,
        executor: Executor,
        approvals: Approvals,
        sink: Sink,
        clock: Clock,
        ids: Ids,
        warn: Callable[[str], None] = lambda _: None,
        on_fault: Callable[[Fault], None] = lambda _: None,
        off_loop: OffLoop | None = None,
        turn: EndOfTurn | None = None,
    ) -> None:
        """Run calls; `on_fault` receives exceptions of tools, `off_loop` does the work on large values.

        Records of calls that end in the same `turn` are written at once.
        """
        self._catalog = catalog
        self._in_force = InForce(rules)
        self._executor = executor
        self._approvals = approvals
        self._approving = ApprovalStage(approvals, warn)
        self._clock = clock
        self._tick = clock.tick
        self._ids = ids
        self._is_deterministic = ids.deterministic
        self._warn = warn
        self._on_fault = on_fault
        self._off_loop = off_loop or AtOnce()
        self._turn = turn
        self.recorder = Recorder(sink, clock, warn, deterministic=ids.deterministic)
        """Writes the records. A door that answers many messages at once lets it hold them meanwhile."""

    @property
    def rules(self) -> Rules:
        """Return the rules in force."""
        return self._in_force.rules

    @property
    def is_recording(self) -> bool:
        """Return whether the last record could be written."""
        return self.recorder.is_recording

    def govern(self, rules: Rules) -> None:
        """Put changed rules into force, for calls that begin from now on."""
        self._in_force.rules = rules

    def visible_to(self, caller: Caller) -> list[Tool]:
        """Return the tools that the caller may see, ordered by name."""
        return [tool for tool in self._catalog if matches(caller.tools, tool.spec.name)]

    def refuse_hearing(self, uri: str, caller: Caller, session: str | None) -> Refused | None:
        """Return why a caller may not subscribe to the resource at `uri`: the refusal of reading it."""
        name, taken = self._catalog.locate(uri) or ("", {})
        tool = self._catalog.find(name, "resource") if matches(caller.tools, name) else None
        if tool is None:
            return Refused(Reason.UNKNOWN_RESOURCE)
        subject = PolicyInput.of(tool.spec, taken, caller=caller.name, session=session)
        decision = decide(self._in_force.rules.policy, subject)
        return None if decision.reason is None else Refused(decision.reason, details={"rule": decision.rule})

    async def run(self, exchange: Exchange) -> Completed:
        """Run the call of `exchange` through every stage and record the outcome."""
        begun = self.begin(exchange)
        state = begun if isinstance(begun, CallState) else await begun
        self.recorder.flush()
        return state.completed()

    def begin(self, exchange: Exchange) -> CallState | Coroutine[Any, Any, CallState]:
        """Run the call of `exchange` as far as it goes without waiting: nearly always to its end.

        Where it has to wait, return a coroutine that runs the rest. It has to be stepped at once, so that it
        also ends, and is recorded, where it is closed before its task runs.
        """
        tick = self._tick  # taken, then called: else Python looks for a method of that name first, each time
        started = tick()
        is_named = self._is_deterministic or exchange.call.trace is not None
        state = CallState()
        state.exchange, state.call, state.started = exchange, exchange.call, started
        state.ids = self._name(exchange) if is_named else next(self._ids.drawn, None) or self._ids.name(b"")
        state.in_force = in_force = self._in_force
        state.rules = in_force.rules
        state.outcome = state.caller = state.tool = state.decision = state.forms = state.bases = None
        state.approval = state.answer = state.links = state.operator_said = None
        state.known_identity = state.known_shown = None
        state.is_redacted = state.has_begun = False
        try:
            crossed = self._cross(state)
            if type(crossed) is not Done:
                return self._wait(state, cast("Coroutine[Any, Any, Done]", crossed))
            state.outcome = crossed
        except (Exception, InputNeeded) as error:  # noqa: BLE001 - recorded, then answered
            state.outcome = self._outcome_of(error, state)
        except BaseException:  # the process is about to end
            self._end_cancelled(state)
            raise
        self.recorder.record(state)
        return state

    async def _wait(self, state: CallState, crossing: Coroutine[Any, Any, Done]) -> CallState:
        """Run the rest of a call that has to wait."""
        try:
            try:
                state.outcome = await crossing
            except (Exception, InputNeeded) as error:  # noqa: BLE001 - recorded, then answered
                state.outcome = self._outcome_of(error, state)
        except BaseException:  # a cancelled call leaves through here, and is recorded like any other
            self._end_cancelled(state)
            self.recorder.flush()
            raise
        self.recorder.record(state, is_held=True)
        if self._turn is None:
            self.recorder.flush()
        else:
            await self._turn.end(self.recorder.flush)
        return state

    def _outcome_of(self, error: BaseException, state: CallState) -> Outcome:
        """Return the outcome of a call that did not end with a result."""
        if isinstance(error, InputNeeded):
            return paused(state, error)
        if not isinstance(error, Ending):
            return cut_short(Reason.INTERNAL, state, place_of(error))
        outcome = as_outcome(error, state)
        if isinstance(outcome, Failed):
            try:
                outcome.envelope = enclosed(state, outcome, self._clock)
            except Exception as fault:  # noqa: BLE001 - a bug of ours is recorded and answered, here too
                return cut_short(Reason.INTERNAL, state, place_of(fault))
        return outcome

    def _end_cancelled(self, state: CallState) -> None:
        """Record a call that ended without an outcome."""
        state.outcome = cut_short(Reason.CANCELLED, state)
        self.recorder.record(state)

    def _cross(self, state: CallState) -> Done | Coroutine[Any, Any, Done]:
        call, rules, exchange = state.call, state.rules, state.exchange
        if call.flaw is not None:
            raise call.flaw
        if not self.recorder.has_looked:
            self.recorder.require(rules)
        if exchange.act is not None:
            return self._operate(state, exchange.act)
        caller = rules.callers.without_key if call.arrival.key is None else None
        state.caller = caller = caller or self._identify(rules, call.arrival.key)
        if exchange.handler is not None:
            result = exchange.handler(caller)
            return _sealed(state, result, bytes_of(result))
        row = None if call.tool is None else rules.prepared[call.kind].get(call.tool)
        if row is None or "*" not in caller.tools or not (row.switch is None or row.switch.is_on):
            row = self._resolve(call, caller, rules)
        state.tool, state.bases = row.tool, row.bases
        if not row.is_settled:
            return self._admit(state, row, caller)
        state.decision, state.forms = row.decision, row.forms
        accepts = row.accepts
        if not accepts(call.arguments):
            raise _bad_arguments(row.tool, call)
        return self._perform(state, row)

    def _identify(self, rules: Rules, key: str | None) -> Caller:
        """Return the caller of a key.

        Raises `Refused` where it has none, and where the keys cannot be read.
        """
        try:
            return rules.callers.identify(key)
        except OSError as error:
            raise unusable(error, self._warn) from None

    def _admit(self, state: CallState, row: PreparedTool, caller: Caller) -> Done | Coroutine[Any, Any, Done]:
        """Admit a call that is decided on its own."""
        if state.rules.records_arguments and state.call.input_bytes > LARGE_BYTES:
            return self._decide_large(state, row, caller)
        return self._decide(state, row, caller)

    async def _decide_large(self, state: CallState, row: PreparedTool, caller: Caller) -> Done:
        """Redact large arguments off the loop, for the record; then decide."""
        await self._off_loop.run(state.shown)
        return await _settled(self._decide(state, row, caller))

    def _decide(
        self, state: CallState, row: PreparedTool, caller: Caller, *, is_counted: bool = False
    ) -> Done | Coroutine[Any, Any, Done]:
        """Decide, check the arguments, and run the tool, once it is approved."""
        call, rules, tool = state.call, state.rules, row.tool
        state.decision = decision = row.decision or row.policy.decide(_subject(state, tool, caller))
        state.forms = row.forms  # only now: the decision is part of the forms
        if decision.action is _DENY:
            assert decision.reason is not None
            raise Refused(decision.reason, details={"rule": decision.rule})
        if rules.rates.per_minute is not None and not is_counted:
            seconds = rules.rates.take(caller.name, self._tick())
            if seconds is not None:
                if isinstance(seconds, int):
                    raise Refused(Reason.RATE_LIMITED, details={"retry_after_s": seconds})
                return self._decide_counted(state, row, caller, seconds)
        if not row.accepts(call.arguments):
            raise _bad_arguments(tool, call)
        if decision.action is _ALLOW:
            return self._perform(state, row)
        return self._approve(state, row, decision, caller)

    async def _decide_counted(
        self,
        state: CallState,
        row: PreparedTool,
        caller: Caller,
        counting: Coroutine[Any, Any, SecondsToWait],
    ) -> Done:
        """Decide once the store has counted the call."""
        try:
            seconds = await counting
        except OSError as error:
            raise unusable(error, self._warn) from None
        if seconds is not None:
            raise Refused(Reason.RATE_LIMITED, details={"retry_after_s": seconds})
        return await _settled(self._decide(state, row, caller, is_counted=True))

    async def _approve(self, state: CallState, row: PreparedTool, decision: Decision, caller: Caller) -> Done:
        """Run the tool once the call is approved."""
        call, tool = state.call, row.tool
        if call.input_bytes <= LARGE_BYTES:
            require_runnable(tool, call)
        else:
            await self._off_loop.run(partial(require_runnable, tool, call))
            await self._off_loop.run(state.shown)
        state.approval = ticket = await self._approving.admit(state, tool, decision, caller)
        try:
            rules = self._in_force.rules
            require_unchanged(state, tool, ticket, rules, self._identify(rules, call.arrival.key))
            self._require_owned(ticket)
            done = await _settled(self._perform(state, row))
        except InputNeeded as needed:  # it will run again, under the same ticket
            needed.approval = ticket
            await self._approvals.restore(ticket)
            raise
        except (Refused, NothingSent):  # it never ran: the approval stays valid
            self._approvals.give_back(ticket)
            raise
        except BaseException:
            self._approvals.finish(ticket, is_done=False)
            raise
        await self._approvals.complete(ticket)
        return done

    def _require_owned(self, ticket: str) -> None:
        """Check that no other process takes the call of this ticket for lost. Raises `Refused` if it may."""
        if not self._approvals.may_start(ticket):
            raise Refused(Reason.STORE_UNUSABLE, note="lease lost")

    async def _operate(self, state: CallState, act: Callable[[], Awaitable[JSON]]) -> Done:
        """Perform an action of the operator."""
        call = state.call
        state.caller = state.rules.callers.identify_operator(call.arrival.key)
        state.has_begun = True
        result = await act()
        state.approval = call.approval  # only now: a record does not name an approval that does not exist
        state.operator_said = call.operator_says
        return _sealed(state, result, bytes_of(result))

    def _perform(self, state: CallState, row: PreparedTool) -> Done | Coroutine[Any, Any, Done]:
        """Run the tool, then check, redact and seal its result."""
        if state.exchange.is_heeded:
            state.exchange.began(row.tool)
        if row.has_intent:
            self.recorder.intend(state)
            if state.approval is not None:  # again: a disk may have taken its time
                self._require_owned(state.approval)
        state.has_begun = True
        start = row.start
        try:
            result = start(state.call.arguments, row.run or self._run_of(state, row))
        except (Exception, InputNeeded, NothingSent) as error:  # noqa: BLE001 - a tool may raise anything
            return fail(error, state, row.tool, self._on_fault, self._off_loop)
        if type(result) is CoroutineType:
            return self._perform_waiting(state, row.tool, cast("Coroutine[Any, Any, Any]", result))
        if row.run is None:  # else it had no way to report anything
            state.exchange.send_reports()
        return self._finish(state, row.tool, result)

    async def _perform_waiting(
        self, state: CallState, tool: Tool, executing: Coroutine[Any, Any, Any]
    ) -> Done:
        """Wait for the tool, then check, redact and seal its result."""
        try:
            result = await executing
        except (Exception, InputNeeded, NothingSent) as error:  # noqa: BLE001 - a tool may raise anything
            return await fail(error, state, tool, self._on_fault, self._off_loop)
        state.exchange.send_reports()
        rest = self._finish(state, tool, result)
        del result  # a large one waits for its turn as bytes alone
        return await _settled(rest)

    def _run_of(self, state: CallState, row: PreparedTool) -> Run:
        """Return what the executor gets about a call."""
        report = state.exchange.report
        return Run(
            row.timeout_ms,
            state.identity,
            state.session,
            state.call.context.correlation,
            None if report is None else redacted_report(report, state),
            partial(redacted_client, state, self._off_loop),
            state.hear,
            None if state.caller is None else state.caller.name,
            state.exchange.resumption,
            is_approved=state.approval is not None,
        )

    def _finish(
        self,
        state: CallState,
        tool: Tool,
        result: Any,
        body: bytes | None = None,
        clean: str | None = None,
    ) -> Done | Coroutine[Any, Any, Done]:
        """Check, redact, enclose and seal what the tool returned, whose JSON is `body` if it was written.

        `clean` is the text of `body`, where it certainly has no secret. What takes long is done off the loop:
        then this runs again, in a thread.
        """
        if body is None:
            try:
                body = write(result, None, STRICT)
            except NotWritten:
                body = bytes_of(result)
            if len(body) > _LONG_BYTES:
                return self._finish_long(state, tool, result, body)
            if body.partition(b"null")[1]:  # not `find`: reading its arguments takes longer
                require_finite(body, result)
        if tool.spec.upstream is not None and tool.spec.kind == "tool":
            whole, result, body = checked_relay(result, body, tool, state, is_clean=clean is not None)
            return _sealed(state, whole, body, enclosed(state, result, self._clock))
        redactor = state.in_force.rules.redactor
        output = tool.output if state.answer is None else tool.output_of(state.answer.status)
        accepts = output.accepts
        try:
            is_allowed = accepts(result)
        except ValueError:  # the library accepts fewer types than our writer
            is_allowed = False
        if not is_allowed:
            raise Failed(Reason.BAD_RESULT, output.findings(result))
        may_be_altered = clean is None and tool.spec.secrets != "give"
        if may_be_altered and redactor is not None and redactor.might_touch(body):
            result, body = redacted(result, body, tool, output, state, redactor)
        state.links = None if state.answer is None else _links_of(state, state.answer)
        wish, envelope = state.call.wish, None
        if (wish is not None and wish is not NO_WISH) or state.rules.enclosing.is_default:
            envelope = enclosed(state, result, self._clock)
        sealed = state.exchange.seal(tool, result, body, envelope, state.is_redacted, state.links, clean)
        return new_tuple(
            Done, (body, sealed, json_bytes(envelope) if envelope and sealed is None else None, False)
        )

    def _finish_long(
        self, state: CallState, tool: Tool, result: Any, body: bytes
    ) -> Done | Coroutine[Any, Any, Done]:
        """Finish a long result: in a thread, if it is large and may have a secret, or else on the loop.

        What an API or a server answered waits for its turn as bytes: as a value it takes up to thirty times
        as much memory, and how many answer at once is not ours to say.
        """
        text, is_large = body.decode(), len(body) > LARGE_BYTES
        if has_null(text):
            require_finite(body, result)
        is_quick = len(body) <= _AT_ONCE_BYTES and not (is_large and may_be_enclosed(state))
        if is_quick and not is_suspect(body, text, tool, state):
            return self._finish(state, tool, result, body, text)
        if not is_large:
            return self._finish(state, tool, result, body)
        is_foreign = tool.spec.operation is not None or tool.spec.upstream is not None
        given = None if is_foreign else (result,)

        def finish() -> Done:
            value = parse(body) if given is None else given[0]
            return cast("Done", self._finish(state, tool, value, body))

        return self._off_loop.run(finish)

    def _resolve(self, call: Call, caller: Caller, rules: Rules) -> PreparedTool:
        """Return the row of the tool that a call names, made with its first call.

        Raises `Refused` where there is no such tool.
        """
        name, kind = call.tool, call.kind
        if name is None or not ("*" in caller.tools or matches(caller.tools, name)):
            raise Refused(_UNKNOWN[kind])  # a tool that the caller may not see counts as unknown
        row = rules.prepared[kind].get(name)
        if row is None or (row.switch is not None and not row.switch.is_on):
            tool = self._catalog.find(name, kind)  # perhaps a new one, in place of one that was switched off
            if tool is None:
                raise self._missing(name, kind)
            row = rules.prepare(tool, self._executor.prepare(tool))
        return row

    def _missing(self, name: str, kind: Kind) -> Refused:
        """Return the refusal of a call to something that is not served."""
        withheld = self._catalog.withheld_as(name, kind)
        return Refused(_UNKNOWN[kind]) if withheld is None else withheld.refusal()

    def _name(self, exchange: Exchange) -> IdBytes:
        canonical = b""
        if self._ids.deterministic:
            content = exchange.content
            canonical = content if isinstance(content, bytes) else canonical_bytes(content)
        ids, trace = self._ids.name(canonical), exchange.call.trace
        return ids if trace is None or self._is_secret(trace) else (ids[0], trace.encode(), ids[2])

    def _is_secret(self, trace: str) -> bool:
        """Return whether a trace id that the client sent holds a secret."""
        redactor = self._in_force.rules.redactor
        # A W3C trace id is a random number, which sometimes looks like a secret.
        return redactor is not None and not is_trace_id(trace) and redactor.redact_text(trace) != trace


async def _settled(crossing: Done | Coroutine[Any, Any, Done]) -> Done:
    """Return the result of the next stages, whether they have to wait or not."""
    return crossing if isinstance(crossing, Done) else await crossing


def _subject(state: CallState, tool: Tool, caller: Caller) -> PolicyInput:
    call = state.call
    return PolicyInput.of(
        tool.spec,
        call.arguments,
        call.input_bytes,
        caller=caller.name,
        attempt=call.context.attempt,
        session=state.session,
    )


def _links_of(state: CallState, answer: ApiAnswer) -> list[JSON] | None:
    """Return the links that an API gave beside its result, redacted."""
    return cast("list[JSON]", state.redacted([*answer.links])) if answer.links else None


def _bad_arguments(tool: Tool, call: Call) -> Refused:
    return Refused(Reason.BAD_ARGUMENTS, tool.input.findings(call.arguments))


def _sealed(state: CallState, result: JSON, body: bytes, envelope: JSONObject | None = None) -> Done:
    """Return the result in the form of its wire contract."""
    sealed = state.exchange.seal(state.tool, result, body, envelope, state.is_redacted, state.links)
    return new_tuple(
        Done, (body, sealed, json_bytes(envelope) if envelope and sealed is None else None, False)
    )
