"""The way of one call: what one `tools/call` over STDIO costs in steps, not in time.

`python -m bench.way` prints how many of our functions a call runs through and in how many files, how often it
changes from one file to the next, and what it asks of the event loop, the system and the JSON libraries.
These counts are the same on every machine, so a test compares them with committed figures.

The door is the real one, on pipes. The client writes from a thread of its own, which is not counted. Each
count is the difference between a long and a short run, so that the start and the end of a run drop out.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any, Final
from unittest.mock import patch

import portbook
from portbook import Toolset
from portbook.app.assemble import assemble
from portbook.app.running_app import App
from portbook.doors import ndjson
from portbook.doors.ndjson import NdjsonDoor
from portbook.doors.stdio import Reader, Writer
from portbook.model import Arrival
from portbook.settings import load_settings

__all__ = ["Way", "measure_way"]

_OURS: Final = str(Path(portbook.__file__).parent) + os.sep
_ASYNCIO: Final = os.sep + "asyncio" + os.sep

# Long enough for every cache on the way to be filled, in both runs.
_SHORT: Final = 40
_LONG: Final = 80

_INITIALIZE: Final = (
    b'{"jsonrpc":"2.0","id":"start","method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}\n'
)
_CALL: Final = (
    b'{"jsonrpc":"2.0","id":%d,"method":"tools/call",'
    b'"params":{"name":"echo","arguments":{"text":"message %d"}}}\n'
)

# The functions of asyncio whose calls stand for an object of the loop.
_LOOP: Final = {"_run": "loop handles", "create_task": "tasks", "call_at": "timers"}

# The functions written in C that are one system call each, and the one that writes JSON.
_SYSTEM_CALLS: Final = frozenset({"fstat", "poll", "read", "register", "unregister", "urandom", "write"})
_ENCODES: Final = "dumps"


@dataclass(frozen=True, slots=True)
class Way:
    """What one call takes, on average."""

    calls: float
    """Calls of Portbook's own functions; a coroutine that is resumed counts again."""
    files: int
    """The files that these functions are in."""
    changes_of_file: float
    loop_handles: float
    tasks: float
    timers: float
    system_calls: float
    encodings: float
    """JSON encodings, those of the records included."""
    functions: tuple[tuple[str, float], ...]
    """Each function and its calls, the most frequent first."""


class _Counts:
    """Counts what the thread does that it is installed in."""

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        self.functions: Counter[str] = Counter()
        self._last = ""

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call":
            self._called(code.co_filename, code.co_qualname)
        elif event == "c_call":
            name = argument.__name__
            if name in _SYSTEM_CALLS:
                self.totals["system calls"] += 1
            elif name == _ENCODES:
                self.totals["encodings"] += 1

    def _called(self, file: str, name: str) -> None:
        if file.startswith(_OURS):
            place = file.removeprefix(_OURS)
            self.functions[f"{place}:{name}"] += 1
            self.totals["changes of file"] += place != self._last
            self._last = place
        elif _ASYNCIO in file and (kind := _LOOP.get(name.rpartition(".")[2])):
            self.totals[kind] += 1


def measure_way(*, per_read: int = 1) -> Way:
    """Return the way of one call, with `per_read` calls in each write of the client."""
    # A call that is watched takes longer than the bound on the time of a batch allows.
    with patch.object(ndjson, "_BATCH_S", 60.0):
        _count(_LONG * per_read, per_read)  # fills what the process keeps between runs
        short, long = _count(_SHORT * per_read, per_read), _count(_LONG * per_read, per_read)
    calls = (_LONG - _SHORT) * per_read
    functions = Counter({name: count - short.functions[name] for name, count in long.functions.items()})
    taken = {name: (count - short.totals[name]) / calls for name, count in long.totals.items()}
    steady = [(name, count / calls) for name, count in functions.most_common() if count > 0]
    return Way(
        calls=sum(count for _, count in steady),
        files=len({name.partition(":")[0] for name, _ in steady}),
        changes_of_file=taken.get("changes of file", 0.0),
        loop_handles=taken.get("loop handles", 0.0),
        tasks=taken.get("tasks", 0.0),
        timers=taken.get("timers", 0.0),
        system_calls=taken.get("system calls", 0.0),
        encodings=taken.get("encodings", 0.0),
        functions=tuple(steady),
    )


def _toolset() -> Toolset:
    toolset = Toolset("bench")

    @toolset.tool(effect="read")
    async def echo(text: str) -> dict[str, str]:
        """Return what it was given."""
        return {"text": text}

    return toolset


def _count(calls: int, per_read: int) -> _Counts:
    """Serve `calls` calls and return what was counted."""
    counts = _Counts()
    with TemporaryDirectory(prefix="portbook-way-") as folder:
        toml = Path(folder, "portbook.toml")
        toml.write_text("[docs]\nenabled = false\n")
        settings = load_settings(toml, {}, {"audit.log_dir": Path(folder, "logs")}, Path(folder))
        app = assemble(settings, is_exposed=False, toolsets=(_toolset(),), environ={})
        asyncio.run(_serve(app, counts, calls, per_read))
    return counts


async def _serve(app: App, counts: _Counts, calls: int, per_read: int) -> None:
    incoming, to_door = os.pipe()
    from_door, outgoing = os.pipe()
    reader, writer = Reader(incoming), Writer(outgoing)
    door = NdjsonDoor(app.boundary, reader, writer, Arrival("stdio", "stdio"))
    client = threading.Thread(target=_send, args=(to_door, from_door, calls, per_read))
    client.start()
    sys.setprofile(counts)
    try:
        await door.serve()
    finally:
        sys.setprofile(None)
        client.join()
        reader.close()
        writer.close()
        for descriptor in (incoming, from_door, outgoing):
            os.close(descriptor)
        await app.close()


def _send(to_door: int, from_door: int, calls: int, per_read: int) -> None:
    """Be the client: write some calls, read their answers, and so on; then close."""
    os.write(to_door, _INITIALIZE)
    _read_lines(from_door, 1)
    for first in range(1, calls + 1, per_read):
        numbers = range(first, first + per_read)
        os.write(to_door, b"".join(_CALL % (number, number) for number in numbers))
        _read_lines(from_door, per_read)
    os.close(to_door)


def _read_lines(descriptor: int, count: int) -> None:
    while count > 0:
        count -= os.read(descriptor, 1 << 16).count(b"\n")


def main() -> None:
    """Print the way of one call: alone in a read, and among 32; with `--functions`, every function on it."""
    for per_read in (1, 32):
        way = measure_way(per_read=per_read)
        print(f"{per_read} in a read: {way.calls:.1f} calls of our functions in {way.files} files,")
        print(f"  {way.changes_of_file:.1f} changes of file, {way.loop_handles:.2f} loop handles,")
        print(f"  {way.tasks:.2f} tasks, {way.timers:.2f} timers, {way.system_calls:.2f} system calls,")
        print(f"  {way.encodings:.2f} JSON encodings")
        for name, count in way.functions if "--functions" in sys.argv else ():
            print(f"    {count:5.2f} {name}")


if __name__ == "__main__":
    main()
