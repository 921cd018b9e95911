"""`portbook serve` as a process: what it prints, how it ends, what its tools cannot do to it."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shlex
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.portbook_process import (
    PORTBOOK,
    SAMPLE_TOOLS,
    child,
    environment,
    http_server,
    invoke,
    over_stdio,
    records,
    run,
)

PATIENCE = 30.0

# What a full pipe has left, at most: not every write fills its last page.
UNUSED = 1 << 16


@contextlib.contextmanager
def stdio_process(cwd: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [*PORTBOOK, "serve", "--stdio", *options, str(SAMPLE_TOOLS)],
        cwd=cwd,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def ask(process: subprocess.Popen[bytes], frame: bytes) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(frame + b"\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def until(condition: object) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


def test_each_way_to_run_a_function_answers_over_stdio(tmp_path: Path) -> None:
    tools = ["echo", "echo_in_thread", "echo_later"]
    finished = over_stdio(*(invoke(tool, {"text": tool}, id=tool) for tool in tools), cwd=tmp_path)
    assert finished.code == 0
    assert finished.answers == [{"jsonrpc": "2.0", "id": tool, "result": tool} for tool in tools]


@pytest.mark.covers("design.stdio.frames-only")
def test_what_a_tool_prints_never_reaches_the_frames(tmp_path: Path) -> None:
    finished = over_stdio(invoke("printing", {}), invoke("echo", {"text": "still here"}, id=2), cwd=tmp_path)
    assert finished.answers == [
        {"jsonrpc": "2.0", "id": 1, "result": ""},
        {"jsonrpc": "2.0", "id": 2, "result": "still here"},
    ]
    for noise in ("noise from print", "noise from a descriptor", "noise from a child"):
        assert noise in finished.err


def test_a_pipe_without_flags_is_served_as_stdio(tmp_path: Path) -> None:
    finished = run("serve", str(SAMPLE_TOOLS), stdin=invoke("echo", {"text": "x"}), cwd=tmp_path)
    assert (finished.code, finished.answers[0]["result"]) == (0, "x")


def test_a_hanging_tool_keeps_its_deadline_and_the_next_call_is_served(tmp_path: Path) -> None:
    finished = over_stdio(invoke("hanging", {}), invoke("echo_in_thread", {"text": "x"}, id=2), cwd=tmp_path)
    assert finished.answers[0]["error"]["data"]["reason"] == "TIMEOUT"
    assert finished.answers[1]["result"] == "x"
    assert finished.code == 0


def test_a_tool_that_exits_ends_its_call_and_not_the_server(tmp_path: Path) -> None:
    finished = over_stdio(invoke("leaving", {}), invoke("echo", {"text": "x"}, id=2), cwd=tmp_path)
    assert finished.answers[0]["error"]["data"]["canonical_code"] == "INTERNAL_ERROR"
    assert finished.answers[1]["result"] == "x"


def test_input_from_a_file_is_served_to_its_end(tmp_path: Path) -> None:
    frames = tmp_path / "frames.ndjson"
    frames.write_bytes(b"".join(invoke("echo", {"text": "x" * 1000}, id=at + 1) + b"\n" for at in range(300)))
    with frames.open("rb") as source:
        done = subprocess.run(
            [*PORTBOOK, "serve", "--stdio", str(SAMPLE_TOOLS)],
            stdin=source,
            capture_output=True,
            cwd=tmp_path,
        )
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == list(range(1, 301))


@pytest.mark.covers("design.stdio.unread-stop")
def test_a_signal_ends_it_though_its_client_reads_nothing(tmp_path: Path) -> None:
    with stdio_process(tmp_path) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        # Large enough that a pipe, however wide, is full before the second answer is whole.
        sent = b"".join(invoke("echo", {"text": "x" * 600_000}, id=at + 1) + b"\n" for at in range(5))

        def send() -> None:
            with contextlib.suppress(BrokenPipeError):  # once it has ended
                process.stdin.write(sent)  # type: ignore[union-attr]  # all of it, whatever interrupts
                process.stdin.flush()  # type: ignore[union-attr]

        sending = threading.Thread(target=send)
        sending.start()
        until(lambda: _unread(process.stdout) > max(0, _capacity(process.stdout) - UNUSED))
        process.send_signal(signal.SIGTERM)
        assert b"finishing calls in flight" in process.stderr.readline()
        assert b"the client does not read its answers; giving up" in process.stderr.readline()
        assert process.wait(30) == 0
        sending.join()


def _unread(pipe: Any) -> int:
    return struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0"))[0]


def _capacity(pipe: Any) -> int:
    """How much a pipe holds: Linux tells, and lets it grow."""
    return fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ) if hasattr(fcntl, "F_GETPIPE_SZ") else 1 << 16


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_lets_the_call_in_flight_finish_and_exits_0(tmp_path: Path, number: int) -> None:
    flag = tmp_path / "started"
    with stdio_process(tmp_path) as process:
        assert process.stdin is not None
        process.stdin.write(
            invoke("wait_for", {"path": str(flag)}) + b"\n" + invoke("echo", {"text": "x"}, id=2) + b"\n"
        )
        process.stdin.flush()
        until(flag.exists)
        process.send_signal(number)
        assert process.stderr is not None
        assert b"finishing calls in flight" in process.stderr.readline()
        flag.unlink()
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert [json.loads(line) for line in out.splitlines()] == [
        {"jsonrpc": "2.0", "id": 1, "result": "released"}
    ]
    assert b"Traceback" not in err


def test_an_idle_server_ends_on_a_signal_with_0(tmp_path: Path) -> None:
    with stdio_process(tmp_path) as process:
        assert ask(process, invoke("echo", {"text": "x"}))["result"] == "x"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_second_signal_does_not_wait(tmp_path: Path, number: signal.Signals, code: int) -> None:
    flag = tmp_path / "started"
    with stdio_process(tmp_path) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(invoke("wait_for", {"path": str(flag)}) + b"\n")
        process.stdin.flush()
        until(flag.exists)
        process.send_signal(number)
        process.stderr.readline()
        process.send_signal(number)
        assert process.wait(PATIENCE) == code


def test_a_closed_stdout_ends_quietly(tmp_path: Path) -> None:
    with stdio_process(tmp_path) as process:
        assert ask(process, invoke("echo", {"text": "x"}))["result"] == "x"
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        process.stdin.write(invoke("echo", {"text": "y"}) + b"\n")
        process.stdin.flush()
        assert process.wait(PATIENCE) == 0
        assert process.stderr.read() == b""


def test_a_reader_that_lags_behind_gets_every_answer_in_order(tmp_path: Path) -> None:
    text = "x" * 2000
    frames = [invoke("echo", {"text": text}, id=at + 1) + b"\n" for at in range(2000)]
    with stdio_process(tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        writer = threading.Thread(target=lambda: (process.stdin.writelines(frames), process.stdin.close()))
        writer.start()
        until(lambda: _unread(process.stdout) >= 60_000)
        answers = [json.loads(line)["id"] for line in process.stdout]
        writer.join()
        assert process.wait(PATIENCE) == 0
    assert answers == list(range(1, 2001))


@pytest.mark.covers("design.framing.bounded-memory")
def test_300_megabytes_without_a_newline_grow_memory_by_at_most_8_mebibytes(tmp_path: Path) -> None:
    with stdio_process(tmp_path) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        ask(process, invoke("echo", {"text": "x"}))
        before = _peak_kib(process.pid)
        megabyte = b"x" * 1_000_000
        for _ in range(300):
            process.stdin.write(megabyte)
        process.stdin.write(b"\n")
        oversize = ask(process, invoke("echo", {"text": "y"}, id=2))
        after = _peak_kib(process.pid)
        assert oversize == {
            "jsonrpc": "2.0",
            "id": None,
            "result": {
                "ok": False,
                "reason": "validation_failed",
                "errors": [{"path": "", "msg": "payload_too_large"}],
            },
        }
        assert json.loads(process.stdout.readline())["result"] == "y"
    assert after - before <= 8 * 1024


def _peak_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def test_exactly_a_mebibyte_passes_and_a_byte_more_does_not(tmp_path: Path) -> None:
    room = 1_048_576 - len(invoke("echo", {"text": ""}))
    finished = over_stdio(
        invoke("echo", {"text": "x" * room}), invoke("echo", {"text": "x" * (room + 1)}), cwd=tmp_path
    )
    assert len(finished.answers[0]["result"]) == room
    assert finished.answers[1]["result"]["errors"] == [{"path": "", "msg": "payload_too_large"}]


def test_an_incoming_traceparent_is_honoured_over_both_doors(tmp_path: Path) -> None:
    trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    header = f"00-{trace}-00f067aa0ba902b7-01"
    over_stdio(invoke("echo", {"text": "x"}, _meta={"traceparent": header}), cwd=tmp_path)
    assert records(tmp_path / "runs")[0]["traceId"] == trace
    with http_server("--log-dir", "http", cwd=tmp_path) as server:
        response = server.rpc(invoke("echo", {"text": "x"}), traceparent=header)
    (record,) = records(tmp_path / "http")
    assert record["traceId"] == trace
    assert response.headers["traceparent"] == f"00-{trace}-{record['spanId'][:16]}-01"
    assert response.headers["x-request-id"] == record["requestId"]


def test_both_doors_at_once_share_one_boundary_and_end_with_standard_input(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with stdio_process(tmp_path, "--http", "--port", str(port)) as process:
        assert ask(process, invoke("echo", {"text": "pipe"}))["result"] == "pipe"
        import urllib.request

        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/rpc",
            invoke("echo", {"text": "http"}),
            {"content-type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as response:
            assert json.loads(response.read())["result"] == "http"
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
    assert [record["transport"] for record in records(tmp_path / "runs")] == ["stdio", "http"]


def test_a_taken_port_is_explained(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        finished = run("serve", "--http", "--port", str(taken.getsockname()[1]), cwd=tmp_path)
    assert finished.code == 2
    assert "choose a different one with --port" in finished.err


def test_a_full_disk_refuses_calls_before_they_run(tmp_path: Path) -> None:
    flag = tmp_path / "ran"
    server = shlex.join([*PORTBOOK, "serve", "--stdio", str(SAMPLE_TOOLS)])
    limited = f"ulimit -f 1; exec {server}"
    with child(
        ["bash", "-c", limited],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        answer: dict[str, Any] = {}
        while "error" not in answer:
            answer = ask(process, invoke("echo", {"text": "x"}))
        assert answer["error"]["data"]["reason"] == "NOT_RECORDED"
        answer = ask(process, invoke("wait_for", {"path": str(flag)}))
        assert answer["error"]["data"]["reason"] == "NOT_RECORDED"
        assert not flag.exists()
        process.kill()
        assert process.stderr is not None
        assert process.stderr.read().count(b"records cannot be written") == 1


def test_a_terminal_without_flags_is_served_over_http(tmp_path: Path) -> None:
    controller, terminal = os.openpty()
    with child(
        [*PORTBOOK, "serve", "--port", "0", str(SAMPLE_TOOLS)],
        stdin=terminal,
        stdout=terminal,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment(),
    ) as process:
        assert process.stderr is not None
        assert b"open http://127.0.0.1:" in process.stderr.readline()
        process.terminate()
        assert process.wait(PATIENCE) == 0
    os.close(controller)
    os.close(terminal)


@pytest.mark.parametrize(
    ("settings", "code", "said"),
    [
        ("", "", b"serving 0 tools; open http://"),
        (
            "[docs]\nenabled = true\n",
            "@toolset.resource('a://b')\n@toolset.resource('a://c')\ndef b() -> str: ...\n",
            b"serving 1 tool, 2 resources; open http://",
        ),
        (
            "[docs]\nenabled = false\n",
            "@toolset.prompt\ndef ask() -> str: ...\n",
            b"serving 1 prompt; open http://",
        ),
        ("[docs]\nenabled = true\n", "", b"serving 1 tool; open http://"),
    ],
)
def test_the_invitation_counts_whatever_is_served(
    tmp_path: Path, settings: str, code: str, said: bytes
) -> None:
    (tmp_path / "offers.py").write_text(
        f"from portbook import Toolset\n\ntoolset = Toolset('offers')\n{code}"
    )
    (tmp_path / "portbook.toml").write_text(settings)
    with child(
        [*PORTBOOK, "serve", "--http", "--port", "0", "offers.py"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        assert any(said in line for line in iter(process.stderr.readline, b""))
