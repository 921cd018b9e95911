"""What a call pays for PostgreSQL: processor time and changes with 1 to 3 nodes, for calls of three kinds.

`python -m bench.nodes` serves the echo tool from a file, and from 1, 2 and 3 nodes on a PostgreSQL of its
own. It calls it at /execute over 32 connections, in three rounds, and prints of the cheapest: calls per
second, the processor's microseconds of a call in all nodes, in the busiest one, and in all processes of
PostgreSQL; how many transaction numbers were used for each call (a change has one, and those that are
committed together have one more); and the processor's milliseconds of a node in a second without calls.

The calls are `plain` ones, which need nothing of the store; those that are counted in it (`rate = "exact"`);
and those that a person has approved, of which only the redemption is measured. Nodes, database and callers
share the cores of one machine, so calls per second say less than processor time.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

import psycopg

from bench.child import WrongAnswer, environment
from bench.http_load import HttpCalls, call_of, connect, exchange, headers_of
from bench.peers import ROOT, SERVERS
from bench.workers import children_of, cpu_s

__all__ = ["KINDS", "Kind", "NodeFigures", "measured_nodes", "postgres"]

Kind: TypeAlias = Literal["plain", "exact rate", "approved"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

_CALLS: Final = {"plain": 10_000, "exact rate": 3000, "approved": 600}
_ROUNDS: Final = 3
_IDLE_S: Final = 2.0
_OPERATOR: Final = "operator-key-of-the-bench"
_SETTINGS: Final[dict[Kind, str]] = {
    "plain": "",
    "exact rate": '[policy]\nrate = "exact"\nmax_calls_per_minute = 100000000\n',
    "approved": '[[policy.rules]]\nname = "a person"\ntools = ["echo"]\naction = "ask"\n',
}
_NUMBERS: Final = b"SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"


class NodeFigures(NamedTuple):
    """What was measured with one number of nodes."""

    kind: Kind
    nodes: int
    is_database: bool
    calls_per_second: float
    cpu_us: float
    """Of one call, in all nodes."""
    busiest_us: float
    """Of one call, in the node that worked most."""
    database_us: float | None
    """Of one call, in all processes of PostgreSQL; None where it is elsewhere, or there is none."""
    changes: float | None
    """Transaction numbers that were used, for each call."""
    idle_ms: float
    """Of a node, in a second without calls."""


@contextmanager
def postgres() -> Generator[tuple[str, int | None]]:
    """Give the address of an empty PostgreSQL and its process: one of its own, or the one that is named."""
    if named := os.environ.get("PORTBOOK_TEST_POSTGRES"):
        yield named, None
        return
    sys.path.append(str(ROOT / "tests"))
    from support.postgres_server import own_server  # late: it comes with the tests

    with own_server() as server:
        yield server.url, server.pid


@contextmanager
def _node(folder: Path) -> Generator[tuple[int, int]]:
    """Start a node; yield its process id and its port, once it serves."""
    command = [
        sys.executable,
        "-m",
        "portbook",
        "serve",
        "--http",
        "--port",
        "0",
        str(SERVERS / "portbook_echo.py"),
    ]
    extra = {"PYTHONPATH": str(ROOT / "src"), "PORTBOOK_OPERATOR_KEY": _OPERATOR}
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment(extra),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        try:
            while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/ ", process.stderr.readline())):
                assert process.poll() is None, "it did not start"
            yield process.pid, int(found[1])
        finally:
            process.send_signal(signal.SIGTERM)


def measured_nodes(
    kind: Kind, nodes: int, calls: int, url: str | None, database: int | None = None
) -> NodeFigures:
    """Return what calls take with so many nodes on the database at `url`, or with one on a file."""
    warm_up = max(32, calls // 20)
    asked = HttpCalls(calls, route="/execute")
    store = "" if url is None else f'[store]\nurl = "{url}"\n'
    with ExitStack() as opened, tempfile.TemporaryDirectory() as root:
        started: list[tuple[int, int]] = []
        for at in range(nodes):
            folder = Path(root) / f"node-{at}"
            folder.mkdir()
            settings = f"[docs]\nenabled = false\n{store}{_SETTINGS[kind]}"
            (folder / "portbook.toml").write_text(settings, "utf-8")
            started.append(opened.enter_context(_node(folder)))
        ports = [port for _, port in started]
        if kind == "approved":
            _approve(ports, asked, range(1, 1 + warm_up + calls))
        connections = [
            opened.enter_context(connect(port))
            for port, _ in zip(itertools.cycle(ports), range(asked.connections), strict=False)
        ]
        headers = headers_of(asked, connections[0])
        exchange(connections, headers, asked, range(1, 1 + warm_up))
        processes = [process for process, _ in started]
        idle_s = _idle_s(processes)
        rounds = [
            _round(
                processes, database, url, lambda numbers: exchange(connections, headers, asked, numbers), each
            )
            for each in _thirds(range(1 + warm_up, 1 + warm_up + calls))
        ]
    best = min(rounds, key=lambda each: each.cpu_us)
    return best._replace(kind=kind, idle_ms=idle_s / nodes * 1e3)


def _thirds(numbers: range) -> list[range]:
    size = len(numbers) // _ROUNDS
    return [numbers[at * size : (at + 1) * size] for at in range(_ROUNDS)]


def _round(
    processes: list[int], database: int | None, url: str | None, call: Callable[[range], None], numbers: range
) -> NodeFigures:
    """Return what some calls take."""
    calls, used, database_before = len(numbers), _numbers_used(url), _database_times(database)
    before, start = [cpu_s(each) for each in processes], time.perf_counter()
    call(numbers)
    elapsed = time.perf_counter() - start
    taken = [cpu_s(each) - earlier for each, earlier in zip(processes, before, strict=True)]
    database_s = sum(now - database_before.get(each, 0.0) for each, now in _database_times(database).items())
    return NodeFigures(
        "plain",
        len(processes),
        url is not None,
        calls / elapsed,
        sum(taken) / calls * 1e6,
        max(taken) / calls * 1e6,
        None if database is None else database_s / calls * 1e6,
        None if used is None else ((_numbers_used(url) or 0) - used) / calls,
        0.0,
    )


def _idle_s(processes: list[int]) -> float:
    """Return the processor time of processes in a second in which nothing is asked of them."""
    before = sum(map(cpu_s, processes))
    time.sleep(_IDLE_S)
    return (sum(map(cpu_s, processes)) - before) / _IDLE_S


def _approve(ports: Sequence[int], asked: HttpCalls, numbers: Sequence[int]) -> None:
    """Ask for each call at one node, and approve it there as a person does."""
    for port, mine in zip(ports, (numbers[at :: len(ports)] for at in range(len(ports))), strict=True):
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        headers = {"content-type": "application/json"}
        for number in mine:
            connection.request("POST", "/execute", call_of(asked, number), headers)
            answer = json.loads(connection.getresponse().read())
            approval = answer["error"]["details"]["approval_id"]
            decided = json.dumps({"decision": "approve"})
            operator = {**headers, "authorization": f"Bearer {_OPERATOR}"}
            connection.request("POST", f"/approvals/{approval}", decided, operator)
            response = connection.getresponse()
            response.read()
            if response.status != 200:
                raise WrongAnswer(f"an approval was answered with {response.status}")
        connection.close()


def _numbers_used(url: str | None) -> int | None:
    """Return how many numbers were given to transactions, which happens when they write."""
    if url is None:
        return None
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(_NUMBERS).fetchone()
    assert row is not None
    return int(row[0])


def _database_times(database: int | None) -> dict[int, float]:
    """Return the processor time of each process of a database that runs now."""
    found = [] if database is None else [database, *children_of(database)]
    times: dict[int, float] = {}
    for each in found:
        with suppress(OSError):  # it has just ended
            times[each] = cpu_s(each)
    return times


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.nodes", description=__doc__)
    parser.add_argument(
        "--calls", type=int, help="how many calls of each; otherwise fewer of those that cost more"
    )
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 3], help="how many nodes of each")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS, help="which calls")
    options = parser.parse_args()
    print(
        "| calls | store | nodes | calls/s | CPU of a call, µs | busiest node, µs | PostgreSQL, µs "
        "| changes | idle node, ms/s |"
    )
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for kind in options.kinds:
        calls = options.calls or _CALLS[kind]
        _print(measured_nodes(kind, 1, calls, None))
        for nodes in options.nodes:
            with postgres() as (url, process):
                _print(measured_nodes(kind, nodes, calls, url, process))


def _print(row: NodeFigures) -> None:
    store = "PostgreSQL" if row.is_database else "SQLite"
    figures = f"{row.calls_per_second:,.0f} | {row.cpu_us:.0f} | {row.busiest_us:.0f}"
    database = "" if row.database_us is None else f"{row.database_us:.0f}"
    changes = "" if row.changes is None else f"{row.changes:.3f}"
    rest = f"{database} | {changes} | {row.idle_ms:.1f}"
    print(f"| {row.kind} | {store} | {row.nodes} | {figures} | {rest} |", flush=True)


if __name__ == "__main__":
    main()
