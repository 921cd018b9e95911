"""The path of a call, stage by stage. Start reading here.

    read ▶ authenticate ▶ resolve ▶ check arguments ▶ execute ▶ check result ▶ record

A stage takes what the one before it made, or raises `Refused` (nothing ran) or `Failed` (it ran, or may
have). The order is a promise: a caller without a key learns nothing of the tools, nothing runs on arguments
that its schema does not allow, and no answer leaves before its record is written.

The pipeline knows no wire contract, no transport and no clock but the one it is handed.
"""

from __future__ import annotations

from collections.abc import Callable
from traceback import walk_tb
from typing import Any, NamedTuple

from portbook.audit import envelope_view
from portbook.callers import Callers
from portbook.canonical import NotJSON, canonical_bytes, json_bytes
from portbook.clock import Clock, Identity, Ids
from portbook.errors import Ending, Failed, Finding, Reason, Refused
from portbook.model import Call, Done, Outcome
from portbook.ports import Executor, Sink
from portbook.tools.catalog import Catalog, Tool

__all__ = ["Crossing", "Pipeline", "place_of"]

_OWN_FOLDER = __file__.rsplit("/", 1)[0] + "/"


class Crossing(NamedTuple):
    """A call that crossed the boundary: how it ended, and its names in the record."""

    outcome: Outcome
    identity: Identity


class Pipeline:
    """Takes a call, returns its outcome, and writes the record of it."""

    def __init__(
        self,
        *,
        catalog: Catalog,
        callers: Callers,
        executor: Executor,
        sink: Sink,
        clock: Clock,
        ids: Ids,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._catalog = catalog
        self._callers = callers
        self._executor = executor
        self._sink = sink
        self._clock = clock
        self._ids = ids
        self._warn = warn
        self._is_recording = True

    async def run(self, call: Call) -> Crossing:
        """Bring `call` to its end, whatever that is, and record it."""
        started = self._clock.tick()
        identity = self._name(call)
        outcome: Outcome | None = None
        try:
            outcome = await self._cross(call)
        except Ending as ending:
            outcome = _as_outcome(ending)
        except Exception as error:  # noqa: BLE001 - what nobody foresaw is recorded, then answered
            outcome = Failed(Reason.INTERNAL, note=place_of(error))
        finally:  # a cancelled call leaves through here, and is recorded like any other
            outcome = self._record(call, outcome or Failed(Reason.CANCELLED), identity, started)
        return Crossing(outcome, identity)

    async def _cross(self, call: Call) -> Done:
        if call.flaw is not None:
            raise call.flaw
        if not self._is_recording:
            self._require_sink()
        self._callers.identify(call.arrival.key)
        if call.handler is not None:
            return _sealed(call, call.handler())
        tool = self._resolve(call)
        if not tool.input.allows(call.arguments):
            raise Refused(Reason.BAD_ARGUMENTS, tool.input.findings(call.arguments))
        return _sealed(call, await self._execute(tool, call), tool)

    async def _execute(self, tool: Tool, call: Call) -> Any:
        try:
            return await self._executor.execute(tool, call.arguments, call.report)
        except Ending:
            raise
        except Exception as error:  # noqa: BLE001 - a tool may raise anything
            raise Failed(Reason.TOOL_FAILED, note=place_of(error)) from None

    def _require_sink(self) -> None:
        """Refuse to run anything while records cannot be written."""
        try:
            self._sink.mend()
        except OSError as error:
            raise Refused(Reason.NOT_RECORDED, note=place_of(error)) from None

    def _resolve(self, call: Call) -> Tool:
        tool = self._catalog.find(call.tool) if call.tool is not None else None
        if tool is None:
            raise Refused(Reason.UNKNOWN_TOOL)
        return tool

    def _name(self, call: Call) -> Identity:
        canonical = b""
        if self._ids.deterministic:
            content = call.content
            canonical = content if isinstance(content, bytes) else canonical_bytes(content)
        identity = self._ids.name(canonical)
        return identity if call.trace is None else identity._replace(trace=call.trace)

    def _record(self, call: Call, outcome: Outcome, identity: Identity, started: float) -> Outcome:
        duration_ms = round((self._clock.tick() - started) * 1000, 3)
        record = envelope_view(
            call,
            outcome,
            identity,
            ts=self._clock.now(),
            duration_ms=duration_ms,
            deterministic=self._ids.deterministic,
        )
        try:
            self._sink.write(record)
        except Exception as error:  # noqa: BLE001 - a record that cannot be kept is an ending like any other
            if self._is_recording:
                self._warn(f"records cannot be written, calls are refused until they can: {error}")
            self._is_recording = False
            if isinstance(outcome, Refused):
                return outcome  # nothing ran, and that is all it says
            return Failed(Reason.NOT_RECORDED, note=place_of(error))  # nothing is acknowledged without it
        self._is_recording = True
        return outcome


def _sealed(call: Call, result: Any, tool: Tool | None = None) -> Done:
    """Check a result by its tool's schema, then let the wire contract put it into its form."""
    try:
        body = json_bytes(result)
    except NotJSON as error:
        raise Failed(Reason.BAD_RESULT, (Finding("", str(error), "json", ""),)) from None
    if tool is not None and not tool.output.allows(result):
        raise Failed(Reason.BAD_RESULT, tool.output.findings(result))
    return Done(body, None if call.seal is None else call.seal(result, body))


def _as_outcome(ending: Ending) -> Outcome:
    # An exception kept as a value would keep every frame it passed through alive.
    ending.__traceback__ = None
    ending.__context__ = None
    assert isinstance(ending, Refused | Failed)
    return ending


def place_of(error: BaseException) -> str:
    """Return an exception's type and where it was raised, innermost first: enough to find it, no values."""
    frames = [(frame.f_code, line) for frame, line in walk_tb(error.__traceback__)]
    # A tool's exception passes through frames of ours on its way; those say nothing about it.
    theirs = [(code, line) for code, line in frames if not code.co_filename.startswith(_OWN_FOLDER)]
    places = [
        f"{code.co_filename.rsplit('/', 1)[-1]}:{line} in {code.co_name}" for code, line in theirs or frames
    ]
    return " < ".join([f"{type(error).__qualname__} at {place}" for place in places[-1:]] + places[-2:-4:-1])
