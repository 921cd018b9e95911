"""`python -m bench.instructions`: the instructions of a call in thirteen scenarios, beside those committed.

Unlike time, a count is the same on a busy machine. It belongs to one build of Python and to the pinned
packages, and figures are committed for those; any other build shows how many times a bare loop each one is.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.api_instructions import API, CALLS, CLIENT, WARM_UP, HeldApi, count_client, exchange
from bench.callgrind import Missing, begin, between_marks, callgrind, counts_between_marks
from bench.child import Child
from bench.http_instructions import count_over_http
from bench.servers.before_an_api import TABLE
from bench.wire import Dialect, frames, greeting, initialized

__all__ = [
    "CALLS_IN_A_READ",
    "FIGURES",
    "SETTINGS",
    "TOLERANCE",
    "build",
    "count",
    "count_bare_loop",
    "main",
    "served",
]

_ROOT: Final = Path(__file__).resolve().parent.parent
FIGURES: Final = _ROOT / "bench" / "instructions.json"

# Counts differ a little from run to run: addresses decide how often tables are resized.
TOLERANCE: Final = 0.05

# Few enough for one read of the server, and for the tasks that may be in progress.
CALLS_IN_A_READ: Final = 64

# Few: each takes some three hundred dumps of callgrind.
_WATCHED: Final = 8

# Checkpoints are made by the clock: their work would be counted with the calls of one scenario or another.
SETTINGS: Final = """\
[audit]
checkpoint_s = 3600
[docs]
enabled = false
[[policy.rules]]
name = "no forbidden texts"
action = "deny"
tools = ["echo_where"]
where = { "/text" = { pattern = "^forbidden" } }
"""

_SCENARIOS: Final[dict[str, tuple[Dialect, str, dict[str, bool]]]] = {
    "plain": ("mcp", "echo", {}),
    "inline": ("mcp", "echo_inline", {}),
    "policy with where": ("mcp", "echo_where", {}),
    "effect write": ("mcp", "echo_write", {}),
    "envelope dialect": ("envelope", "echo", {}),
    "envelope with provenance": ("mcp", "echo", {"capture_provenance": True}),
}

# The plain call of a client that waits for each answer: it bears what many calls in one read share.
_ALONE: Final = "plain, one at a time"


def main() -> int:
    """Count, compare or update, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.add_argument("--update", action="store_true", help="commit these figures for this build of Python")
    parser.add_argument(
        "--where", action="store_true", help="show the functions of a plain call that take them"
    )
    options = parser.parse_args()
    try:
        if options.where:
            print("\n".join(_show_where()))
            return 0
        counted = count()
        bare = count_bare_loop()
    except Missing as missing:
        print(missing)
        return 0
    committed = json.loads(FIGURES.read_text())
    known = committed.get(build(), {})
    for name, number in counted.items():
        beside = (
            f"{number / known[name] - 1:+.1%} of the committed {known[name]:,}" if name in known else "new"
        )
        print(f"{name:24}{number:>12,}{number / bare:>8.1f} times a bare loop   {beside}")
    if options.update:
        FIGURES.write_text(json.dumps({**committed, build(): counted}, indent=2, sort_keys=True) + "\n")
        return 0
    grown = [name for name in counted if name in known and counted[name] > known[name] * (1 + TOLERANCE)]
    return 1 if grown else 0


def build() -> str:
    """Return which Python and packages these are: figures of one build mean nothing to another."""
    pins = (_ROOT / "requirements.txt").read_bytes()
    same = hashlib.sha256(sys.version.encode() + pins).hexdigest()[:12]
    return f"{sys.version_info[0]}.{sys.version_info[1]} {platform.machine()} {same}"


def count() -> dict[str, int]:
    """Return the instructions of one call in each scenario.

    Raises `Missing` without valgrind.
    """
    serve = served()
    with TemporaryDirectory(prefix="portbook-bench-") as name:
        (Path(name) / "portbook.toml").write_text(SETTINGS)
        over_http = count_over_http(serve, Path(name))
    with TemporaryDirectory(prefix="portbook-bench-") as name:
        (Path(name) / "portbook.toml").write_text(SETTINGS)
        over_stdio = _count_over_stdio(serve, Path(name))
    return over_stdio | over_http | {CLIENT: count_client()}


def count_plain() -> int:
    """Return the instructions of one plain call over STDIO alone.

    Raises `Missing` without valgrind.
    """
    with TemporaryDirectory(prefix="portbook-bench-") as name:
        (Path(name) / "portbook.toml").write_text(SETTINGS)
        return _count_over_stdio(served(), Path(name))["plain"]


def _show_where() -> list[str]:
    """Return a table of the functions that a plain call over STDIO spends its instructions in."""
    from bench.where import count_by_function, show_by_file  # late: it imports Portbook

    calls = b"".join(frame + b"\n" for frame in frames("mcp", "echo", range(10_000, 10_000 + _WATCHED)))
    opening = [greeting() + b"\n", initialized() + b"\n"]
    return show_by_file(count_by_function(SETTINGS, opening, calls, _mark(1)))


def served() -> list[str]:
    """Return what Python runs to serve the counted tools, without bounds on time."""
    servers = _ROOT / "bench/servers"
    return [str(servers / "unhurried.py"), "serve", str(servers / "counted_tools.py"), "--log-dir", "log"]


def _count_over_stdio(serve: list[str], folder: Path) -> dict[str, int]:
    with HeldApi() as api:
        (folder / "portbook.toml").write_text(SETTINGS + TABLE.format(url=api.url))
        command = callgrind([sys.executable, *serve, "--stdio"], is_counting=False)
        with Child(command, folder, {"PYTHONHASHSEED": "0"}) as child:
            _send(child, greeting() + b"\n")
            _send(child, initialized() + b"\n")
            for number, scenario in enumerate(_SCENARIOS.values()):  # first uses compile and import
                _send(child, _chunk(*scenario, 2 + 100 * number))
            for _ in range(WARM_UP):
                exchange(child, api)
            begin(child.pid)
            _send(child, _mark(1_000))
            _send(child, _mark(2_000))
            for number, scenario in enumerate(_SCENARIOS.values(), 1):
                _send(child, _chunk(*scenario, 10_000 * number))
                _send(child, _mark(10_000 * number + 5_000))
            exchange(child, api)
            _send(child, _mark(3_000))
            _send_one_by_one(child, _chunk(*_SCENARIOS["plain"], 4_000))
            _send(child, _mark(5_000))
            _send_one_by_one(child, _chunk(*_SCENARIOS["plain"], 6_000))
            _send(child, _mark(7_000))
            child.kill()
    counts = between_marks(folder)[1:]
    found = {name: total // CALLS_IN_A_READ for name, total in zip(_SCENARIOS, counts, strict=False)}
    of_api, _, alone = counts[len(_SCENARIOS) :]
    return found | {API: of_api // CALLS, _ALONE: alone // CALLS_IN_A_READ}


def _send(child: Child, chunk: bytes) -> None:
    child.write(chunk)
    child.read_lines(sum(b'"id":' in line for line in chunk.splitlines()))


def _send_one_by_one(child: Child, chunk: bytes) -> None:
    for line in chunk.splitlines(keepends=True):
        _send(child, line)


def count_bare_loop() -> int:
    """Return the instructions of one call of the bare loop: those of many calls less those of few."""
    command = [sys.executable, str(_ROOT / "bench/servers/bare_loop.py")]
    totals: list[int] = []
    for times in (1, 5):
        chunks = [_chunk("mcp", "echo", {}, 1000 * (at + 1)) for at in range(times)]
        with TemporaryDirectory(prefix="portbook-bench-") as name:
            totals += counts_between_marks(command, Path(name), chunks, is_marked=False)
    return (totals[1] - totals[0]) // (4 * CALLS_IN_A_READ)


def _chunk(dialect: Dialect, tool: str, meta: dict[str, bool], first: int) -> bytes:
    numbers = range(first, first + CALLS_IN_A_READ)
    return b"".join(frame + b"\n" for frame in frames(dialect, tool, numbers, meta=meta))


def _mark(number: int) -> bytes:
    return frames("mcp", "mark", [number])[0] + b"\n"


if __name__ == "__main__":
    sys.exit(main())
