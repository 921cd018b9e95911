"""`python -m bench.instructions`: the instructions of a call in nine scenarios, beside the committed ones.

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

from bench.callgrind import Missing, counts_between_marks
from bench.http_instructions import count_over_http
from bench.wire import Dialect, frames, greeting, initialized

__all__ = ["FIGURES", "TOLERANCE", "build", "count", "count_bare_loop", "main"]

_ROOT: Final = Path(__file__).resolve().parent.parent
FIGURES: Final = _ROOT / "bench" / "instructions.json"

# Counts differ a little from run to run: addresses decide how often tables are resized.
TOLERANCE: Final = 0.05

# Few enough for one read of the server, and for the tasks that may be in progress.
_CALLS: Final = 64

# Few: each takes some three hundred dumps of callgrind.
_WATCHED: Final = 8

# Checkpoints are made by the clock: their work would be counted with the calls of one scenario or another.
_SETTINGS: Final = """\
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

_SCENARIOS: Final[dict[str, tuple[Dialect, str]]] = {
    "plain": ("mcp", "echo"),
    "inline": ("mcp", "echo_inline"),
    "policy with where": ("mcp", "echo_where"),
    "effect write": ("mcp", "echo_write"),
    "envelope dialect": ("envelope", "echo"),
}


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
        print(f"{name:20}{number:>12,}{number / bare:>8.1f} times a bare loop   {beside}")
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
    serve = _served()
    with TemporaryDirectory(prefix="portbook-bench-") as name:
        (Path(name) / "portbook.toml").write_text(_SETTINGS)
        over_http = count_over_http(serve, Path(name))
    with TemporaryDirectory(prefix="portbook-bench-") as name:
        (Path(name) / "portbook.toml").write_text(_SETTINGS)
        return _count_over_stdio(serve, Path(name)) | over_http


def count_plain() -> int:
    """Return the instructions of one plain call over STDIO alone.

    Raises `Missing` without valgrind.
    """
    with TemporaryDirectory(prefix="portbook-bench-") as name:
        (Path(name) / "portbook.toml").write_text(_SETTINGS)
        return _count_over_stdio(_served(), Path(name))["plain"]


def _show_where() -> list[str]:
    """Return a table of the functions that a plain call over STDIO spends its instructions in."""
    from bench.where import count_by_function, show_by_file  # late: it imports Portbook

    calls = b"".join(frame + b"\n" for frame in frames("mcp", "echo", range(10_000, 10_000 + _WATCHED)))
    opening = [greeting() + b"\n", initialized() + b"\n"]
    return show_by_file(count_by_function(_SETTINGS, opening, calls, _mark(1)))


def _served() -> list[str]:
    servers = _ROOT / "bench/servers"
    return [str(servers / "unhurried.py"), "serve", str(servers / "counted_tools.py"), "--log-dir", "log"]


def _count_over_stdio(serve: list[str], folder: Path) -> dict[str, int]:
    chunks = [greeting() + b"\n", initialized() + b"\n", *_warm_up(), _mark(2_000)]
    for number, scenario in enumerate(_SCENARIOS.values(), 1):
        chunks += [_chunk(*scenario, 10_000 * number), _mark(10_000 * number + 5_000)]
    counts = counts_between_marks([sys.executable, *serve, "--stdio"], folder, chunks)
    return {name: total // _CALLS for name, total in zip(_SCENARIOS, counts[1:], strict=False)}


def count_bare_loop() -> int:
    """Return the instructions of one call of the bare loop: those of many calls less those of few."""
    command = [sys.executable, str(_ROOT / "bench/servers/bare_loop.py")]
    totals: list[int] = []
    for times in (1, 5):
        chunks = [_chunk("mcp", "echo", 1000 * (at + 1)) for at in range(times)]
        with TemporaryDirectory(prefix="portbook-bench-") as name:
            totals += counts_between_marks(command, Path(name), chunks, is_marked=False)
    return (totals[1] - totals[0]) // (4 * _CALLS)


def _warm_up() -> list[bytes]:
    """Return every kind of call once before it is counted, and a mark: first uses compile and import."""
    kinds = [_chunk(*scenario, 2 + 100 * number) for number, scenario in enumerate(_SCENARIOS.values())]
    return [*kinds, _mark(1_000)]


def _chunk(dialect: Dialect, tool: str, first: int) -> bytes:
    return b"".join(frame + b"\n" for frame in frames(dialect, tool, range(first, first + _CALLS)))


def _mark(number: int) -> bytes:
    return frames("mcp", "mark", [number])[0] + b"\n"


if __name__ == "__main__":
    sys.exit(main())
