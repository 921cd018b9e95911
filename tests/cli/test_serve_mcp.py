"""MCP over STDIO as a process: what runs at once, what waits, what can be taken back."""

from __future__ import annotations

import fcntl
import json
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import forked_process
from support.portbook_process import PORTBOOK, SAMPLE_TOOLS, environment, records

PATIENCE = 30.0

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": "init",
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "tests", "version": "1"},
    },
}


STARTED: list[subprocess.Popen[bytes]] = []


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    """End what a test started and did not, which is one that failed."""
    yield
    while STARTED:
        with STARTED.pop() as process:  # closes its pipes
            process.kill()


class Client:
    def __init__(self, folder: Path, *tools: str) -> None:
        self.process = forked_process.ForkedProcess(
            [*PORTBOOK, "serve", "--stdio", *(tools or (str(SAMPLE_TOOLS),))],
            cwd=folder,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        STARTED.append(self.process)

    def send(self, *messages: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
        self.process.stdin.flush()

    def next(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def end(self) -> list[Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        rest = [json.loads(line) for line in self.process.stdout]
        assert self.process.wait(PATIENCE) == 0
        self.process.stdout.close()
        return rest


def call(name: str, id: object, **arguments: object) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": id,
        "method": "tools/call",
        "params": {"name": name, "arguments": arguments},
    }


def until(condition: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


@pytest.fixture
def client(tmp_path: Path) -> Any:
    client = Client(tmp_path)
    client.send(INITIALIZE)
    assert client.next()["result"]["protocolVersion"] == "2025-11-25"
    return client


@pytest.mark.covers("001.mcp.concurrent")
def test_a_slow_call_does_not_hold_up_a_quick_one(client: Client, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    client.send(call("wait_for", 1, path=str(flag)), call("echo", 2, text="quick"))
    assert client.next()["id"] == 2
    until(flag.exists)
    flag.unlink()
    assert client.next()["result"]["structuredContent"] == {"result": "released"}
    assert client.end() == []


def test_what_follows_initialize_waits_for_it(tmp_path: Path) -> None:
    client = Client(tmp_path)
    client.send(INITIALIZE, call("echo", 1, text="x"), {"jsonrpc": "2.0", "id": 2, "method": "ping"})
    assert [answer["id"] for answer in client.end()] == ["init", 1, 2]


@pytest.mark.covers("001.mcp.cancellation")
@pytest.mark.parametrize("identifier", [7, "seven"])
def test_a_cancelled_call_is_not_answered_and_is_recorded(
    client: Client, tmp_path: Path, identifier: object
) -> None:
    flag = tmp_path / "flag"
    client.send(call("wait_for", identifier, path=str(flag)))
    until(flag.exists)
    client.send(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": identifier}},
        call("echo", 8, text="still served"),
    )
    assert client.next()["id"] == 8
    flag.unlink()
    assert client.end() == []
    endings = [
        (record["method"], (record["error"] or {}).get("reason")) for record in records(tmp_path / "runs")
    ]
    assert sorted(endings, key=str) == [
        ("initialize", None),
        ("tools/call", "CANCELLED"),
        ("tools/call", None),
    ]


def test_cancelling_another_id_cancels_nothing(client: Client, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    client.send(call("wait_for", "7", path=str(flag)))
    until(flag.exists)
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
    flag.unlink()
    assert client.next()["id"] == "7"


def test_an_id_that_is_under_way_cannot_be_used_again(client: Client, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    broken = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 5}}
    client.send(
        call("wait_for", 1, path=str(flag)), call("echo", 1, text="x"), broken, call("echo", 1, text="x")
    )
    reasons = [client.next()["error"]["data"]["reason"] for _ in range(3)]
    assert reasons == ["ID_IN_USE", "BAD_PARAMS", "ID_IN_USE"]
    until(flag.exists)
    flag.unlink()
    assert "result" in client.next()
    client.send(call("echo", 1, text="again"))
    assert "result" in client.next()


def test_a_signal_lets_everything_under_way_finish(client: Client, tmp_path: Path) -> None:
    flags = [tmp_path / f"flag-{number}" for number in range(3)]
    client.send(*(call("wait_for", number, path=str(flag)) for number, flag in enumerate(flags)))
    until(lambda: all(flag.exists() for flag in flags))
    client.process.send_signal(signal.SIGTERM)
    for flag in flags:
        flag.unlink()
    assert sorted(client.next()["id"] for _ in flags) == [0, 1, 2]
    assert client.process.wait(PATIENCE) == 0


def test_the_end_of_input_lets_everything_under_way_finish(client: Client, tmp_path: Path) -> None:
    client.send(*(call("echo_in_thread", number, text="x") for number in range(50)))
    assert sorted(answer["id"] for answer in client.end()) == list(range(50))


def test_a_cancellation_while_its_answer_is_written_tears_no_frame(client: Client) -> None:
    big = "x" * 900_000
    client.send(call("echo_later", 1, text=big), call("echo_later", 2, text=big))
    until(lambda: _waiting(client) >= 60_000)
    client.send(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
        call("echo", 3, text="x"),
    )
    assert sorted(answer["id"] for answer in client.end()) == [1, 2, 3]


def _waiting(client: Client) -> int:
    return struct.unpack("i", fcntl.ioctl(client.process.stdout, termios.FIONREAD, b"\0\0\0\0"))[0]


def test_calls_cancelled_in_the_same_breath_leave_every_worker_free(tmp_path: Path) -> None:
    (tmp_path / "portbook.toml").write_text("[execution]\nworkers = 2\n")
    client = Client(tmp_path)
    client.send(INITIALIZE)
    client.next()
    for number in range(6):
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
        client.send(call("wait_for", number, path=str(tmp_path / f"flag-{number}")), cancel)
    client.send(call("echo_in_thread", "last", text="served"))
    assert client.next()["id"] == "last"
    with client.process:
        client.process.kill()


def test_a_cancellation_is_heard_however_many_calls_are_under_way(client: Client, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    client.send(*(call("wait_for", number, path=str(flag)) for number in range(1100)))
    refused = [client.next() for _ in range(1100 - 1024)]
    reasons = {answer["result"]["_meta"]["portbook/refusal"]["reason"] for answer in refused}
    assert reasons == {"TOO_MANY_IN_FLIGHT"}
    client.send({"jsonrpc": "2.0", "id": "ping", "method": "ping"})
    assert client.next()["id"] == "ping"


STUBBORN = """
import asyncio
from portbook import Context, Toolset
toolset = Toolset("stubborn")
@toolset.tool(timeout_ms=50)
async def stubborn(context: Context) -> str:
    while True:
        context.progress(1)
        try: await asyncio.sleep(0.01)
        except asyncio.CancelledError: pass
"""


def test_a_coroutine_that_refuses_to_end_neither_holds_the_server_nor_tells_more(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(STUBBORN)
    client = Client(tmp_path, "tools.py")
    client.send(INITIALIZE)
    client.next()
    request = call("stubborn", 1)
    request["params"]["_meta"] = {"progressToken": 5}
    client.send(request)
    while "result" not in client.next():
        pass
    client.send({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    assert client.next() == {"jsonrpc": "2.0", "id": 2, "result": {}}
    assert client.end() == []


FLOOD = """
from portbook import Context, Toolset
toolset = Toolset("flood")
@toolset.tool
def flood(context: Context) -> str:
    for number in range(200_000): context.progress(number)
    return "done"
"""


def test_progress_that_nobody_reads_fills_no_memory(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(FLOOD)
    client = Client(tmp_path, "tools.py")
    client.send(INITIALIZE)
    client.next()
    request = call("flood", 1)
    request["params"]["_meta"] = {"progressToken": 5}
    before = _peak_kib(client)
    client.send(request)
    until(lambda: len(records(tmp_path / "runs")) == 2)
    assert _peak_kib(client) - before < 32 * 1024
    assert client.end()[-1]["result"]["structuredContent"] == {"result": "done"}


def _peak_kib(client: Client) -> int:
    status = Path(f"/proc/{client.process.pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


PROGRESS = """
from portbook import Context, Toolset
toolset = Toolset("progress")
@toolset.tool
def count(context: Context, steps: int) -> int:
    for step in range(steps): context.progress(step, steps)
    return steps
"""


def test_progress_comes_before_the_result(tmp_path: Path) -> None:
    (tmp_path / "tools.py").write_text(PROGRESS)
    client = Client(tmp_path, "tools.py")
    client.send(INITIALIZE)
    client.next()
    request = call("count", 1, steps=20)
    request["params"]["_meta"] = {"progressToken": 5}
    client.send(request)
    told = client.end()
    assert [message["params"]["progress"] for message in told[:-1]] == list(range(20))
    assert told[-1]["result"]["structuredContent"] == {"result": 20}


def test_a_thousand_calls_at_once_are_all_answered(client: Client) -> None:
    client.send(*(call("echo_later", number, text="x") for number in range(1000)))
    assert sorted(answer["id"] for answer in client.end()) == list(range(1000))
