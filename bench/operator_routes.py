"""How long an operator waits: every operator route over 100,000 recorded calls and 1,000 tools.

`python -m bench.operator_routes` writes the records, serves them, and prints for each route the milliseconds
of the first and of the next answer, the processor's milliseconds of the next one, its size, and the longest
time that `/livez` took meanwhile: what any other caller waits for it.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from portbook.audit.journal import Journal
from portbook.errors import Reason, Refused
from portbook.ids import RandomIds
from portbook.model import Arrival, Call, Caller, CallerContext, Done
from portbook.policy import Action, Decision
from portbook.stages.recorder import both_views
from portbook.stages.state import Trail
from portbook.tools.catalog import Catalog
from portbook.tools.spec import Effect, ToolSpec

__all__ = ["RouteTime", "measured", "measured_all", "write_calls", "write_settings"]

_KEY: Final = "an-operator-key-for-benchmarks"
_CALLS: Final = 100_000
_TOOLS: Final = 1000
_PATIENCE_S: Final = 120
_POLICY: Final = '[[policy.rules]]\nname = "fewer"\naction = "deny"\ntools = ["group3.*"]\n'
_BETWEEN_S: Final = 0.005


@dataclass(frozen=True, slots=True)
class RouteTime:
    """What one route took."""

    route: str
    first_ms: float
    next_ms: float
    cpu_ms: float
    size: int
    others_wait_ms: float


def write_settings(folder: Path, tools: int) -> None:
    """Write settings for a toolset of many tools."""
    lines = ["from portbook import Toolset", 'toolset = Toolset("many")', ""]
    for number in range(tools):
        lines += [
            f'@toolset.tool(name="group{number % 20}.tool{number}", effect="read")',
            f"def tool{number}(text: str, limit: int = 10) -> str:",
            f'    """Do what number {number} does.\n\n    With more words than one line holds."""',
            "    return text",
            "",
        ]
    (folder / "tools.py").write_text("\n".join(lines))
    (folder / "portbook.toml").write_text('[python]\ntoolsets = ["tools.py"]\n[audit]\narguments = true\n')


def write_calls(folder: Path, count: int) -> str:
    """Write the records of `count` calls of the last day, as a server does; return the id of one of them."""
    start = datetime.now(UTC) - timedelta(days=1)
    journal = Journal(folder / "runs", started=_moment(start), run="benchmrk", keep=10)
    ids, arrival, request = RandomIds(), Arrival("http", "/execute"), b""
    tools = list(
        Catalog(
            ToolSpec(f"group{number % 20}.tool{number}", "", {}, True, Effect.READ) for number in range(1000)
        )
    )
    for number in range(count):
        tool = tools[number % len(tools)]
        call = Call(arrival, "execute", tool.spec.name, {}, 30, CallerContext(), None, b"")
        is_denied = number % 7 == 0
        outcome = Refused(Reason.POLICY_VIOLATION) if is_denied else Done(b'"text"')
        action = Action.DENY if is_denied else Action.ALLOW
        named = ids.name(b"")
        request = named[0] if number == count // 2 else request
        at = _moment(start + timedelta(days=1) * (number / count)).encode()
        trail = Trail(Caller(f"caller{number % 5}"), tool, Decision(action, "default", "default", ""))
        shown: Any = {"text": "some text", "limit": number % 100}
        journal.write(*both_views(call, outcome, named, trail, at, 1500 + number % 900, False, shown))
    journal.close()
    return request.decode()


def measured_all(folder: Path, request: str) -> Iterator[RouteTime]:
    """Yield what each route takes, in a server of its own."""
    tool = "group1.tool1"
    with _served(folder) as (port, pid):
        for route, body in (
            ("/operator/calls", None),
            ("/operator/calls?tool=group3.*&status=refused&limit=1000", None),
            ("/operator/calls?caller=nobody", None),
            (f"/operator/calls/{request}", None),
            ("/operator/figures", None),
            (f"/operator/figures?since={_day_ago()}", None),
            ("/operator/proof", None),
            ("/operator/waiting", None),
            ("/operator/upstreams", None),
            ("/operator/pins", None),
            ("/operator/policy", None),
            ("/operator/policy/explain", {"tool": tool, "args": {"text": "a"}}),
            ("/operator/policy/replay", {"policy": _POLICY}),
            ("/tools?brief=1", None),
            (f"/tools/{tool}", None),
            ("/tools", None),
        ):
            yield measured(port, pid, route, body)


def measured(port: int, pid: int, route: str, body: Any) -> RouteTime:
    """Return what a route takes: asked twice, with other requests meanwhile."""
    with _others(port) as waits:
        first_ms, _ = _asked(port, route, body)
        before = _cpu_ms(pid)
        next_ms, size = _asked(port, route, body)
        cpu_ms = _cpu_ms(pid) - before
    return RouteTime(route.partition("?")[0], first_ms, next_ms, cpu_ms, size, max(waits, default=0.0))


@contextlib.contextmanager
def _served(folder: Path) -> Generator[tuple[int, int]]:
    environ = {**os.environ, "PORTBOOK_OPERATOR_KEY": _KEY}
    command = [sys.executable, "-m", "portbook", "serve", "--http", "--port", "0"]
    with subprocess.Popen(command, cwd=folder, env=environ, stderr=subprocess.PIPE) as process:
        try:
            yield _port(process), process.pid
        finally:
            process.terminate()


def _port(process: subprocess.Popen[bytes]) -> int:
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(rb"open http://[^ ]*:(\d+)/ ", line):
            return int(found[1])
    raise RuntimeError("the server did not start")


def _asked(port: int, route: str, body: Any) -> tuple[float, int]:
    key = {} if route.startswith("/tools") else {"authorization": f"Bearer {_KEY}"}
    headers = {**key, "content-type": "application/json"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE_S)
    started = time.perf_counter()
    data = None if body is None else json.dumps(body)
    connection.request("GET" if body is None else "POST", route, data, headers)
    answer = connection.getresponse()
    size = len(answer.read())
    took = (time.perf_counter() - started) * 1000
    connection.close()
    if answer.status != 200:
        raise RuntimeError(f"{route}: {answer.status}")
    return took, size


@contextlib.contextmanager
def _others(port: int) -> Generator[list[float]]:
    """Ask for something small all the time, as other callers do; collect how long each took."""
    waits: list[float] = []
    ended = threading.Event()

    def ask() -> None:
        while not ended.wait(_BETWEEN_S):
            waits.append(_asked(port, "/livez", None)[0])

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield waits
    finally:
        ended.set()
        asking.join()


def _cpu_ms(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def _moment(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _day_ago() -> str:
    return _moment(datetime.now(UTC) - timedelta(days=1, hours=1))


def main(arguments: list[str] | None = None) -> None:
    """Measure, and print a line for each route."""
    parser = argparse.ArgumentParser(prog="python -m bench.operator_routes", description=__doc__)
    parser.add_argument("--calls", type=int, default=_CALLS, help="recorded calls (%(default)s)")
    parser.add_argument("--tools", type=int, default=_TOOLS, help="tools (%(default)s)")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_settings(folder, given.tools)
        request = write_calls(folder, given.calls)
        print(f"{'route':<28}{'first ms':>10}{'next ms':>10}{'cpu ms':>9}{'bytes':>10}{'others ms':>11}")
        for each in measured_all(folder, request):
            print(
                f"{_short(each.route):<28}{each.first_ms:>10.0f}{each.next_ms:>10.0f}{each.cpu_ms:>9.0f}"
                f"{each.size:>10}{each.others_wait_ms:>11.0f}",
                flush=True,
            )


def _short(route: str) -> str:
    return route if len(route) < 28 else route[:24] + "…"


if __name__ == "__main__":
    main()
