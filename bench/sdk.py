"""`python -m bench.sdk`: Portbook against the official Python SDK, both as MCP servers over STDIO.

The same echo tool, the same bytes, in turns: the time from the start of the process to the answer to
`initialize`, and pipelined calls per second after that. The SDK lives in an environment of its own, which the
interop tests make on first use.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Final, NamedTuple

__all__ = ["INTEROP", "main", "sdk_python"]

_ROOT: Final = Path(__file__).resolve().parent.parent
INTEROP: Final = _ROOT / "tests" / "interop"
_REVISION: Final = "2025-11-25"


class _Sample(NamedTuple):
    start_ms: float
    calls_per_second: float


def main() -> int:
    """Measure, print and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.sdk", description=__doc__)
    parser.add_argument("--calls", type=int, default=2_000, help="calls a run (default: 2000)")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each server (default: 5)")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    options = parser.parse_args()
    samples: dict[str, list[_Sample]] = {"portbook": [], "python sdk": []}
    with TemporaryDirectory(prefix="portbook-bench-") as log_dir:
        serve = [sys.executable, "-m", "portbook", "serve", "--stdio", "bench/echo_tools.py"]
        commands = {
            "portbook": [*serve, "--config", "bench/portbook.toml", "--log-dir", log_dir],
            "python sdk": [sdk_python(), str(INTEROP / "python_echo_server.py")],
        }
        for _ in range(options.rounds):
            for name, command in commands.items():
                samples[name].append(_measure(command, options.calls))
    _print(samples, as_json=options.json)
    return 0


def sdk_python() -> str:
    """Return the Python of the environment that the interop tests keep the SDK in."""
    spec = importlib.util.spec_from_file_location("interop_sdks", _ROOT / "tests" / "support" / "sdks.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return str(module.python_sdk())


def _measure(command: list[str], calls: int) -> _Sample:
    started = time.perf_counter()
    with subprocess.Popen(
        command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(_line("initialize", 0, _hello()))
        child.stdin.flush()
        if json.loads(child.stdout.readline())["result"]["protocolVersion"] != _REVISION:
            raise RuntimeError(f"{command[0]} does not speak {_REVISION}")
        start_ms = (time.perf_counter() - started) * 1000
        child.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        lines = b"".join(
            _line("tools/call", number, {"name": "echo", "arguments": {"text": "hello"}})
            for number in range(1, calls + 1)
        )
        before = time.perf_counter()
        feeder = Thread(target=_feed, args=(child.stdin, lines), daemon=True)
        feeder.start()
        answered = {_checked(child.stdout.readline()) for _ in range(calls)}
        elapsed = time.perf_counter() - before
        feeder.join()
        child.stdin.close()
    if answered != set(range(1, calls + 1)):
        raise RuntimeError(f"{command[0]} left calls unanswered")
    return _Sample(start_ms, calls / elapsed)


def _hello() -> dict[str, Any]:
    return {"protocolVersion": _REVISION, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


def _line(method: str, identifier: int, params: dict[str, Any]) -> bytes:
    message = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def _feed(pipe: Any, data: bytes) -> None:
    pipe.write(data)
    pipe.flush()


def _checked(line: bytes) -> int:
    answer = json.loads(line)
    if "hello" not in answer["result"]["content"][0]["text"]:
        raise RuntimeError("a call was not answered with its echo")
    return answer["id"]


def _print(samples: dict[str, list[_Sample]], *, as_json: bool) -> None:
    medians = {
        name: _Sample(*(statistics.median(column) for column in zip(*own, strict=True)))
        for name, own in samples.items()
    }
    ours, theirs = medians["portbook"], medians["python sdk"]
    ratios = {
        "start": theirs.start_ms / ours.start_ms,
        "calls": ours.calls_per_second / theirs.calls_per_second,
    }
    if as_json:
        data = {"medians": {name: median._asdict() for name, median in medians.items()}, "ratios": ratios}
        print(json.dumps(data, indent=2))
        return
    print(f"{'':12} {'first answer, ms':>18} {'calls per second':>18}")
    for name, median in medians.items():
        print(f"{name:12} {median.start_ms:18.0f} {median.calls_per_second:18,.0f}")
    print(
        f"First answer {ratios['start']:.1f} times as soon, then {ratios['calls']:.1f} times as many calls."
    )


if __name__ == "__main__":
    sys.exit(main())
