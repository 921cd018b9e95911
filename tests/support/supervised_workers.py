"""`portbook serve --http --workers N`, and a connection of one's own to each of its workers."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from support.portbook_process import PORTBOOK, child, environment

PATIENCE_S = 90.0

TOOLS = """\
import os
import time
from pathlib import Path

from portbook import Toolset

toolset = Toolset("x")
HERE = Path(__file__).parent

if (HERE / "broken").exists():
    os._exit(3)


@toolset.tool(effect="read", inline=True)
def who() -> int:
    return os.getpid()


@toolset.tool(effect="write", inline=True)
def enter(number: str) -> int:
    with (HERE / "ledger").open("a") as file:
        file.write(f"{number}\\n")
    return os.getpid()


@toolset.tool(effect="read")
def wait(name: str) -> int:
    (HERE / f"waiting-{name}").touch()
    while not (HERE / f"go-{name}").exists():
        time.sleep(0.01)
    return os.getpid()
"""


class Told(NamedTuple):
    """An answer."""

    status: int
    headers: Mapping[str, str]
    body: Any


@dataclass
class Workers:
    """A running supervisor, and where its workers answer."""

    process: subprocess.Popen[str]
    folder: Path
    count: int
    key: str | None = None
    """The key that requests carry."""
    said: list[str] = field(default_factory=list[str])
    """What was printed to standard error, line by line."""
    port: int = 0
    opened: list[http.client.HTTPConnection] = field(default_factory=list[http.client.HTTPConnection])

    def told(self, words: str, times: int = 1) -> str:
        """Wait until a line has these words for the last of so many times; return it."""
        found: list[str] = []

        def is_said() -> bool:
            found[:] = [line for line in self.said if words in line]
            return len(found) >= times

        wait_until(is_said, lambda: f"never said: {words}; said: {''.join(self.said)}")
        return found[times - 1]

    def connection(self) -> http.client.HTTPConnection:
        """A connection that is closed at the latest when the workers end."""
        opened = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        self.opened.append(opened)
        return opened

    def close(self) -> None:
        for connection in self.opened:
            connection.close()
        self.opened.clear()

    def request(
        self,
        path: str,
        body: Any = None,
        at: http.client.HTTPConnection | None = None,
        method: str | None = None,
        **headers: str,
    ) -> Told:
        """Send a request over a connection of its own, or over the given one."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.key is not None and "authorization" not in given:
            given["authorization"] = f"Bearer {self.key}"
        if body is not None:
            given.setdefault("content-type", "application/json")
        connection = at or http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        data = None if body is None else json.dumps(body)
        connection.request(method or ("GET" if body is None else "POST"), path, data, given)
        response = connection.getresponse()
        text = response.read()
        if at is None:
            connection.close()
        names = {name.lower(): value for name, value in response.headers.items()}
        return Told(response.status, names, json.loads(text) if text else None)

    def call(
        self,
        tool: str,
        at: http.client.HTTPConnection | None = None,
        /,
        approval: str | None = None,
        **args: Any,
    ) -> Told:
        body = {"tool_id": tool, "args": args, "session_id": "s"}
        if approval is not None:
            body["approval_id"] = approval
        return self.request("/execute", body, at)

    def who(self, at: http.client.HTTPConnection | None = None) -> int:
        answer = self.call("who", at)
        assert answer.status == 200, answer
        return int(answer.body["result"])

    def each(self, count: int | None = None) -> dict[int, http.client.HTTPConnection]:
        """A connection to each worker, by the id of its process; each has been used."""
        found: dict[int, http.client.HTTPConnection] = {}
        deadline = time.monotonic() + PATIENCE_S
        while len(found) < (count or self.count):
            assert time.monotonic() < deadline, f"only {sorted(found)} answer"
            # A second one to the same worker stays open: the next then goes to a different worker.
            connection = self.connection()
            found.setdefault(self.who(connection), connection)
        return found

    def health(self) -> Any:
        return self.request("/health").body

    def started(self, name: str) -> None:
        """Return once the tool `wait` runs with this name."""
        wait_until((self.folder / f"waiting-{name}").exists, lambda: f"wait {name} does not run")

    def let_go(self, name: str) -> None:
        (self.folder / f"go-{name}").touch()

    def ledger(self) -> list[str]:
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / "ledger").read_text().splitlines()
        return []


def wait_until(is_so: Callable[[], bool], why: Callable[[], str]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, why()
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    """Return whether a process is there that has not ended; one that nobody has waited for has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@contextlib.contextmanager
def workers(
    folder: Path, count: int, *options: str, settings: str = "", tools: str = TOOLS, **variables: str
) -> Generator[Workers]:
    """Start workers in a folder; however the block ends, all have ended after it."""
    (folder / "tools.py").write_text(tools)
    head = '[python]\ntoolsets = ["tools.py"]\n[docs]\nenabled = false\n'
    if "[audit]" not in settings:
        head += "[audit]\ncheckpoint_s = 1\n"
    (folder / "portbook.toml").write_text(head + settings)
    with child(
        [*PORTBOOK, "serve", "--http", "--port", "0", "--workers", str(count), *options],
        cwd=folder,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        served = Workers(process, folder, count)
        assert process.stderr is not None
        reader = threading.Thread(target=served.said.extend, args=(process.stderr,), daemon=True)
        reader.start()
        try:
            line = served.told("serving ")
            if found := re.search(r"://127\.0\.0\.1:(\d+)/ ", line):
                served.port = int(found[1])
            yield served
        finally:
            served.close()
            end_with_children(process)
            reader.join(PATIENCE_S)


def end_with_children(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            for pid in children_of(process.pid):
                os.kill(pid, signal.SIGKILL)
            raise


def children_of(pid: int) -> list[int]:
    found: list[int] = []
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, tasks.read_text().split())
    return found
