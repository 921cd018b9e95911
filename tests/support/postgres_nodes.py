"""Servers as if on machines of their own: each in its folder, with one database for all."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from psycopg.conninfo import conninfo_to_dict

from support.portbook_process import HttpServer, Response, environment, http_server, invoke

OPERATOR = "operator-key-of-the-nodes"
PATIENCE_S = 90.0

# `enter` needs a person and leaves a line in the ledger; `jot` leaves one, too, and needs nobody. `hold` runs
# until it may end. `look` needs nothing.
TOOLS = """
import os, time
from pathlib import Path
from portbook import Toolset

toolset = Toolset("ledger")
FOLDER = Path(__file__).parent.parent
LEDGER = os.open(FOLDER / "ledger", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

@toolset.tool(effect="write", inline=True)
def enter(number: str) -> str:
    os.write(LEDGER, number.encode() + b"\\n")
    return "entered"

@toolset.tool(effect="write", inline=True)
def jot(number: str) -> str:
    os.write(LEDGER, number.encode() + b"\\n")
    return "jotted"

@toolset.tool(effect="write")
def hold(number: str) -> str:
    os.write(LEDGER, number.encode() + b"\\n")
    while not (FOLDER / "go on").exists():
        time.sleep(0.01)
    return "held"

@toolset.tool(effect="read", inline=True)
def look() -> str:
    return "seen"
"""

SETTINGS = """
[python]
toolsets = ["tools.py"]
[docs]
enabled = false
[audit]
arguments = true
checkpoint_s = 0
keep = 1000
[store]
url = "URL"
lease_s = LEASE
[[policy.rules]]
name = "a person"
tools = ["enter", "hold"]
action = "ask"
"""


def make_node(folder: Path, name: str, url: str, lease_s: int = 15) -> Path:
    """A folder for a node."""
    place = folder / name
    place.mkdir()
    (place / "tools.py").write_text(TOOLS)
    (place / "portbook.toml").write_text(SETTINGS.replace("URL", url).replace("LEASE", str(lease_s)))
    return place


@contextmanager
def node(folder: Path, **options: Any) -> Iterator[HttpServer]:
    """A server in the folder of a node."""
    env = environment(PORTBOOK_OPERATOR_KEY=OPERATOR)
    with http_server(cwd=folder, tools=(), env=env, **options) as server:
        yield server


@contextmanager
def nodes(folder: Path, url: str, count: int, lease_s: int = 15) -> Iterator[list[HttpServer]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(node(make_node(folder, f"node-{at}", url, lease_s))) for at in range(count)
        ]


class Fleet:
    """Nodes that are killed and started again; one that starts does not keep the others waiting."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._stacks = [ExitStack() for _ in folders]
        self._pool = ThreadPoolExecutor(len(folders))
        self._starting: list[Future[HttpServer]] = []

    def __enter__(self) -> Self:
        self._starting = [self._pool.submit(self._start, at) for at in range(len(self._folders))]
        return self

    def __exit__(self, *_: object) -> None:
        wait(self._starting)
        for stack in self._stacks:
            stack.close()
        self._pool.shutdown()

    def serving(self, least: int = 2) -> dict[int, HttpServer]:
        """Those that serve now, by their place: at least so many, which are waited for."""
        while sum(each.done() for each in self._starting) < least:
            wait([each for each in self._starting if not each.done()], PATIENCE_S, FIRST_COMPLETED)
        return {at: each.result() for at, each in enumerate(self._starting) if each.done()}

    def kill(self, at: int) -> None:
        """Kill one, and begin to start it again."""
        process = self._starting[at].result().process
        process.send_signal(signal.SIGKILL)
        process.wait()
        self._stacks[at].close()
        self._starting[at] = self._pool.submit(self._start, at)

    def _start(self, at: int) -> HttpServer:
        return self._stacks[at].enter_context(node(self._folders[at]))


def call(server: HttpServer, tool: str, number: str, approval: str | None = None, **headers: str) -> Response:
    """Call a tool, under an approval if one is given."""
    meta = {} if approval is None else {"_meta": {"portbook/approval_id": approval}}
    given = {} if tool == "look" else {"number": number}
    return server.rpc(invoke(tool, given, id=f"{number}-{time.monotonic_ns()}", **meta), **headers)


def reason(response: Response) -> str:
    """Why a call was refused; "passed" if it was not."""
    answer = response.json
    if "result" in answer:
        return "passed"
    data = answer["error"]["data"]
    return str(data.get("reason") or data.get("canonical_code"))


def asked(server: HttpServer, tool: str, number: str) -> str:
    """The id of the approval that a call needs."""
    answer = call(server, tool, number)
    data = answer.json["error"]["data"]
    assert "approval_id" in data, answer
    return str(data["approval_id"])


def decide(server: HttpServer, approval: str, decision: str = "approve") -> Response:
    body = json.dumps({"decision": decision}).encode()
    return server.request(f"/approvals/{approval}", body, content_type="application/json", **_OPERATORS)


def state(server: HttpServer, approval: str) -> str:
    """The state of an approval as a node sees it."""
    return str(server.request(f"/approvals/{approval}", **_OPERATORS).json.get("state"))


_OPERATORS = {"authorization": f"Bearer {OPERATOR}"}


def eventually(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not come to that"
        time.sleep(0.05)


def ledger(folder: Path) -> list[str]:
    """What was entered."""
    with suppress(FileNotFoundError):
        return (folder / "ledger").read_text().split()
    return []


def written_records(folders: Sequence[Path], stream: str, *tools: str) -> list[dict[str, Any]]:
    """The records of a stream about some tools, from folders of nodes; what a kill cut off is none."""
    found: list[dict[str, Any]] = []
    for folder in folders:
        for path in (folder / "runs" / "mcp_server" / stream).glob("*Z.*.jsonl"):
            lines = path.read_bytes().splitlines(keepends=True)
            found += [json.loads(line) for line in lines if line.endswith(b"\n")]
    return [record for record in found if record["tool_id"].removeprefix("mcp.tool:") in tools]


class StallingProxy:
    """Forwards connections to a database, until it is told to stall: it then keeps the bytes it gets."""

    def __init__(self, url: str) -> None:
        """Forward to the database at `url`; `self.url` leads through this."""
        parts = conninfo_to_dict(url)
        host, port, name = str(parts["host"]), parts.get("port", "5432"), parts["dbname"]
        self._target = f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, int(str(port)))
        self._may_pass = threading.Event()
        self._may_pass.set()
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgresql://{parts.get('user', '')}:{parts.get('password', '')}@127.0.0.1:"
        self.url += f"{self._listener.getsockname()[1]}/{name}?sslmode=disable&gssencmode=disable"
        threading.Thread(target=self._accept, daemon=True).start()

    def stall(self) -> None:
        self._may_pass.clear()

    def go_on(self) -> None:
        """Forward again; what was kept is forwarded too."""
        self._may_pass.set()

    def close(self) -> None:
        self._may_pass.set()
        for each in (self._listener, *self._open):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                is_unix = isinstance(self._target, str)
                server = socket.socket(socket.AF_UNIX if is_unix else socket.AF_INET)
                server.connect(self._target)
                self._open += [client, server]
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                self._may_pass.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)


class LosingProxy(StallingProxy):
    """Loses the answer to the COMMIT of a redemption, and every connection from then on, until it goes on."""

    def __init__(self, url: str) -> None:
        self.has_lost = threading.Event()
        self._redeeming: set[socket.socket] = set()
        self._cut: set[socket.socket] = set()
        self._is_lost = False
        super().__init__(url)

    def go_on(self) -> None:
        """Forward new connections again."""
        self._is_lost = False

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                if source in self._cut:  # the server has done it, and nobody learns of that
                    self._is_lost = True
                    self.has_lost.set()
                if self._is_lost:
                    break
                if b"UPDATE ticket SET state = 'running'" in data:
                    self._redeeming.add(source)
                elif source in self._redeeming and b"COMMIT" in data and not self.has_lost.is_set():
                    self._cut.add(sink)
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
