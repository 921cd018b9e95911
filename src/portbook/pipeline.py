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

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar, cast

from portbook.canonical import canonical_bytes, json_bytes
from portbook.clock import Clock
from portbook.dialects.exchange import Exchange
from portbook.envelope.call_envelope import KnownRun
from portbook.errors import Ending, Failed, Reason, Refused
from portbook.exception_place import Fault, place_of
from portbook.executors.unsent import NothingSent
from portbook.globs import matches
from portbook.ids import Ids
from portbook.model import (
    JSON,
    Call,
    Caller,
    Completed,
    Done,
    Draft,
    DraftReport,
    Identity,
    InputNeeded,
    JSONObject,
    Kind,
    Outcome,
    Report,
    Run,
)
from portbook.policy import Action, Decision, PolicyInput, decide
from portbook.provenance.occasion import Occasion
from portbook.redaction import Redactor
from portbook.stages.approval import ApprovalStage, unusable
from portbook.stages.checked_result import bytes_of, checked, checked_relay
from portbook.stages.ports import LARGE_BYTES, Approvals, AtOnce, Executor, OffLoop, Sink
from portbook.stages.prepared_tool import PreparedTool
from portbook.stages.recorder import Recorder
from portbook.stages.redacted_client import redacted_client
from portbook.stages.rules import Rules
from portbook.stages.state import CallState
from portbook.stages.tool_errors import failure_by
from portbook.tools.catalog import Catalog, Tool
from portbook.tools.spec import Effect, ToolError
from portbook.tools.stated_error import stated_bytes
from portbook.wire.trace_context import is_trace_id

__all__ = ["Pipeline"]

_T = TypeVar("_T")

_UNKNOWN: Final[dict[Kind, Reason]] = {
    "tool": Reason.UNKNOWN_TOOL,
    "resource": Reason.UNKNOWN_RESOURCE,
    "prompt": Reason.UNKNOWN_PROMPT,
    "completion": Reason.UNKNOWN_PROMPT,
}

# Details of a failure that an API or a server behind the tool wrote.
_WORDS_OF_SERVERS: Final = ("upstream_body", "upstream_content", "error")

# The longest message of a tool beside its progress, in characters.
_MAX_MESSAGE: Final = 2000


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
    ) -> None:
        """Run calls; `on_fault` receives exceptions of tools, `off_loop` does the work on large values."""
        self._catalog = catalog
        self._rules = rules
        self._executor = executor
        self._approvals = approvals
        self._approving = ApprovalStage(approvals, warn)
        self._clock = clock
        self._ids = ids
        self._warn = warn
        self._on_fault = on_fault
        self._off_loop = off_loop or AtOnce()
        self._recorder = Recorder(sink, clock, warn, deterministic=ids.deterministic)

    @property
    def rules(self) -> Rules:
        """Return the rules in force."""
        return self._rules

    @property
    def is_recording(self) -> bool:
        """Return whether the last record could be written."""
        return self._recorder.is_recording

    def govern(self, rules: Rules) -> None:
        """Put changed rules into force, for calls that begin from now on."""
        self._rules = rules

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
        decision = decide(self._rules.policy, subject)
        return None if decision.reason is None else Refused(decision.reason, details={"rule": decision.rule})

    async def run(self, exchange: Exchange) -> Completed:
        """Run the call of `exchange` through every stage and record the outcome."""
        started, call = self._clock.tick(), exchange.call
        state = CallState(
            exchange=exchange,
            call=call,
            rules=self._rules,
            identity=self._name(call),
            redacting=self._redactor,
            started=started,
        )
        outcome: Outcome | None = None
        try:
            outcome = await self._cross(state)
        except Ending as ending:
            outcome = _as_outcome(ending, state)
            if isinstance(outcome, Failed):
                outcome.envelope = self._enclosed(state, outcome)
        except InputNeeded as needed:
            outcome = _paused(state, needed)
        except Exception as error:  # noqa: BLE001 - an unexpected exception is recorded, then answered
            outcome = _cut_short(Reason.INTERNAL, state, place_of(error))
        finally:  # a cancelled call leaves through here, and is recorded like any other
            duration_ms = self._duration_ms(state)
            outcome = outcome or _cut_short(Reason.CANCELLED, state)
            outcome = self._recorder.record(state, outcome, duration_ms)
        return Completed(outcome, state.identity, duration_ms, state.is_redacted, state.approval)

    async def _cross(self, state: CallState) -> Done:
        call, rules, exchange = state.call, state.rules, state.exchange
        if call.flaw is not None:
            raise call.flaw
        self._recorder.require(rules)
        if exchange.act is not None:
            return await self._operate(state, exchange.act)
        state.caller = caller = self._identify(call, rules)
        if exchange.handler is not None:
            result = exchange.handler(caller)
            return _sealed(state, result, bytes_of(result))
        row = self._resolve(call, caller, rules)
        state.tool = tool = row.tool
        if rules.records_arguments:
            await self._sized(call.input_bytes, state.shown)
        state.decision = decision = row.decision or row.policy.decide(_subject(state, tool, caller))
        self._heed(decision, caller, rules)
        if not tool.input.allows(call.arguments):
            raise Refused(Reason.BAD_ARGUMENTS, tool.input.findings(call.arguments))
        if decision.action is Action.ALLOW:
            return await self._perform(state, row)
        _require_runnable(tool, call)
        await self._sized(call.input_bytes, state.shown)
        state.approval = ticket = await self._approving.admit(state, tool, decision, caller)
        try:
            self._require_unchanged(state, tool, ticket)
            done = await self._perform(state, row)
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

    def _identify(self, call: Call, rules: Rules) -> Caller:
        try:
            return rules.callers.identify(call.arrival.key)
        except OSError as error:
            raise unusable(error, self._warn) from None

    def _require_unchanged(self, state: CallState, tool: Tool, ticket: str) -> None:
        """Check that the key and the policy of a call have not changed while it waited for approval.

        Raises `Refused` if they have.
        """
        rules = self._rules
        caller = self._identify(state.call, rules)
        is_same = rules.policy.digest == state.rules.policy.digest
        if not is_same or not matches(caller.tools, tool.spec.name):
            raise Refused(Reason.APPROVAL_REFUSED, details={"approval_id": ticket, "why": "policy"})

    async def _operate(self, state: CallState, act: Callable[[], Awaitable[JSON]]) -> Done:
        """Perform an action of the operator."""
        call = state.call
        state.caller = state.rules.callers.identify_operator(call.arrival.key)
        state.has_begun = True
        result = await act()
        state.approval = call.approval  # only now: a record does not name an approval that does not exist
        state.operator_said = call.operator_says
        return _sealed(state, result, bytes_of(result))

    async def _perform(self, state: CallState, row: PreparedTool) -> Done:
        """Run the tool, then check, redact and seal its result."""
        tool = row.tool
        state.exchange.began(tool)
        if row.has_intent:
            self._recorder.intend(state)
        state.has_begun = True
        try:
            result = await self._execute(state, row)
        except NothingSent:
            state.has_begun = False
            raise
        except (Exception, InputNeeded):
            state.exchange.send_reports()
            raise
        state.exchange.send_reports()
        body = bytes_of(result)
        if len(body) <= LARGE_BYTES:
            return self._finished(state, tool, result, body)
        return await self._off_loop.run(partial(self._finished, state, tool, result, body))

    async def _sized(self, size: int, work: Callable[[], _T]) -> _T:
        """Return what `work` returns; work on a value of this `size` is done off the loop if it is large."""
        return work() if size <= LARGE_BYTES else await self._off_loop.run(work)

    def _finished(self, state: CallState, tool: Tool, result: Any, body: bytes) -> Done:
        """Check, redact, enclose and seal a result. Large results are finished in a thread."""
        if tool.spec.upstream is not None and tool.spec.kind == "tool":
            whole, result, body = checked_relay(result, body, tool, state)
            return _sealed(state, whole, body, self._enclosed(state, result))
        result, body = checked(result, body, tool, state)
        return _sealed(state, result, body, self._enclosed(state, result))

    def _resolve(self, call: Call, caller: Caller, rules: Rules) -> PreparedTool:
        name, kind = call.tool, call.kind
        if name is None or not matches(caller.tools, name):
            raise Refused(_UNKNOWN[kind])  # a tool that the caller may not see counts as unknown
        row = rules.prepared.get((kind, name))
        if row is None or (row.switch is not None and not row.switch.is_on):
            tool = self._catalog.find(name, kind)  # perhaps a new one, in place of one that was switched off
            if tool is None:
                raise self._missing(name, kind)
            row = rules.prepare(tool)
        return row

    def _missing(self, name: str, kind: Kind) -> Refused:
        """Return the refusal of a call to something that is not served."""
        withheld = self._catalog.withheld_as(name, kind)
        return Refused(_UNKNOWN[kind]) if withheld is None else withheld.refusal()

    def _heed(self, decision: Decision, caller: Caller, rules: Rules) -> None:
        """Check that policy does not deny the call, and that its caller is within the rate limit."""
        if decision.action is Action.DENY:
            assert decision.reason is not None
            raise Refused(decision.reason, details={"rule": decision.rule})
        seconds = rules.rates.take(caller.name, self._clock.tick())
        if seconds is not None:
            raise Refused(Reason.RATE_LIMITED, details={"retry_after_s": seconds})

    async def _execute(self, state: CallState, row: PreparedTool) -> Any:
        tool, call, report = row.tool, state.call, state.exchange.report
        run = Run(
            row.timeout_ms,
            state.identity,
            state.session,
            call.context.correlation,
            None if report is None else _without_secrets(report, state),
            partial(redacted_client, state, self._off_loop),
            None if state.caller is None else state.caller.name,
            state.exchange.resumption,
            state.approval is not None,
        )
        try:
            return await self._executor.execute(tool, call.arguments, run)
        except Refused as refused:
            if refused.reason is not Reason.POLICY_VIOLATION:
                raise
            state.decision = denied = state.rules.policy.denied_where_dialled()
            raise Refused(refused.reason, note=refused.note, details={"rule": denied.rule}) from None
        except Ending:
            raise
        except Exception as error:  # noqa: BLE001 - a tool may raise anything
            named, request = f"{tool.spec.kind} {tool.spec.name}", state.identity.request
            self._on_fault(Fault(error, named, request, isinstance(error, ToolError)))
            failure = await self._sized(stated_bytes(error), partial(failure_by, error, state))
            raise failure from None

    def _enclosed(self, state: CallState, outcome: JSON | Failed) -> JSONObject | None:
        """Return the envelope of an outcome, if the caller or the operator wants one."""
        call, rules = state.call, state.rules
        controls = rules.enclosing.controls_of(call.wish)
        if controls is None or not controls.is_wanted or state.tool is None or state.decision is None:
            return None
        policy, rule = rules.policy, state.decision.rule
        occasion = Occasion(state.identity.request, self._clock.now(), self._duration_ms(state))
        known = KnownRun(
            state.tool,
            call.arguments,
            policy.digest,
            rule,
            policy.digest_of_rule(rule),
            occasion,
            state.is_redacted,
        )
        return rules.enclosing.enclose(outcome, controls, call.wish, known)

    def _duration_ms(self, state: CallState) -> float:
        return round((self._clock.tick() - state.started) * 1000, 3)

    def _redactor(self) -> Redactor | None:
        return self._rules.redactor

    def _name(self, call: Call) -> Identity:
        canonical = b""
        if self._ids.deterministic:
            content = call.content
            canonical = content if isinstance(content, bytes) else canonical_bytes(content)
        identity = self._ids.name(canonical)
        trace = call.trace
        return identity if trace is None or self._is_secret(trace) else identity._replace(trace=trace)

    def _is_secret(self, trace: str) -> bool:
        """Return whether a trace id that the client sent holds a secret."""
        redactor = self._rules.redactor
        # A W3C trace id is a random number, which sometimes looks like a secret.
        return redactor is not None and not is_trace_id(trace) and redactor.redact_text(trace) != trace


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


def _require_runnable(tool: Tool, call: Call) -> None:
    """Raise `Refused` if the tool could not run with these arguments, although its schema allows them.

    Checked before approval is requested; a call without approval finds out when it runs.
    """
    refusal = None if tool.spec.refuse is None else tool.spec.refuse(call.arguments)
    if refusal is not None:
        raise refusal


def _without_secrets(report: DraftReport, state: CallState) -> Report:
    """Return `report` with its messages cut, and redacted when they are sent."""

    def tell(progress: float, total: float | None, message: str | None) -> None:
        cut = None if message is None else message[:_MAX_MESSAGE]
        report(progress, total, None if cut is None else Draft(len(cut), partial(state.without_secrets, cut)))

    return tell


def _sealed(state: CallState, result: JSON, body: bytes, envelope: JSONObject | None = None) -> Done:
    """Return the result in the form of its wire contract."""
    sealed = state.exchange.seal(state.tool, result, body, envelope, state.is_redacted)
    return Done(body, sealed, None if envelope is None else json_bytes(envelope))


def _paused(state: CallState, needed: InputNeeded) -> Outcome:
    """Return the outcome of a call whose tool needs answers of the client first."""
    needed.is_redacted = state.is_redacted
    try:
        paused = state.exchange.pause(needed)
    except Failed as failure:
        return failure
    if paused is None:
        return Failed(Reason.NO_ANSWER, note="asked where nobody can answer")
    return Done(b"", paused, is_asking=True)


def _as_outcome(ending: Ending, state: CallState) -> Outcome:
    # An exception that is kept keeps every frame that it passed through alive.
    ending.__traceback__ = None
    ending.__context__ = None
    assert isinstance(ending, Refused | Failed)
    # Findings hold no values, but names of members that the client sent.
    if ending.findings:
        ending.findings = tuple(
            replace(
                finding,
                pointer=state.without_secrets(finding.pointer),
                message=state.without_secrets(finding.message),
            )
            for finding in ending.findings
        )
    if isinstance(words := ending.details.get("detail"), str):  # a backend's words
        ending.details = {**ending.details, "detail": state.without_secrets(words)}
    for name in _WORDS_OF_SERVERS:
        if name in ending.details:
            ending.details = {**ending.details, name: state.redacted(cast("JSON", ending.details[name]))}
    if ending.difference is not None and state.redactor is not None:  # it has texts of a server
        ending.difference = cast("JSONObject", state.redactor.redact(cast("JSON", ending.difference))[0])
    ending.only_read = _only_reads(state)
    if state.is_redacted:
        ending.details = {**ending.details, "redacted": True}
    return ending


def _cut_short(reason: Reason, state: CallState, note: str | None = None) -> Outcome:
    outcome = Failed(reason, note=note) if state.has_begun else Refused(reason, note=note)
    outcome.only_read = _only_reads(state)
    return outcome


def _only_reads(state: CallState) -> bool:
    return state.tool is not None and state.tool.spec.effect is Effect.READ
