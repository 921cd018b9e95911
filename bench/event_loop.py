"""`python -m bench.event_loop`: how long one call can keep a server from answering others.

One server over HTTP. While a costly call runs, `GET /livez` is asked again and again, over one connection.
Its longest wait is how long the event loop was held, at most. The costly calls: results of a megabyte that
are hard to redact, and tools that report without a pause, in threads and on the loop, to clients that read
nothing. The first row is the machine's own share: nothing costly runs.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

__all__ = ["main"]

_TOOLS: Final = """
from pathlib import Path

from portbook import Context, Toolset

tools = Toolset("costly")

@tools.tool(effect="read", inline=True)
def text(unit: str, size: int) -> str:
    return unit * (size // len(unit))

@tools.tool(effect="read")
def progress(reports: int, ended: str, context: Context) -> None:
    for number in range(reports):
        context.progress(number, reports, "x" * 1000)
    Path(ended).touch()

@tools.tool(effect="read")
def log(reports: int, ended: str, context: Context) -> None:
    for number in range(reports):
        context.log("info", {"number": number, "text": "x" * 1000})
    Path(ended).touch()

@tools.tool(effect="read")
async def async_progress(reports: int, ended: str, context: Context) -> None:
    for number in range(reports):
        await context.progress(number, reports, "x" * 1000)
    Path(ended).touch()

@tools.tool(effect="read")
async def async_log(reports: int, ended: str, context: Context) -> None:
    for number in range(reports):
        await context.log("info", {"number": number, "text": "x" * 1000})
    Path(ended).touch()
"""

_REVISION: Final = "2026-07-28"
_META: Final = "io.modelcontextprotocol/"
_SIZE: Final = 1_000_000
_READERS: Final = 8
_IDLE_S: Final = 2.0


class _Held(NamedTuple):
    longest_ms: float
    asked: int
    peak_mib: float


def main() -> int:
    """Measure, print and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.event_loop", description=__doc__)
    parser.add_argument("--reports", type=int, default=20_000, help="reports of each call (default: 20000)")
    parser.add_argument("--json", action="store_true", help="print data instead of a table")
    options = parser.parse_args()
    if sys.platform != "linux":
        sys.exit("bench.event_loop: the memory of another process is told on Linux alone")
    calls: dict[str, tuple[str, dict[str, Any], int]] = {"nothing": ("", {}, 0)}
    calls |= {
        f"1 MB of {unit!r}": ("text", {"unit": unit, "size": _SIZE}, 1)
        for unit in ("token: ", "Authorization: x ", "password=a ", "plain text. ")
    }
    for tool in ("progress", "log", "async_progress", "async_log"):
        kind = tool.replace("_", " ")
        name = f"{_READERS} calls, {options.reports:,} {kind} reports each, not read"
        calls[name] = (tool, {"reports": options.reports}, _READERS)
    found = {name: _held(*call) for name, call in calls.items()}
    if options.json:
        print(json.dumps({name: held._asdict() for name, held in found.items()}, indent=2))
        return 0
    print(f"{'while this runs':<62}{'longest wait, ms':>18}{'answers':>10}{'peak, MiB':>11}")
    for name, (longest_ms, asked, peak_mib) in found.items():
        print(f"{name:<62}{longest_ms:>18.1f}{asked:>10,}{peak_mib:>11.1f}")
    return 0


def _held(tool: str, arguments: dict[str, Any], clients: int) -> _Held:
    with TemporaryDirectory(prefix="portbook-bench-") as name, _serving(Path(name)) as (pid, port):
        alive = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        _ask(alive)
        is_over = threading.Event()
        if clients == 1:  # it reads, so that its end is known
            sockets = [_call(port, tool, arguments)]
            threading.Thread(target=_read, args=(sockets[0], is_over), daemon=True).start()
        else:
            ends = [Path(name) / f"ended-{number}" for number in range(clients)]
            sockets = [_call(port, tool, {**arguments, "ended": end.name}) for end in ends]
            threading.Thread(target=_watch, args=(ends, is_over), daemon=True).start()
        waits = [_ask(alive)]
        while not is_over.is_set():
            waits.append(_ask(alive))
        for each in sockets:
            each.close()
        return _Held(max(waits) * 1000, len(waits), _peak_mib(pid))


def _ask(alive: http.client.HTTPConnection) -> float:
    started = time.perf_counter()
    alive.request("GET", "/livez")
    alive.getresponse().read()
    return time.perf_counter() - started


def _call(port: int, tool: str, arguments: dict[str, Any]) -> socket.socket:
    meta = {
        f"{_META}protocolVersion": _REVISION,
        f"{_META}clientInfo": {"name": "bench", "version": "1"},
        f"{_META}clientCapabilities": {},
        f"{_META}logLevel": "debug",
        "progressToken": 1,
    }
    params = {"name": tool, "arguments": arguments, "_meta": meta}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: {_REVISION}\r\n"
        f"Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall(head.encode() + body)
    return client


def _read(client: socket.socket, is_over: threading.Event) -> None:
    response = http.client.HTTPResponse(client)
    response.begin()
    response.read()
    is_over.set()


def _watch(ends: list[Path], is_over: threading.Event) -> None:
    """Wait until every tool has ended; without one, for a while."""
    time.sleep(0 if ends else _IDLE_S)
    while not all(end.exists() for end in ends):
        time.sleep(0.01)
    is_over.set()


def _peak_mib(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


@contextlib.contextmanager
def _serving(folder: Path) -> Generator[tuple[int, int]]:
    (folder / "tools.py").write_text(_TOOLS)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "portbook", "serve", "--http", "--port", str(port), "tools.py"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PORTBOOK_")}
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.DEVNULL) as server:
        try:
            while True:
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.05)
            yield server.pid, port
        finally:
            server.kill()


if __name__ == "__main__":
    sys.exit(main())
