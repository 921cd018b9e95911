"""Where the time of one call goes: each stage on its own, on the same message, in a loop.

The stages are timed from outside, one function after another, so that nothing on the path itself pays for
being watched. What the whole path takes beyond their sum is the way between them: coroutines, the values
that travel, the handlers of exceptions.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

from portbook.assembly import assemble
from portbook.audit import envelope_view
from portbook.callers import Callers
from portbook.canonical import json_bytes
from portbook.clock import RandomIds, SystemClock
from portbook.dialects.envelope import Envelope
from portbook.executors.python import PythonExecutor
from portbook.model import Arrival, Done, JSONObject
from portbook.settings import load_settings
from portbook.sinks import JsonlSink
from portbook.tools.registry import SchemaRegistry
from portbook.wire.framing import LineSplitter
from portbook.wire.jsonrpc import read_id
from portbook.wire.parsing import parse

__all__ = ["Stage", "measure_stages"]

# As much as the door reads at once, and writes at once.
_CHUNK: Final = 1 << 16

_ROUNDS: Final = 7


@dataclass(frozen=True, slots=True)
class Stage:
    """One part of the path, and what it takes for one call."""

    name: str
    us: float


def measure_stages(root: Path, message: bytes, *, loops: int) -> list[Stage]:
    """Return the stages in their order, and last what the path takes beyond them."""
    with TemporaryDirectory(prefix="portbook-bench-") as folder:
        return _measure(root, Path(folder), message, loops)


def _measure(root: Path, folder: Path, message: bytes, loops: int) -> list[Stage]:
    settings = load_settings(
        root / "bench/portbook.toml",
        {},
        {"audit.log_dir": folder, "python.toolsets": (str(root / "bench/echo_tools.py"),)},
        root,
    )
    assembled = assemble(settings, is_exposed=False)
    arrival = Arrival("stdio", "stdio")
    envelope = Envelope(SchemaRegistry().load_envelope())
    callers, executor = Callers(), PythonExecutor(timeout_ms=1000, workers=1)
    clock, ids = SystemClock(), RandomIds()
    sink = JsonlSink(folder, "stages", started=clock.now(), run="stages", keep=1)
    nowhere = os.open(os.devnull, os.O_WRONLY)

    # What each stage is handed, made once by the stages before it.
    frame = message.rstrip(b"\n")
    parsed = cast("JSONObject", parse(frame))
    identifier = read_id(parsed, frame)
    call = envelope.read(parsed, identifier, arrival)
    tool = assembled.catalog.find("echo")
    assert tool is not None
    result = _finish(executor.execute(tool, call.arguments))
    done = Done(json_bytes(result))
    answer = envelope.write(done, identifier)[0]
    in_chunk = _CHUNK // len(message)
    chunk, batch = message * in_chunk, [answer] * in_chunk

    def split() -> None:
        LineSplitter().feed(chunk)

    def parse_one() -> None:
        parse(frame)

    def read() -> None:
        identifier = read_id(parsed, frame)
        if envelope.recognises(parsed):
            envelope.read(parsed, identifier, arrival)

    def arguments() -> None:
        callers.identify(arrival.key)
        tool = assembled.catalog.find("echo")
        assert tool is not None
        tool.input.allows(call.arguments)

    def execute() -> None:
        _finish(executor.execute(tool, call.arguments))

    def finish() -> None:
        body = json_bytes(result)
        tool.output.allows(result)
        envelope.write(Done(body), identifier)

    def record() -> None:
        started = clock.tick()
        view = envelope_view(
            call,
            done,
            ids.name(b""),
            ts=clock.now(),
            duration_ms=round((clock.tick() - started) * 1000, 3),
            deterministic=False,
        )
        sink.write(view)

    def write() -> None:
        os.write(nowhere, b"\n".join(batch) + b"\n")

    def whole() -> None:
        _finish(assembled.boundary.answer(frame, arrival))

    try:
        stages = [
            Stage("split", _best(split, loops // in_chunk + 1) / in_chunk),
            Stage("parse", _best(parse_one, loops)),
            Stage("classify and read", _best(read, loops)),
            Stage("caller, tool, arguments", _best(arguments, loops)),
            Stage("execute", _best(execute, loops)),
            Stage("result and answer", _best(finish, loops)),
            Stage("record", _best(record, loops)),
            Stage("write", _best(write, loops // in_chunk + 1) / in_chunk),
        ]
        # Splitting and writing are the door's work, outside of what the boundary does.
        inside = sum(stage.us for stage in stages if stage.name not in ("split", "write"))
        return [*stages, Stage("between the stages", max(_best(whole, loops) - inside, 0.0))]
    finally:
        os.close(nowhere)
        sink.close()
        assembled.close()


def _finish(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Return what a coroutine that never waits returns, as the door finds out."""
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("an inline call waited for something")


def _best(function: Callable[[], None], loops: int) -> float:
    """Return the processor time of one call in microseconds: the least of several rounds."""
    best = float("inf")
    for _ in range(_ROUNDS):
        before = time.process_time()
        for _ in range(loops):
            function()
        best = min(best, time.process_time() - before)
    return best / loops * 1e6
