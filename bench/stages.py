"""`python -m bench.stages`: where the time of one call goes, stage after stage on the same message.

Nothing on the path itself pays for being watched: the stages' own functions are called here in the order of
the path, with a look at the clock between them. In that order, because a stage that runs again and again on
its own finds its code in the processor's cache and seems twice as quick as it is among the others. What the
whole path takes beyond their sum is the way between them: coroutines, and the values that travel.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

from bench.wire import frames
from portbook.app.assemble import assemble
from portbook.audit.journal import Journal
from portbook.canonical import json_bytes
from portbook.clock import SystemClock
from portbook.dialects.dialect_choice import DialectName, choose_dialect
from portbook.dialects.envelope_messages import Envelope
from portbook.envelope.request_for_envelope import REQUEST
from portbook.executors.python import PythonExecutor
from portbook.ids import RandomIds
from portbook.model import Arrival, Done, Identity, JSONObject, Run
from portbook.policy import Policy, PolicyInput, decide
from portbook.redaction import Redactor
from portbook.settings import load_settings
from portbook.stages.recorder import both_views
from portbook.stages.state import Trail
from portbook.stores.caller_keys import Callers
from portbook.tools.contract_registry import SchemaRegistry
from portbook.wire.jsonrpc import read_id
from portbook.wire.lines_and_size_limit import LineSplitter
from portbook.wire.parsing import parse

__all__ = ["Stage", "main", "measure_stages"]

# As much as the door reads at once, and writes at once.
_CHUNK: Final = 1 << 16

# The stages that the boundary itself goes through, in their order.
_INSIDE: Final = (
    "parse",
    "classify and read",
    "caller, tool, policy",
    "arguments",
    "execute",
    "result and answer",
    "redaction",
    "record, both views",
)


@dataclass(frozen=True, slots=True)
class Stage:
    """One part of the path, and what it takes for one call."""

    name: str
    us: float


def main() -> int:
    """Measure, print and return the exit status."""
    message = frames("envelope", "echo_inline", [1])[0] + b"\n"
    stages = measure_stages(Path(__file__).resolve().parent.parent, message, loops=5_000)
    total = sum(stage.us for stage in stages)
    for stage in stages:
        print(f"{stage.name:28}{stage.us:>10.2f} µs{stage.us / total:>8.0%}")
    print(f"{'together':28}{total:>10.2f} µs")
    return 0


def measure_stages(root: Path, message: bytes, *, loops: int) -> list[Stage]:
    """Return the stages in their order, and last what the path takes beyond them."""
    with TemporaryDirectory(prefix="portbook-bench-") as folder:
        path = _Path(root, Path(folder), message)
        try:
            per_chunk = _medians([path.split, path.write], loops // path.in_chunk + 3)
            before = [path.parse, path.read, path.decide, path.arguments]
            stages = [*before, path.execute, path.result, path.redact, path.record]
            # The whole path takes its turn among them: what slows the machine down then slows both.
            *inside, whole = _medians([*stages, path.whole], loops)
        finally:
            path.close()
    split, write = (us / path.in_chunk for us in per_chunk)
    return [
        Stage("split", split),
        *map(Stage, _INSIDE, inside),
        Stage("write", write),
        Stage("between the stages", max(whole - sum(inside), 0.0)),
    ]


class _Path:
    """The stages of one call as functions without arguments; what each is handed was made beforehand."""

    def __init__(self, root: Path, folder: Path, message: bytes) -> None:
        settings = load_settings(
            root / "bench/portbook.toml",
            {},
            {"audit.log_dir": folder, "python.toolsets": (str(root / "bench/servers/portbook_echo.py"),)},
            root,
        )
        self._assembled = assemble(settings, is_exposed=False)
        self._arrival = Arrival("stdio", "stdio")
        registry = SchemaRegistry()
        self._envelope = Envelope(registry.load_envelope(), registry.load(REQUEST))
        self._callers, self._policy, self._redactor = Callers(), Policy(), Redactor()
        executor = PythonExecutor(workers=1)
        self._clock, self._ids = SystemClock(), RandomIds()
        self._run = Run(1000, Identity.read(self._ids.name(b"")))
        self._sink = Journal(folder / "stages", started=self._clock.now(), run="stages", keep=1)
        self._trail = Trail()
        self._nowhere = os.open(os.devnull, os.O_WRONLY)

        self._frame = message.rstrip(b"\n")
        self._message = cast("JSONObject", parse(self._frame))
        self._id = read_id(self._message, self._frame)
        self._call = self._envelope.read(self._message, self._id, self._arrival).call
        tool = self._assembled.catalog.find("echo_inline")
        assert tool is not None
        self._tool = tool
        self._start = executor.prepare(tool)
        self._result = self._start(self._call.arguments, self._run)
        self._done = Done(json_bytes(self._result))
        self.in_chunk = _CHUNK // len(message)
        self._chunk = message * self.in_chunk
        self._answers = [self._envelope.write(self._done, self._id)[0]] * self.in_chunk

    def close(self) -> None:
        os.close(self._nowhere)
        self._sink.close()
        _finish(self._assembled.close())

    def split(self) -> None:
        LineSplitter().feed(self._chunk)

    def parse(self) -> None:
        self._message = cast("JSONObject", parse(self._frame))

    def read(self) -> None:
        identifier = read_id(self._message, self._frame)
        if choose_dialect(self._message, frozenset()) is DialectName.ENVELOPE:
            self._call = self._envelope.read(self._message, identifier, self._arrival).call

    def decide(self) -> None:
        caller = self._callers.identify(self._arrival.key)
        self._assembled.catalog.find("echo_inline")
        spec, call = self._tool.spec, self._call
        subject = PolicyInput(
            spec.name, spec.effect, caller.name, call.arguments, spec.input_schema, call.input_bytes
        )
        self._trail.decision = decide(self._policy, subject)

    def arguments(self) -> None:
        self._tool.input.allows(self._call.arguments)

    def execute(self) -> None:
        self._result = self._start(self._call.arguments, self._run)

    def result(self) -> None:
        self._done = Done(json_bytes(self._result))
        self._tool.output.allows(self._result)
        self._envelope.write(self._done, self._id)

    def redact(self) -> None:
        self._redactor.might_touch(self._done.body)

    def record(self) -> None:
        started = self._clock.tick()
        ids, ts = self._ids.name(b""), self._clock.now().encode()
        duration_us = round((self._clock.tick() - started) * 1_000_000)
        views = both_views(
            self._call,
            self._done,
            ids,
            self._trail,
            ts=ts,
            duration_us=duration_us,
            deterministic=False,
        )
        self._sink.write(*views)

    def write(self) -> None:
        os.write(self._nowhere, b"\n".join(self._answers) + b"\n")

    def whole(self) -> None:
        _finish(self._assembled.boundary.answer(self._frame, self._arrival))


def _finish(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Return what a coroutine that never waits returns, as the door finds out."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("an inline call waited for something")


def _medians(functions: list[Callable[[], None]], loops: int) -> list[float]:
    """Run the functions in turns; return the microseconds that each usually takes.

    The median leaves out the turns in which the machine did something else.
    """
    taken: list[list[int]] = [[] for _ in functions]
    tick = time.perf_counter_ns
    looking = statistics.median([-tick() + tick() for _ in range(1000)])
    for _ in range(loops):
        for function, own in zip(functions, taken, strict=True):
            before = tick()
            function()
            own.append(tick() - before)
    return [max(statistics.median(own) - looking, 0.0) / 1000 for own in taken]


if __name__ == "__main__":
    raise SystemExit(main())
