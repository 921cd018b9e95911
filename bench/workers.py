"""What workers give and take: calls, processor time and memory with one process and with several.

`python -m bench.workers` serves the echo tool with 1 and 2 workers, calls it over 32 connections, and prints
for each: calls per second, the processor's microseconds of a call, those of the busiest worker, and the
memory of all processes. The busiest worker bounds a server that has a core for each worker. It says the same
on a machine that is busy with other things, where calls per second do not. `--starts` compares workers that
are started afresh with workers that are forked from a process that has imported everything.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from bench.child import environment
from bench.http_load import HttpCalls, connect, exchange, headers_of
from bench.peers import ROOT, SERVERS

__all__ = ["Started", "WorkerFigures", "children_of", "cpu_s", "measured", "measured_starts"]

_CALLS: Final = 20_000
_WARM_UP: Final = 500


# By then all workers listen. What connects in the first milliseconds goes to the first one alone.
_LISTENING_S: Final = 0.3

_SETTINGS: Final = "[docs]\nenabled = false\n"
_COMMAND: Final = (sys.executable, "-m", "portbook")

# Imports what a server needs, and then is that server, as often as it is told. It loads no toolset before.
_FORKING: Final = """
import gc, os, sys
import portbook.cli.main, portbook.cli.serve, portbook.cli.http_door, uvloop
import portbook.audit.checkpoints_made_and_stored
gc.collect(); gc.freeze()
for _ in range(int(sys.argv.pop(1))):
    if os.fork() == 0:
        portbook.cli.main.main()
        os._exit(0)
while True:
    os.wait()
"""


class WorkerFigures(NamedTuple):
    """What was measured with one number of workers."""

    workers: int
    calls_per_second: float
    cpu_us: float
    """Of one call, in all processes."""
    busiest_us: float
    """Of one call, in the worker that worked most."""
    pss_mib: float
    """The memory of all processes; what several share is counted once."""
    connections: tuple[int, ...]
    """How many each worker got."""


class Started(NamedTuple):
    """What workers took that have just started."""

    kind: str
    cpu_ms: float
    """Of one worker."""
    pss_mib: float
    """Of one worker."""


@contextmanager
def _served(command: list[str], ready: int = 1) -> Generator[tuple[int, int]]:
    """Start a server; yield its process id and its port, once so many lines say that it serves."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "portbook.toml").write_text(_SETTINGS, "utf-8")
        with subprocess.Popen(
            command,
            cwd=folder,
            env=environment({"PYTHONPATH": str(ROOT / "src")}),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        ) as process:
            assert process.stderr is not None
            try:
                port = 0
                for _ in range(ready):
                    while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/ ", process.stderr.readline())):
                        assert process.poll() is None, "it did not start"
                    port = int(found[1])
                yield process.pid, port
            finally:
                process.send_signal(signal.SIGTERM)
                os.killpg(process.pid, signal.SIGTERM)


def measured(workers: int, calls: int = _CALLS) -> WorkerFigures:
    """Return what calls over 32 connections take with so many workers."""
    asked = HttpCalls(calls, revision="2026-07-28")
    options = ["serve", "--http", "--port", "0", "--workers", str(workers), str(SERVERS / "portbook_echo.py")]
    with _served([*_COMMAND, *options]) as (process, port), ExitStack() as opened:
        time.sleep(_LISTENING_S)
        serving = children_of(process) or [process]
        sockets = [_sockets(each) for each in serving]
        connections = [opened.enter_context(connect(port)) for _ in range(asked.connections)]
        headers = headers_of(asked, connections[0])
        exchange(connections, headers, asked, range(1, 1 + _WARM_UP))
        got = tuple(_sockets(each) - earlier for each, earlier in zip(serving, sockets, strict=True))
        processes = list(dict.fromkeys((process, *serving)))
        before, start = [cpu_s(each) for each in processes], time.perf_counter()
        exchange(connections, headers, asked, range(1 + _WARM_UP, 1 + _WARM_UP + calls))
        elapsed = time.perf_counter() - start
        taken = [cpu_s(each) - earlier for each, earlier in zip(processes, before, strict=True)]
        pss_mib = sum(map(_pss_mib, processes))
    return WorkerFigures(
        workers, calls / elapsed, sum(taken) / calls * 1e6, max(taken) / calls * 1e6, pss_mib, got
    )


def measured_starts(kind: str, workers: int = 4) -> Started:
    """Return what workers take when they are started afresh, or `forked`."""
    options = ["serve", "--http", "--port", "0", str(SERVERS / "portbook_echo.py")]
    if kind == "forked":
        served = _served([sys.executable, "-c", _FORKING, str(workers), *options], ready=workers)
    else:
        served = _served([*_COMMAND, *options[:4], "--workers", str(workers), *options[4:]])
    with served as (process, _):
        found = [(cpu_s(each), _pss_mib(each)) for each in children_of(process)]
    start_s, pss_mib = (sum(values) / workers for values in zip(*found, strict=True))
    return Started(kind, start_s * 1e3, pss_mib)


def children_of(process: int) -> list[int]:
    """Return the children of a process."""
    return [int(pid) for pid in Path(f"/proc/{process}/task/{process}/children").read_text("ascii").split()]


def _sockets(process: int) -> int:
    return sum(each.readlink().name.startswith("socket:") for each in Path(f"/proc/{process}/fd").iterdir())


def cpu_s(process: int) -> float:
    """Return the processor time of a process."""
    return time.clock_gettime((~process << 3) | 2)  # as in bench/child.py


def _pss_mib(process: int) -> float:
    lines = Path(f"/proc/{process}/smaps_rollup").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.workers", description=__doc__)
    parser.add_argument("--calls", type=int, default=_CALLS, help="how many calls of each")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="how many workers of each")
    parser.add_argument("--starts", action="store_true", help="compare starting afresh with forking")
    options = parser.parse_args()
    if options.starts:
        print("| workers | CPU of a start, ms | PSS of each, MiB |\n| --- | ---: | ---: |")
        for kind in ("afresh", "forked"):
            each = measured_starts(kind)
            print(f"| {each.kind} | {each.cpu_ms:.0f} | {each.pss_mib:.1f} |")
        return
    print("| workers | calls/s | CPU of a call, µs | of the busiest worker, µs | PSS, MiB | connections |")
    print("| ---: | ---: | ---: | ---: | ---: | --- |")
    for count in options.workers:
        row = measured(count, options.calls)
        figures = f"{row.calls_per_second:,.0f} | {row.cpu_us:.0f} | {row.busiest_us:.0f}"
        print(f"| {row.workers} | {figures} | {row.pss_mib:.1f} | {', '.join(map(str, row.connections))} |")


if __name__ == "__main__":
    main()
