"""Starts Portbook as its users do, as a process of its own, and talks to it through its doors."""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from support import forked_process
from support.forked_process import ForkedProcess

TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
SAMPLE_TOOLS = TESTS / "fixtures" / "sample_tools.py"
TOOLSET = ("--toolset", str(SAMPLE_TOOLS))
PORTBOOK = (sys.executable, "-m", "portbook")


def environment(**extra: str) -> dict[str, str]:
    """The environment of a person who has set nothing of Portbook's."""
    ours = ("PORTBOOK_", "SYN_", "MCP_")
    # One by one: a thread may ask while pytest removes the name of the test that has ended.
    inherited = {name: os.environ.get(name) for name in list(os.environ) if not name.startswith(ours)}
    return {**{name: value for name, value in inherited.items() if value is not None}, **extra}


def invoke(tool: str, arguments: object, *, id: object = 1, **params: object) -> bytes:
    """One call in an envelope."""
    message = {
        "jsonrpc": "2.0",
        "id": id,
        "method": "mcp.tool.invoke",
        "params": {"tool": f"mcp.tool:{tool}", "input": arguments, **params},
    }
    return json.dumps(message, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Finished:
    code: int
    out: bytes
    err: str

    @property
    def answers(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


def run(*arguments: str, stdin: bytes = b"", cwd: Path, env: dict[str, str] | None = None) -> Finished:
    """Run `portbook` to its end."""
    done = forked_process.run(
        [*PORTBOOK, *arguments],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env=env or environment(),
        timeout=60,
    )
    return Finished(done.returncode, done.stdout, done.stderr.decode())


def over_stdio(
    *frames: bytes, cwd: Path, options: tuple[str, ...] = (), env: dict[str, str] | None = None
) -> Finished:
    """Send frames to `portbook serve --stdio` with the sample tools, and collect everything."""
    return run(
        "serve",
        "--stdio",
        *options,
        str(SAMPLE_TOOLS),
        stdin=b"".join(f + b"\n" for f in frames),
        cwd=cwd,
        env=env,
    )


@dataclass(frozen=True)
class Response:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class HttpServer:
    url: str
    process: subprocess.Popen[bytes]

    def request(
        self, path: str, body: bytes | None = None, method: str | None = None, **headers: str
    ) -> Response:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, data=body, headers=given, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                return Response(response.status, _lower(response.headers), response.read())
        except urllib.error.HTTPError as error:
            with error:
                return Response(error.code, _lower(error.headers), error.read())

    def rpc(self, frame: bytes, **headers: str) -> Response:
        return self.request("/rpc", frame, **{"content_type": "application/json", **headers})


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


@contextlib.contextmanager
def child(command: Sequence[str | bytes], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a process in nobody's environment; however the block ends, the process has ended after it."""
    with ForkedProcess(command, **{"env": environment(), **options}) as process:
        try:
            yield process
        finally:
            process.kill()  # nothing where it has ended already


@contextlib.contextmanager
def http_server(
    *options: str,
    cwd: Path,
    tools: tuple[str, ...] = (str(SAMPLE_TOOLS),),
    env: dict[str, str] | None = None,
    stderr: IO[bytes] | None = None,
) -> Iterator[HttpServer]:
    """`portbook serve --http` on a free port; what it says once it serves goes to `stderr`, if given."""
    with child(
        [*PORTBOOK, "serve", "--http", "--port", "0", *options, *tools],
        cwd=cwd,
        env=env or environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        yield from _served(process, stderr)


def _served(process: subprocess.Popen[bytes], stderr: IO[bytes] | None) -> Iterator[HttpServer]:
    assert process.stderr is not None
    listening: threading.Thread | None = None
    try:
        said = b""
        while not (found := re.search(rb"open (http://\S+)/ ", said)):
            line = process.stderr.readline()
            assert line, f"it did not start: {said.decode()}"
            said += line
        if stderr is not None:
            # Line by line, for those who wait for one.
            listening = threading.Thread(target=stderr.writelines, args=(process.stderr,), daemon=True)
            listening.start()
        yield HttpServer(found[1].decode(), process)
    finally:
        process.terminate()
        process.wait(30)
        if listening is not None:
            listening.join(30)


def records(log_dir: Path) -> list[dict[str, Any]]:
    """The records of the latest run under a log folder."""
    folder = log_dir / "mcp_server" / "envelope_validation"
    text = (folder / "envelope_validation.latest.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]
