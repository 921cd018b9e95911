"""`portbook serve` as a process: what it prints, how it ends, what its tools cannot do to it."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.portbook_process import (
    PORTBOOK,
    SAMPLE_TOOLS,
    environment,
    http_server,
    invoke,
    over_stdio,
    records,
    run,
)

PATIENCE = 30.0


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


def test_what_a_tools_module_prints_when_loaded_never_reaches_the_frames(tmp_path: Path) -> None:
    tools = tmp_path / "loud.py"
    tools.write_text(f"print('noise while loading')\n{SAMPLE_TOOLS.read_text()}")
    finished = run("serve", "--stdio", str(tools), stdin=invoke("echo", {"text": "x"}) + b"\n", cwd=tmp_path)
    assert finished.answers == [{"jsonrpc": "2.0", "id": 1, "result": "x"}]


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


def test_a_second_signal_does_not_wait(tmp_path: Path) -> None:
    flag = tmp_path / "started"
    with stdio_process(tmp_path) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(invoke("wait_for", {"path": str(flag)}) + b"\n")
        process.stdin.flush()
        until(flag.exists)
        process.send_signal(signal.SIGINT)
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130


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
        until(lambda: _is_full(process.stdout))
        answers = [json.loads(line)["id"] for line in process.stdout]
        writer.join()
        assert process.wait(PATIENCE) == 0
    assert answers == list(range(1, 2001))


def _is_full(pipe: object) -> bool:
    import fcntl
    import struct
    import termios

    waiting = struct.unpack("i", fcntl.ioctl(pipe, termios.FIONREAD, b"\0\0\0\0"))[0]  # type: ignore[arg-type]
    return waiting >= 60_000


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


@pytest.mark.covers("000.ids.deterministic")
def test_deterministic_ids_are_equal_over_both_doors_and_in_the_next_process(tmp_path: Path) -> None:
    frame = invoke("echo", {"text": "x"}, id=1)
    names = [_names_over_stdio(frame, tmp_path / str(at), "--deterministic-ids") for at in range(2)]
    (tmp_path / "http").mkdir()
    with http_server("--deterministic-ids", cwd=tmp_path / "http") as server:
        server.rpc(frame)
    (record,) = records(tmp_path / "http" / "runs")
    assert names[0] == names[1] == _names(record)
    assert record["metadata"]["deterministic"] is True
    assert len(set(names[0])) == 3


@pytest.mark.covers("000.ids.random-otherwise")
def test_without_the_flag_ids_differ_every_time(tmp_path: Path) -> None:
    frame = invoke("echo", {"text": "x"}, id=1)
    names = [_names_over_stdio(frame, tmp_path / str(at)) for at in range(2)]
    assert not set(names[0]) & set(names[1])


def _names_over_stdio(frame: bytes, folder: Path, *options: str) -> tuple[str, str, str]:
    folder.mkdir()
    over_stdio(frame, cwd=folder, options=options)
    (record,) = records(folder / "runs")
    return _names(record)


def _names(record: dict[str, str]) -> tuple[str, str, str]:
    return record["requestId"], record["traceId"], record["spanId"]


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


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("nothing_here.py",), "nothing_here.py: no such file"),
        (("--config", "missing.toml"), "missing.toml: cannot be read"),
        (("--http", "--host", "256.1.1.1"), "check --host"),
    ],
)
def test_a_start_that_cannot_succeed_says_why_in_one_line_and_exits_2(
    tmp_path: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    finished = run("serve", *arguments, cwd=tmp_path)
    assert finished.code == 2
    assert finished.out == b""
    assert sentence in finished.err
    assert finished.err.count("\n") == 1


def test_a_taken_port_is_explained(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        finished = run("serve", "--http", "--port", str(taken.getsockname()[1]), cwd=tmp_path)
    assert finished.code == 2
    assert "choose a different one with --port" in finished.err


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("serve --stdio <&-", "standard input is closed"),
        ("serve --stdio >&-", "standard output is closed"),
        ("tools >&-", "standard output is closed"),
        ("tools >/dev/full", "No space left on device"),
        ("--help >/dev/full", "No space left on device"),
    ],
)
def test_streams_that_cannot_be_used_are_said_in_one_line(tmp_path: Path, command: str, said: str) -> None:
    line = f"{shlex.quote(sys.executable)} -m portbook {command}"
    done = subprocess.run(line, shell=True, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_full_disk_refuses_calls_before_they_run(tmp_path: Path) -> None:
    flag = tmp_path / "ran"
    server = shlex.join([*PORTBOOK, "serve", "--stdio", str(SAMPLE_TOOLS)])
    limited = f"ulimit -f 1; exec {server}"
    with subprocess.Popen(
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


@pytest.mark.covers("design.tool-io.bad-bundle")
@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"type": "banana"}, "/input/type"),
        (
            {"type": "object", "properties": {"a": {"$ref": "https://example.org/s"}}},
            "/input/properties/a/$ref",
        ),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}, "/input/$schema"),
    ],
)
def test_a_bad_bundle_stops_the_start_with_file_pointer_and_advice(
    tmp_path: Path, schema: object, pointer: str
) -> None:
    bundles = tmp_path / "schemas" / "tools"
    bundles.mkdir(parents=True)
    (bundles / "echo.json").write_text(json.dumps({"tool": "echo", "input": schema}))
    (tmp_path / "portbook.toml").write_text('[schemas]\nroot = "schemas"\n')
    finished = over_stdio(cwd=tmp_path)
    assert finished.code == 2
    assert f"echo.json: {pointer}: " in finished.err


def test_a_bundle_in_the_schema_root_replaces_a_tools_contract(tmp_path: Path) -> None:
    bundles = tmp_path / "schemas" / "tools"
    bundles.mkdir(parents=True)
    contract = {
        "type": "object",
        "properties": {"text": {"type": "string", "maxLength": 3}},
        "required": ["text"],
    }
    (bundles / "echo.json").write_text(
        json.dumps({"tool": "echo", "input": contract, "output": {"const": "abc"}})
    )
    finished = over_stdio(
        invoke("echo", {"text": "abcd"}),
        invoke("echo", {"text": "abx"}),
        invoke("echo", {"text": "abc"}),
        cwd=tmp_path,
        env=environment(PORTBOOK_SCHEMA_ROOT="schemas"),
    )
    codes = [answer.get("error", {}).get("code") for answer in finished.answers]
    assert codes == [-32602, -32002, None]


def test_an_unwritable_log_folder_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file")
    finished = over_stdio(cwd=tmp_path, options=("--log-dir", "taken/inside"))
    assert finished.code == 2
    assert "taken" in finished.err


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (["--version"], b""),
        (["--help"], b""),
        (["serve", "--stdio"], invoke("docs.search", {"query": "boundary"}) + b"\n"),
    ],
)
def test_heavy_libraries_are_not_imported_where_nothing_needs_them(
    tmp_path: Path, arguments: list[str], stdin: bytes
) -> None:
    script = (
        "import sys\n"
        "from portbook.cli.main import cli\n"
        f"try: cli({arguments!r})\n"
        "except SystemExit: pass\n"
        "heavy = {'pydantic', 'rich', 'starlette', 'uvicorn', 'uvloop'} & set(sys.modules)\n"
        "print('heavy:', sorted(heavy), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=stdin, capture_output=True, cwd=tmp_path, env=environment()
    )
    assert b"heavy: []" in done.stderr
    assert not stdin or b'"hits"' in done.stdout


def test_a_terminal_without_flags_is_served_over_http(tmp_path: Path) -> None:
    controller, terminal = os.openpty()
    with subprocess.Popen(
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
        ("", "", b"serving 1 tool; open http://"),
        (
            "",
            "@toolset.resource('a://b')\n@toolset.resource('a://c')\ndef b() -> str: ...\n",
            b"serving 1 tool, 2 resources; open http://",
        ),
        (
            "[docs]\nenabled = false\n",
            "@toolset.prompt\ndef ask() -> str: ...\n",
            b"serving 1 prompt; open http://",
        ),
        ("[docs]\nenabled = false\n", "", b"serving 0 tools; open http://"),
    ],
)
def test_the_invitation_counts_whatever_is_served(
    tmp_path: Path, settings: str, code: str, said: bytes
) -> None:
    (tmp_path / "offers.py").write_text(
        f"from portbook import Toolset\n\ntoolset = Toolset('offers')\n{code}"
    )
    (tmp_path / "portbook.toml").write_text(settings)
    process = subprocess.Popen(
        [*PORTBOOK, "serve", "--http", "--port", "0", "offers.py"],
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        assert any(said in line for line in iter(process.stderr.readline, b""))
    finally:
        process.terminate()
        process.wait(30)
        process.stderr.close()
