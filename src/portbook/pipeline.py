"""The path of a call, stage by stage. Start reading here.

    read ▶ authenticate ▶ resolve ▶ decide ▶ check arguments ▶ approve ▶ execute
                                                                            │
                record ◀ seal ◀ enclose ◀ redact ◀ check result ◀───────────┘

A stage takes what the one before it made, or raises `Refused` (nothing ran) or `Failed` (it ran, or may
have). The order is a promise: a caller without a key learns nothing of the tools, and one that may not call
a tool nothing of its schema; nobody is asked to approve a call that could not run; nothing with effects runs
before the intent is written down; no secret leaves, and no answer before its record is kept.

The pipeline knows no wire contract, no transport and no clock but the one it is handed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from traceback import walk_tb
from typing import Any, NamedTuple, cast

from portbook.approvals import Ask
from portbook.audit import Trail, envelope_view, execution_view, intent_view, without_secrets
from portbook.canonical import NotJSON, canonical_bytes, json_bytes
from portbook.clock import Clock, Identity, Ids, is_trace_id
from portbook.envelope.calls import Known
from portbook.errors import Ending, Failed, Finding, Reason, Refused
from portbook.governance import Governance
from portbook.model import JSON, Call, Caller, Done, JSONObject, Outcome, Run
from portbook.patterns import matches
from portbook.policy import Action, Decision, Subject, decide
from portbook.ports import Approvals, Executor, Sink
from portbook.provenance.record import Occasion
from portbook.redaction import Redactor
from portbook.tools.catalog import Catalog, Tool
from portbook.tools.spec import Effect

__all__ = ["Crossing", "Pipeline", "place_of"]

_OWN_FOLDER = __file__.rsplit("/", 1)[0] + "/"


class Crossing(NamedTuple):
    """A call that crossed the boundary: how it ended, its names in the record, and what was done to it."""

    outcome: Outcome
    identity: Identity
    duration_ms: float
    is_redacted: bool = False
    approval: str | None = None


class Pipeline:
    """Takes a call, returns its outcome, and writes the record of it."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        governance: Governance,
        executor: Executor,
        approvals: Approvals,
        sink: Sink,
        clock: Clock,
        ids: Ids,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._catalog = catalog
        self._governance = governance
        self._executor = executor
        self._approvals = approvals
        self._sink = sink
        self._clock = clock
        self._ids = ids
        self._warn = warn
        self.is_recording = True
        """Whether the last record could be kept."""

    def govern(self, governance: Governance) -> None:
        """Put other rules into force, for calls that begin from now on."""
        self._governance = governance

    async def run(self, call: Call) -> Crossing:
        """Bring `call` to its end, whatever that is, and record it."""
        trail = Trail(self._clock.tick())
        identity = self._name(call)
        governance = self._governance
        outcome: Outcome | None = None
        try:
            outcome = await self._cross(call, governance, identity, trail)
        except Ending as ending:
            outcome = _as_outcome(ending, governance.redactor)
            if isinstance(outcome, Failed):
                envelope = self._enclosed(call, outcome, governance, identity, trail)
                outcome.envelope = envelope
        except Exception as error:  # noqa: BLE001 - what nobody foresaw is recorded, then answered
            outcome = _cut_short(Reason.INTERNAL, trail, place_of(error))
        finally:  # a cancelled call leaves through here, and is recorded like any other
            duration_ms = self._duration_ms(trail)
            outcome = self._record(
                call, outcome or _cut_short(Reason.CANCELLED, trail), identity, governance, trail, duration_ms
            )
        return Crossing(outcome, identity, duration_ms, trail.is_redacted, trail.approval)

    @property
    def governance(self) -> Governance:
        """Return the rules in force."""
        return self._governance

    def visible_to(self, caller: Caller) -> list[Tool]:
        """Return the tools that the caller may know of, ordered by name."""
        return [tool for tool in self._catalog if matches(caller.tools, tool.spec.name)]

    async def _cross(self, call: Call, governance: Governance, identity: Identity, trail: Trail) -> Done:
        if call.flaw is not None:
            raise call.flaw
        self._require_sink(governance)
        if call.act is not None:
            trail.caller = governance.callers.identify_operator(call.arrival.key)
            trail.has_begun = True
            result = await call.act()
            trail.approval = call.approval  # only now: what is not there is not named in a record
            return _sealed(call, result, _bytes_of(result))
        trail.caller = caller = governance.callers.identify(call.arrival.key)
        if call.handler is not None:
            result = call.handler(caller)
            return _sealed(call, result, _bytes_of(result))
        trail.tool = tool = self._resolve(call, caller)
        trail.decision = decision = decide(governance.policy, _subject(call, tool, caller))
        self._heed(decision, caller, governance)
        if not tool.input.allows(call.arguments):
            raise Refused(Reason.BAD_ARGUMENTS, tool.input.findings(call.arguments))
        if decision.action is Action.ALLOW:
            return await self._perform(call, tool, governance, identity, trail)
        ask = _ask(call, tool, decision, caller, governance)
        trail.approval = ticket = await self._approvals.admit(ask, call.approval, call.wait_ms)
        try:
            done = await self._perform(call, tool, governance, identity, trail)
        except Refused:  # it never ran: what was approved may still be done
            self._approvals.give_back(ticket)
            raise
        except BaseException:
            self._approvals.finish(ticket, is_done=False)
            raise
        self._approvals.finish(ticket, is_done=True)
        return done

    async def _perform(
        self, call: Call, tool: Tool, governance: Governance, identity: Identity, trail: Trail
    ) -> Done:
        if tool.spec.effect is not Effect.READ:
            self._intend(call, governance, identity, trail)
        trail.has_begun = True
        result = await self._execute(tool, call, identity, governance)
        result, body = _checked(result, trail, tool, governance.redactor)
        return _sealed(call, result, body, self._enclosed(call, result, governance, identity, trail))

    def _enclosed(
        self, call: Call, outcome: JSON | Failed, governance: Governance, identity: Identity, trail: Trail
    ) -> JSONObject | None:
        """Return the envelope of an outcome, where its caller or the operator wants one."""
        controls = governance.enclosing.controls_of(call.wish)
        if controls is None or not controls.is_wanted or trail.tool is None or trail.decision is None:
            return None
        policy, rule = governance.policy, trail.decision.rule
        occasion = Occasion(identity.request, self._clock.now(), self._duration_ms(trail))
        known = Known(trail.tool, call.arguments, policy.digest, rule, policy.digest_of_rule(rule), occasion)
        return governance.enclosing.enclose(outcome, controls, call.wish, known)

    def _duration_ms(self, trail: Trail) -> float:
        return round((self._clock.tick() - trail.started) * 1000, 3)

    def _resolve(self, call: Call, caller: Caller) -> Tool:
        tool = (
            None
            if call.tool is None or not matches(caller.tools, call.tool)
            else self._catalog.find(call.tool)
        )
        if tool is None:  # one that the caller may not see is as unknown as one that is not there
            raise Refused(Reason.UNKNOWN_TOOL)
        return tool

    def _heed(self, decision: Decision, caller: Caller, governance: Governance) -> None:
        """Let a call pass that policy does not deny, if its caller has not made too many of them."""
        if decision.action is Action.DENY:
            assert decision.reason is not None
            raise Refused(decision.reason, details={"rule": decision.rule})
        seconds = governance.rates.take(caller.name, self._clock.tick())
        if seconds is not None:
            raise Refused(Reason.RATE_LIMITED, details={"retry_after_s": seconds})

    def _intend(self, call: Call, governance: Governance, identity: Identity, trail: Trail) -> None:
        try:
            noted = call if governance.redactor is None else without_secrets(call, trail, governance.redactor)
            self._sink.intend(intent_view(noted, identity, trail, ts=self._clock.now()))
        except Exception as error:  # noqa: BLE001 - whatever keeps it from being written down keeps it from running
            self._note_failure(error, governance)
            if governance.on_audit_failure == "refuse":
                raise Refused(Reason.NOT_RECORDED, note=place_of(error)) from None

    async def _execute(self, tool: Tool, call: Call, identity: Identity, governance: Governance) -> Any:
        cap = governance.policy.max_execution_timeout_ms
        timeout_ms = tool.spec.timeout_ms or governance.timeout_ms
        context = call.context
        run = Run(
            timeout_ms if cap is None else min(timeout_ms, cap),
            identity,
            context.session or call.arrival.session,
            context.correlation,
            call.report,
        )
        try:
            return await self._executor.execute(tool, call.arguments, run)
        except Ending:
            raise
        except Exception as error:  # noqa: BLE001 - a tool may raise anything
            raise Failed(Reason.TOOL_FAILED, note=place_of(error)) from None

    def _require_sink(self, governance: Governance) -> None:
        """Refuse to run anything while records cannot be written."""
        try:
            if self.is_recording:
                self._sink.look()
                return
        except OSError as error:
            self._note_failure(error, governance)
        try:
            self._sink.mend()
        except OSError as error:
            if governance.on_audit_failure == "refuse":
                raise Refused(Reason.NOT_RECORDED, note=place_of(error)) from None

    def _name(self, call: Call) -> Identity:
        canonical = b""
        if self._ids.deterministic:
            content = call.content
            canonical = content if isinstance(content, bytes) else canonical_bytes(content)
        identity = self._ids.name(canonical)
        trace = call.trace
        return identity if trace is None or self._is_secret(trace) else identity._replace(trace=trace)

    def _is_secret(self, trace: str) -> bool:
        """Return whether what a sender names its trace is nothing to write down."""
        redactor = self._governance.redactor
        # A trace as W3C has it is a random number, and now and then looks like something else.
        return redactor is not None and not is_trace_id(trace) and redactor.redact_text(trace) != trace

    def _record(
        self,
        call: Call,
        outcome: Outcome,
        identity: Identity,
        governance: Governance,
        trail: Trail,
        duration_ms: float,
    ) -> Outcome:
        ts = self._clock.now()
        if governance.redactor is not None:
            call = without_secrets(call, trail, governance.redactor)
        envelope = envelope_view(
            call, outcome, identity, ts=ts, duration_ms=duration_ms, deterministic=self._ids.deterministic
        )
        execution = execution_view(call, outcome, identity, trail, ts=ts, latency_ms=duration_ms)
        if governance.records_arguments and trail.tool is not None:
            execution["arguments"] = _shown(call.arguments, governance.redactor)
        try:
            self._sink.write(envelope, execution)
        except Exception as error:  # noqa: BLE001 - a record that cannot be kept is an ending like any other
            self._note_failure(error, governance)
            if isinstance(outcome, Refused) or governance.on_audit_failure == "warn":
                return outcome  # nothing ran, and that is all it says; or an operator would rather go on
            return Failed(Reason.NOT_RECORDED, note=place_of(error))  # nothing is acknowledged without it
        self.is_recording = True
        return outcome

    def _note_failure(self, error: Exception, governance: Governance) -> None:
        if self.is_recording:
            consequence = (
                "calls are refused until they can"
                if governance.on_audit_failure == "refuse"
                else "calls go on"
            )
            self._warn(f"records cannot be written, {consequence}: {error}")
        self.is_recording = False


def _subject(call: Call, tool: Tool, caller: Caller) -> Subject:
    spec, context = tool.spec, call.context
    return Subject(
        spec.name,
        spec.effect,
        caller.name,
        call.arguments,
        spec.input_schema,
        call.input_bytes,
        context.attempt,
        context.session or call.arrival.session,
        spec.operation,
    )


def _ask(call: Call, tool: Tool, decision: Decision, caller: Caller, governance: Governance) -> Ask:
    redactor, session = governance.redactor, call.context.session or call.arrival.session
    if redactor is not None and session is not None:
        session = redactor.redact_text(session)
    return Ask(
        tool=tool.spec.name,
        arguments=call.arguments,
        shown=_shown(call.arguments, redactor),
        tool_digest=tool.digest,
        policy_digest=governance.policy.digest,
        caller=caller.name,
        session=session,
        rule=decision.rule,
        place=decision.place,
    )


def _shown(arguments: JSONObject, redactor: Redactor | None) -> JSONObject:
    return arguments if redactor is None else cast("JSONObject", redactor.redact(arguments)[0])


def _bytes_of(result: Any) -> bytes:
    try:
        return json_bytes(result)
    except NotJSON as error:
        raise Failed(Reason.BAD_RESULT, (Finding("", str(error), "json", ""),)) from None


def _checked(result: Any, trail: Trail, tool: Tool, redactor: Redactor | None) -> tuple[JSON, bytes]:
    """Check a result by its tool's schema and take secrets out of it; return it, and its bytes."""
    body = _bytes_of(result)
    if not tool.output.allows(result):
        raise Failed(Reason.BAD_RESULT, tool.output.findings(result))
    if redactor is not None and redactor.might_touch(body):
        result, trail.is_redacted = redactor.redact(result)
        if trail.is_redacted:
            body = json_bytes(result)
            if not tool.output.allows(result):  # better withheld than broken, or leaked
                raise Failed(Reason.BAD_RESULT, tool.output.findings(result))
    return result, body


def _sealed(call: Call, result: JSON, body: bytes, envelope: JSONObject | None = None) -> Done:
    """Let the wire contract put a result into its form."""
    sealed = None if call.seal is None else call.seal(result, body, envelope)
    return Done(body, sealed, None if envelope is None else json_bytes(envelope))


def _as_outcome(ending: Ending, redactor: Redactor | None) -> Outcome:
    # An exception kept as a value would keep every frame it passed through alive.
    ending.__traceback__ = None
    ending.__context__ = None
    assert isinstance(ending, Refused | Failed)
    if redactor is not None and ending.findings:  # they hold no values, but names of members that were sent
        ending.findings = tuple(
            replace(
                finding,
                pointer=redactor.redact_text(finding.pointer),
                message=redactor.redact_text(finding.message),
            )
            for finding in ending.findings
        )
    return ending


def _cut_short(reason: Reason, trail: Trail, note: str | None = None) -> Outcome:
    return Failed(reason, note=note) if trail.has_begun else Refused(reason, note=note)


def place_of(error: BaseException) -> str:
    """Return an exception's type and where it was raised, innermost first: enough to find it, no values."""
    frames = [(frame.f_code, line) for frame, line in walk_tb(error.__traceback__)]
    # A tool's exception passes through frames of ours on its way; those say nothing about it.
    theirs = [(code, line) for code, line in frames if not code.co_filename.startswith(_OWN_FOLDER)]
    places = [
        f"{code.co_filename.rsplit('/', 1)[-1]}:{line} in {code.co_name}" for code, line in theirs or frames
    ]
    return " < ".join([f"{type(error).__qualname__} at {place}" for place in places[-1:]] + places[-2:-4:-1])
