"""Log lines of a server: none is lost while they are read, and none holds it up where they are not."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from portbook.cli.stderr_queue import OutputQueue, queued_output
from support.portbook_process import PORTBOOK, SAMPLE_TOOLS, child, invoke, records

PATIENCE = 20
SMALL_PIPE = 4096
CALLS = 60  # more records than a small pipe holds


@contextlib.contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    """A pipe that holds little."""
    ends = os.pipe()
    with contextlib.suppress(AttributeError):  # only Linux has it
        fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, SMALL_PIPE)
    try:
        yield ends
    finally:
        for end in ends:
            with contextlib.suppress(OSError):
                os.close(end)


def leave(read: int, write: int) -> None:
    """Nobody reads, and nobody ever will: what `| head` leaves behind."""
    os.close(read)


def stop_reading(read: int, write: int) -> None:
    """The reader is there and does not read: every further write would block."""


def stop_reading_without_blocking(read: int, write: int) -> None:
    """The same, on a pipe that a process beside us has made non-blocking."""
    os.set_blocking(write, False)


UNREAD = [leave, stop_reading, stop_reading_without_blocking]
unread = pytest.mark.parametrize("neglect", UNREAD)


@contextlib.contextmanager
def server(folder: Path, door: str, stderr: int, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    (folder / "portbook.toml").write_text("[audit]\nstderr = true\n")
    command = [*PORTBOOK, "serve", door, *(("--port", "0") if door == "--http" else ()), str(SAMPLE_TOOLS)]
    with child(command, cwd=folder, stdin=-1, stdout=-1, stderr=stderr, **options) as process:
        yield process


def address_said_on(read: int) -> str:
    said = b""
    while b"open http" not in said or not said.endswith(b"\n"):
        said += os.read(read, 4096)
    return said.decode().partition("open ")[2].partition("/ ")[0]


def calls_over(process: subprocess.Popen[bytes], address: str | None) -> None:
    """Make many calls, each of which is answered."""
    for number in range(CALLS):
        frame = invoke("echo", {"text": "x"}, id=number)
        if address is None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(frame + b"\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        else:
            request = urllib.request.Request(
                address + "/rpc", frame, {"content-type": "application/json"}, method="POST"
            )
            with urllib.request.urlopen(request, timeout=PATIENCE) as response:
                answer = response.read()
        assert json.loads(answer)["id"] == number


@pytest.mark.covers("design.unread-standard-error")
@unread
@pytest.mark.parametrize("door", ["--http", "--stdio"])
def test_a_server_whose_log_lines_nobody_reads_serves_and_stops(
    door: str, neglect: Callable[[int, int], None], tmp_path: Path
) -> None:
    with pipe() as (read, write), server(tmp_path, door, write) as process:
        address = address_said_on(read) if door == "--http" else None
        neglect(read, write)
        calls_over(process, address)
        process.send_signal(signal.SIGHUP)  # says something too
        process.terminate()
        assert process.wait(PATIENCE) == 0
    assert len(records(tmp_path / "runs")) == CALLS


@pytest.mark.parametrize("door", ["--http", "--stdio"])
def test_a_server_that_started_without_standard_error_serves_and_stops(door: str, tmp_path: Path) -> None:
    command = " ".join([*PORTBOOK, "serve", door, "--port", "0", str(SAMPLE_TOOLS), "2>&-"])
    with child(["sh", "-c", f"exec {command}"], cwd=tmp_path, stdin=-1, stdout=-1) as process:
        if door == "--stdio":
            calls_over(process, None)
        else:  # it says nothing: it serves once its log is there
            deadline = time.monotonic() + PATIENCE
            while not list(tmp_path.glob("runs/mcp_server/execution/*.jsonl")):
                assert time.monotonic() < deadline
                time.sleep(0.01)
            time.sleep(0.5)  # its signal handlers come after its log
        process.terminate()
        assert process.wait(PATIENCE) == 0


def test_prints_of_tools_do_not_hold_a_server_up_either(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(
        "from portbook import Toolset\ntoolset = Toolset('loud')\n"
        "@toolset.tool(effect='read', inline=True)\ndef echo(text: str) -> str:\n"
        "    print('x' * 1000)\n    return text\n"
    )
    command = [*PORTBOOK, "serve", "--stdio", "loud.py"]
    with (
        pipe() as (_, write),
        child(command, cwd=tmp_path, stdin=-1, stdout=-1, stderr=write) as process,
    ):
        calls_over(process, None)
        process.terminate()
        assert process.wait(PATIENCE) == 0


def test_every_line_that_is_read_arrives_in_order_and_before_the_end(tmp_path: Path) -> None:
    with server(tmp_path, "--stdio", subprocess.PIPE) as process:
        frames = b"".join(invoke("echo", {"text": "x"}, id=number) + b"\n" for number in range(500))
        _, said = process.communicate(frames, timeout=60)
    lines = [json.loads(line) for line in said.splitlines() if line.startswith(b"{")]
    assert [line["request_id"] for line in lines] == [
        record["requestId"] for record in records(tmp_path / "runs")
    ]
    assert len(lines) == 500


def test_a_server_that_is_stopped_twice_still_says_what_it_had_to(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(
        "import asyncio\nfrom portbook import Toolset\ntoolset = Toolset('slow')\n"
        "@toolset.tool(effect='read')\nasync def wait() -> str:\n"
        "    print('it waits', flush=True)\n    await asyncio.sleep(60)\n    return ''\n"
    )
    command = [*PORTBOOK, "serve", "--stdio", "slow.py"]
    with child(command, cwd=tmp_path, stdin=-1, stdout=-1, stderr=-1) as process:
        process.stdin.write(invoke("wait", {}) + b"\n")
        process.stdin.flush()
        assert process.stderr.readline() == b"it waits\n"
        process.terminate()
        assert b"finishing calls in flight" in process.stderr.readline()
        process.terminate()
        assert process.wait(PATIENCE) == 143


# -- the queue itself


def test_what_does_not_fit_is_dropped_and_counted() -> None:
    with pipe() as (read, write):
        queue = OutputQueue(write)
        for number in range(20_000):
            queue.write(b"%07d %s\n" % (number, b"x" * 91))
        said = bytearray()
        done = threading.Event()

        def listen() -> None:
            while not said.endswith(b"in time\n"):
                said.extend(os.read(read, 1 << 16))
            done.set()

        threading.Thread(target=listen, daemon=True).start()
        assert done.wait(PATIENCE)
        *lines, notice = said.splitlines()
        assert [int(line[:7]) for line in lines] == list(range(len(lines)))
        dropped = 20_000 - len(lines)
        assert dropped > 0
        assert notice.decode() == (
            f"portbook: warning: {dropped} lines were dropped here: they were not read in time"
        )
        queue.write(b"again\n")
        assert queue.drain(PATIENCE)
        assert os.read(read, 100) == b"again\n"
        queue.close()


def test_streams_without_a_descriptor_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    out, error = io.StringIO(), io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", error)
    with queued_output():
        assert (sys.stdout, sys.stderr) == (out, error)
    monkeypatch.setattr(sys, "stderr", None)
    with queued_output():
        assert sys.stderr is None


def test_after_the_block_the_streams_are_those_of_before_unless_nobody_reads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pipe() as (read, write), os.fdopen(os.dup(write), "w") as error:
        monkeypatch.setattr(sys, "stdout", io.StringIO())
        monkeypatch.setattr(sys, "stderr", error)
        with queued_output():
            assert sys.stderr is not error
            assert not sys.stderr.isatty()
            print("heard", file=sys.stderr)
        assert sys.stderr is error
        assert os.read(read, 100) == b"heard\n"
        with queued_output():
            print("x" * 100_000, file=sys.stderr)
        assert sys.stderr is not error, "the exit of the process would block on it"
        while os.read(read, 1 << 16)[-1:] != b"\n":
            pass
