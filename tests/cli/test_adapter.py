"""`python -m mcp` as a process: the asset specification's adapter, as its users start it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import resource
import signal
import socket
import stat
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from portbook.cli import adapter
from portbook.settings import SETTINGS
from portbook.version import __version__
from portbook.wire.lines_and_size_limit import MAX_FRAME_BYTES
from support import forked_process
from support.portbook_process import ROOT, TESTS, environment, records

MCP = (sys.executable, "-m", "mcp")
PATIENCE = 30.0
BACKEND = TESTS / "assets" / "backend_process.py"

ASSET = {
    "version": "0.7.0",
    "type": "object",
    "properties": {"name": {"type": "string"}, "tone": {"$ref": "tone.schema.json"}},
    "required": ["name"],
    "additionalProperties": False,
}
TONE = {"version": "0.2.0", "properties": {"pitch": {"type": "number"}}}
EXAMPLE = {"$schemaRef": "x/synesthetic-asset.schema.json", "name": "a"}
OK = {"ok": True, "errors": []}


def failed(path: str, message: str) -> dict[str, Any]:
    return {"ok": False, "reason": "validation_failed", "errors": [{"path": path, "msg": message}]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder whose library is where the specification's submodule would be."""
    library = tmp_path / "libs/synesthetic-schemas"
    for name, content in {
        "jsonschema/synesthetic-asset.schema.json": ASSET,
        "jsonschema/tone.schema.json": TONE,
        "examples/SynestheticAsset_Example1.json": EXAMPLE,
        "examples/tone.json": {"pitch": "high"},
    }.items():
        path = library / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content))
    return tmp_path


def variables(folder: Path, **extra: str) -> dict[str, str]:
    return environment(**{"MCP_READY_FILE": str(folder / "ready"), **extra})


def request(method: str, id: object = 1, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode() + b"\n"


def run(
    folder: Path, *arguments: str, stdin: bytes = b"", **extra: str
) -> subprocess.CompletedProcess[bytes]:
    return forked_process.run(
        [*MCP, *arguments],
        input=stdin,
        capture_output=True,
        cwd=folder,
        env=variables(folder, **extra),
        timeout=60,
    )


def results(folder: Path, *frames: bytes, **extra: str) -> list[Any]:
    done = run(folder, stdin=b"".join(frames), **extra)
    assert done.returncode == 0, done.stderr
    return [json.loads(line)["result"] for line in done.stdout.splitlines()]


@contextlib.contextmanager
def running(folder: Path, *arguments: str, **extra: str) -> Iterator[subprocess.Popen[bytes]]:
    """The adapter, once it has said that it is ready."""
    with forked_process.ForkedProcess(
        [*MCP, *arguments],
        cwd=folder,
        env=variables(folder, **extra),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stderr is not None
        try:
            yield process
        finally:
            process.kill()


def ready_line(process: subprocess.Popen[bytes]) -> str:
    assert process.stderr is not None
    said = b""
    while not said.startswith(b"mcp:ready"):
        said = process.stderr.readline()
        assert said, "it did not start"
    return said.decode().rstrip("\n")


def ask(process: subprocess.Popen[bytes], frame: bytes) -> Any:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(frame)
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


# -- the name


@pytest.mark.covers("004.exit.import")
def test_the_name_mcp_has_the_version(tmp_path: Path) -> None:
    code = "import mcp; print(mcp.__version__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=tmp_path, timeout=60)
    assert (done.stdout.decode().strip(), done.returncode) == (__version__, 0)
    assert run(tmp_path, "--version").stdout.decode() == f"mcp {__version__}\n"


def test_the_requirements_end_with_the_alias_in_editable_form() -> None:
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    assert lines[-1] == "-e ./alias"
    assert not [line for line in lines if "://" in line], "an address in the requirements"


def test_the_tests_run_with_the_environment_that_the_requirements_make() -> None:
    pinned = (ROOT / "requirements.txt").read_text().splitlines()
    assert [line for line in pinned if line.startswith("pytest==")]
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "tests/assets"]
    done = subprocess.run(command, capture_output=True, cwd=ROOT, env=environment(), timeout=120)
    assert done.returncode == 0, done.stdout


@pytest.mark.covers("004.python")
def test_the_oldest_python_is_the_specifications() -> None:
    for name in ("pyproject.toml", "alias/pyproject.toml"):
        assert tomllib.loads((ROOT / name).read_text())["project"]["requires-python"] == ">=3.11"


@pytest.mark.covers("004.env")
def test_the_variables_and_their_defaults_are_the_specifications() -> None:
    assert adapter._READY_FILE == "/tmp/mcp.ready"
    assert {
        setting.env: setting.default for setting in SETTINGS if (setting.env or "").startswith("SYN_")
    } == {
        "SYN_SCHEMAS_DIR": None,
        "SYN_EXAMPLES_DIR": None,
        "SYN_BACKEND_URL": None,
        "SYN_BACKEND_ASSETS_PATH": "/synesthetic-assets/",
    }


# -- over STDIO


@pytest.mark.covers("004.rpc.framing")
def test_every_tool_answers_over_stdio_from_the_submodules_folder(folder: Path) -> None:
    answers = results(
        folder,
        request("list_schemas"),
        request("get_schema", name="tone"),
        request("list_examples", component="all"),
        request("get_example", path="tone.json"),
        request("validate_asset", asset={"name": "a", "tone": {"pitch": "x"}}, schema="synesthetic-asset"),
        request("diff_assets", base={"a": 1}, new={"a": 1.0}),
        request("populate_backend", asset={"name": "a"}),
        request("validate_many", assets=[{}, {"pitch": 1}], schema="tone"),
        request("nope"),
    )
    base = "libs/synesthetic-schemas"
    assert answers == [
        {
            "ok": True,
            "schemas": [
                {
                    "name": "synesthetic-asset",
                    "version": "0.7.0",
                    "path": f"{base}/jsonschema/synesthetic-asset.schema.json",
                },
                {"name": "tone", "version": "0.2.0", "path": f"{base}/jsonschema/tone.schema.json"},
            ],
        },
        {"ok": True, "schema": TONE, "version": "0.2.0"},
        {
            "ok": True,
            "examples": [
                {
                    "component": "SynestheticAsset_Example1",
                    "path": f"{base}/examples/SynestheticAsset_Example1.json",
                },
                {"component": "tone", "path": f"{base}/examples/tone.json"},
            ],
        },
        {"ok": True, "example": {"pitch": "high"}, "schema": "tone", "validated": False},
        failed("/tone/pitch", "expected number"),
        {"ok": True, "patch": [{"op": "replace", "path": "/a", "value": 1.0}]},
        {"ok": False, "reason": "unsupported", "detail": "backend disabled"},
        {"ok": True, "results": [{"ok": True}, {"ok": True}]},
        {"ok": False, "reason": "unsupported", "detail": "tool not implemented"},
    ]


def test_the_environments_folders_come_before_the_submodules(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "only.schema.json").write_text("{}")
    (other / "only.json").write_text("{}")
    listed, examples = results(
        folder,
        request("list_schemas"),
        request("list_examples"),
        SYN_SCHEMAS_DIR=str(other),
        SYN_EXAMPLES_DIR=str(other),
    )
    assert [schema["name"] for schema in listed["schemas"]] == ["only"]
    assert {example["component"] for example in examples["examples"]} == {"only"}
    missing = results(folder, request("list_schemas"), SYN_SCHEMAS_DIR=str(tmp_path / "missing"))
    assert missing == [{"ok": True, "schemas": []}], "an override that is wrong is not replaced in silence"


def test_without_any_folder_listings_are_empty_and_nothing_is_found(tmp_path: Path) -> None:
    assert results(
        tmp_path, request("list_schemas"), request("list_examples"), request("get_schema", name="tone")
    ) == [{"ok": True, "schemas": []}, {"ok": True, "examples": []}, {"ok": False, "reason": "not_found"}]


@pytest.mark.covers("004.rpc.order")
def test_fifty_pipelined_requests_have_fifty_answers_in_order(folder: Path) -> None:
    methods = ["list_schemas", "nope", "validate_asset", "populate_backend", "diff_assets"]
    frames = [request(methods[at % 5], id=f"r{at}", asset={"name": "a"}) for at in range(50)]
    done = run(folder, stdin=b"".join(frames))
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [f"r{at}" for at in range(50)]


@pytest.mark.covers("004.determinism")
def test_the_same_messages_get_the_same_bytes_in_every_process(folder: Path) -> None:
    asset = {"tone": {"pitch": "x"}, "b": 1, "a": 1}
    frames = (
        request("list_schemas")
        + request("list_examples")
        + request("validate_asset", asset=asset, schema="synesthetic-asset")
        + request("diff_assets", base=asset, new={"tone": {}, "c": [1, 2]})
    )
    first, second = (run(folder, stdin=frames).stdout for _ in range(2))
    assert first == second
    assert first.count(b"\n") == 4


@pytest.mark.covers("004.rpc.hygiene")
def test_standard_output_has_frames_only_and_standard_error_the_rest(folder: Path) -> None:
    (folder / "libs/synesthetic-schemas/jsonschema/broken.schema.json").write_text("{")
    done = run(folder, stdin=request("list_schemas") + b"not JSON\n" + request("nope"))
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in done.stdout.splitlines())
    assert len(done.stdout.splitlines()) == 3
    said = done.stderr.decode().splitlines()
    assert said[0].startswith("portbook: warning: libs/synesthetic-schemas/jsonschema/broken.schema.json: ")
    assert said[1:] == ["mcp:ready mode=stdio", "mcp:shutdown mode=stdio"]


@pytest.mark.covers("004.rpc.size-guard")
def test_a_line_of_a_mebibyte_passes_and_one_more_byte_is_refused_before_parsing(folder: Path) -> None:
    start, end = b'{"jsonrpc":"2.0","id":1,"method":"list_schemas","params":{"x":"', b'"}}'
    fitting = start + b"x" * (MAX_FRAME_BYTES - len(start) - len(end)) + end
    too_long = b"{" + b"x" * MAX_FRAME_BYTES
    assert len(too_long) == MAX_FRAME_BYTES + 1
    done = run(folder, stdin=fitting + b"\n" + too_long + b"\n" + request("nope", id=3))
    first, second, third = done.stdout.splitlines()
    assert json.loads(first)["result"]["ok"] is True
    assert second == (
        b'{"jsonrpc":"2.0","id":null,"result":{"ok":false,"reason":"validation_failed",'
        b'"errors":[{"path":"","msg":"payload_too_large"}]}}'
    )
    assert json.loads(third)["id"] == 3
    # A carriage return at the end of a line is one of its bytes.
    assert run(folder, stdin=fitting + b"\r\n" + fitting[:-4] + end + b"\r\n").stdout.splitlines() == [
        second,
        first,
    ]


def test_a_file_that_is_added_later_is_not_listed(folder: Path) -> None:
    with running(folder) as process:
        before = ask(process, request("list_schemas"))
        (folder / "libs/synesthetic-schemas/jsonschema/later.schema.json").write_text("{}")
        assert ask(process, request("list_schemas")) == before


def test_a_client_of_mcp_is_served_too(folder: Path) -> None:
    client = {"name": "me", "version": "1"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    frames = request("initialize", **params) + request("tools/list", id=2)
    done = run(folder, stdin=frames)
    tools = json.loads(done.stdout.splitlines()[1])["result"]["tools"]
    assert [tool["name"] for tool in tools] == [
        "diff_assets",
        "get_example",
        "get_schema",
        "list_examples",
        "list_schemas",
        "populate_backend",
        "validate_asset",
        "validate_many",
    ]


@pytest.mark.covers("004.validate-many.limit")
def test_the_size_of_a_batch_is_the_environments(folder: Path) -> None:
    assert results(folder, request("validate_many", assets=[{}, {}], schema="tone"), MCP_MAX_BATCH="1") == [
        {"ok": False, "reason": "unsupported", "detail": "batch_too_large", "limit": 1}
    ]


# -- files


def everything(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


@pytest.mark.covers("004.stateless")
def test_no_file_is_written_unless_a_folder_is_named(folder: Path) -> None:
    before = everything(folder)
    assert run(folder, stdin=request("list_schemas") + b"garbage\n").returncode == 0
    assert everything(folder) == before
    assert run(folder, "--log-dir", "kept", stdin=request("list_schemas")).returncode == 0
    [record] = records(folder / "kept")
    assert (record["method"], record["metadata"]["toolId"]) == ("list_schemas", "mcp.tool:list_schemas")


def test_a_folder_that_cannot_be_written_refuses_no_call(folder: Path) -> None:
    (folder / "kept").write_text("a file where the folder should be")
    done = run(folder, "--log-dir", "kept/here", stdin=request("list_schemas"))
    assert json.loads(done.stdout)["result"]["ok"] is True
    assert b"no records are written" in done.stderr


def test_what_cannot_be_recorded_refuses_no_call_whatever_the_settings_say(folder: Path) -> None:
    (folder / "portbook.toml").write_text('[audit]\non_failure = "refuse"\n')
    done = forked_process.run(
        [*MCP, "--log-dir", "kept"],
        input=request("list_schemas") * 2,
        capture_output=True,
        cwd=folder,
        env=variables(folder),
        timeout=60,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)),
    )
    assert [json.loads(line)["result"]["ok"] for line in done.stdout.splitlines()] == [True, True]
    assert done.stderr.count(b"records cannot be written, calls continue") == 1


def test_without_settings_there_is_no_store_and_none_is_looked_at(folder: Path) -> None:
    (folder / "portbook.db").write_text("not a store")
    frame = request("populate_backend", asset={"name": "a"})
    for extra in ({}, {"PORTBOOK_KEY": "whoever"}):
        assert results(folder, frame, **extra) == [
            {"ok": False, "reason": "unsupported", "detail": "backend disabled"}
        ]
    # Named, it is.
    [refused] = results(folder, frame, PORTBOOK_KEY="whoever", PORTBOOK_STORE="portbook.db")
    assert refused == {"ok": False, "reason": "backend_error", "status": 503, "detail": "store_unusable"}


SECRETS = {"password": "hunter2 hunter2", "card": "4111 1111 1111 1111"}


def test_results_are_exact_with_and_without_settings(folder: Path) -> None:
    frame = request("diff_assets", base={}, new={"a": SECRETS})
    [exact] = results(folder, frame)
    assert exact["patch"] == [{"op": "add", "path": "/a", "value": SECRETS}]
    (folder / "portbook.toml").write_text("")
    assert results(folder, frame) == [exact]


# -- readiness and shutdown


@pytest.mark.covers("004.ready.file")
@pytest.mark.covers("004.ready.line")
def test_the_ready_file_has_the_process_and_the_time_while_it_serves(folder: Path) -> None:
    ready = folder / "ready"
    with running(folder) as process:
        assert ready_line(process) == "mcp:ready mode=stdio"
        content = ready.read_text()
        number, _, stamp = content.removesuffix("\n").partition(" ")
        assert content.endswith("\n")
        assert int(number) == process.pid
        assert datetime.fromisoformat(stamp).tzinfo is not None
        assert stat.S_IMODE(ready.stat().st_mode) == 0o644
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(PATIENCE) == 0
        assert not ready.exists()


@pytest.mark.covers("004.ready.removed")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_with_0_and_removes_the_ready_file(number: int, folder: Path) -> None:
    with running(folder) as process:
        ready_line(process)
        process.send_signal(number)
        assert process.wait(PATIENCE) == 0
        assert not (folder / "ready").exists()


def test_the_ready_file_of_another_process_is_left_alone(folder: Path) -> None:
    with running(folder) as process:
        ready_line(process)
        (folder / "ready").write_text("1 2026-01-01T00:00:00Z\n")
        process.terminate()
        process.wait(PATIENCE)
        assert (folder / "ready").read_text() == "1 2026-01-01T00:00:00Z\n"


def test_where_the_ready_file_cannot_be_written_it_serves_all_the_same(folder: Path) -> None:
    done = run(folder, stdin=request("list_schemas"), MCP_READY_FILE=str(folder / "missing/ready"))
    assert b"the ready file cannot be written" in done.stderr
    assert json.loads(done.stdout)["result"]["ok"] is True
    without = run(folder, stdin=request("list_schemas"), MCP_READY_FILE="")
    assert (without.returncode, b"warning" in without.stderr) == (0, False)


def test_a_link_in_the_place_of_the_ready_file_is_replaced_and_not_followed(folder: Path) -> None:
    victim = folder / "victim"
    victim.write_text("precious")
    (folder / "ready").symlink_to(victim)
    assert run(folder, stdin=request("list_schemas")).returncode == 0
    assert victim.read_text() == "precious"


@contextlib.contextmanager
def backend() -> Iterator[str]:
    with subprocess.Popen([sys.executable, str(BACKEND)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()


def get(url: str) -> Any:
    from urllib.request import urlopen

    with urlopen(url, timeout=30) as response:
        return json.loads(response.read())


@pytest.mark.covers("004.shutdown")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_in_the_middle_of_a_slow_request_lets_it_answer(number: int, folder: Path) -> None:
    with backend() as url, running(folder, SYN_BACKEND_URL=url, SYN_BACKEND_ASSETS_PATH="/wait") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        ready_line(process)
        process.stdin.write(request("populate_backend", asset={"name": "a"}) + request("list_schemas", id=2))
        process.stdin.flush()
        until(lambda: get(f"{url}/seen"))
        process.send_signal(number)
        assert process.stderr is not None
        assert b"finishing calls in flight" in process.stderr.readline()
        assert (folder / "ready").exists()
        get(f"{url}/go")
        answers = [json.loads(line) for line in process.stdout.read().splitlines()]
        assert answers == [
            {"jsonrpc": "2.0", "id": 1, "result": {"ok": True, "asset_id": "waited", "backend_url": url}}
        ]
        assert process.wait(PATIENCE) == 0
        assert not (folder / "ready").exists()


def test_a_second_signal_ends_it_at_once_and_removes_the_ready_file_too(folder: Path) -> None:
    with backend() as url, running(folder, SYN_BACKEND_URL=url, SYN_BACKEND_ASSETS_PATH="/wait") as process:
        assert process.stdin is not None
        assert process.stderr is not None
        ready_line(process)
        process.stdin.write(request("populate_backend", asset={"name": "a"}))
        process.stdin.flush()
        until(lambda: get(f"{url}/seen"))
        process.terminate()
        process.stderr.readline()
        process.terminate()
        assert process.wait(PATIENCE) == 143
        assert not (folder / "ready").exists()


def test_populating_is_enabled_by_the_backends_address_alone(folder: Path) -> None:
    asset = {"name": "a"}
    with backend() as url:
        assert results(folder, request("populate_backend", asset=asset), SYN_BACKEND_URL=url) == [
            {"ok": True, "asset_id": "a-1", "backend_url": url}
        ]
        assert get(f"{url}/seen")[0]["path"] == "/synesthetic-assets/"
    refused = run(folder, SYN_BACKEND_URL="ftp://host")
    assert (refused.returncode, b"must start with http" in refused.stderr) == (2, True)


# -- one asset


@pytest.mark.covers("004.cli.validate")
@pytest.mark.parametrize(
    ("name", "content", "status", "result"),
    [
        ("a.json", '{"schema":"tone","pitch":1}', 0, OK),
        ("tone.json", '{"pitch":1}', 0, OK),
        ("a.json", json.dumps(EXAMPLE), 0, OK),
        ("SynestheticAsset_9.json", '{"name":5}', 1, failed("/name", "expected string")),
        ("unheard-of.json", "{}", 1, failed("/schema", "unknown schema")),
        ("a.json", "{", 2, failed("", "not JSON: the text is incomplete (line 1, column 1)")),
        ("missing.json", None, 2, failed("", "cannot be read: No such file or directory")),
    ],
)
def test_one_asset_is_checked_and_the_exit_status_says_how_it_went(
    name: str, content: str | None, status: int, result: dict[str, Any], folder: Path
) -> None:
    if content is not None:
        (folder / name).write_text(content)
    done = run(folder, "--validate", name)
    assert (json.loads(done.stdout), done.returncode) == (result, status)
    assert done.stdout.count(b"\n") == 1


def test_an_asset_may_name_its_schema_by_a_path(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "s/sub").mkdir(parents=True)
    (tmp_path / "s/sub/tone.schema.json").write_text('{"required": ["pitch"]}')
    (folder / "a.json").write_text('{"schema": "sub/tone.schema.json", "pitch": 1}')
    done = run(folder, "--validate", "a.json", SYN_SCHEMAS_DIR=str(tmp_path / "s"))
    assert (json.loads(done.stdout), done.returncode) == (OK, 0)


# -- sockets


@contextlib.contextmanager
def connected(address: Any) -> Iterator[Callable[[bytes], Any]]:
    """Send frames over one connection, and get an answer for each."""
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as client:
        client.settimeout(PATIENCE)
        client.connect(address)
        with client.makefile("rwb") as stream:

            def exchange(frame: bytes) -> Any:
                stream.write(frame)
                stream.flush()
                return json.loads(stream.readline())

            yield exchange


@pytest.mark.covers("004.socket")
def test_a_unix_socket_serves_its_owner_and_is_gone_afterwards(folder: Path) -> None:
    path = folder / "adapter.sock"
    with running(folder, MCP_ENDPOINT="socket", MCP_SOCKET_PATH=str(path)) as process:
        assert ready_line(process) == f"mcp:ready mode=socket path={path}"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with connected(str(path)) as first, connected(str(path)) as second:
            assert first(request("list_schemas"))["result"]["ok"] is True
            assert second(request("nope", id="b"))["id"] == "b"
            assert first(b"x" * (MAX_FRAME_BYTES + 1) + b"\n")["id"] is None
            assert first(request("list_schemas", id=2))["id"] == 2
        with connected(str(path)) as third:
            third(request("list_schemas"))
            process.terminate()
            assert process.wait(PATIENCE) == 0, "a connection that is open and silent holds nothing up"
        assert not path.exists()
        assert not (folder / "ready").exists()


@pytest.mark.covers("004.tcp")
def test_a_tcp_port_serves_many_connections_at_once(folder: Path) -> None:
    with running(folder, MCP_ENDPOINT="tcp", MCP_PORT="0") as process:
        found = re.fullmatch(r"mcp:ready mode=tcp host=127\.0\.0\.1 port=(\d+)", ready_line(process))
        assert found is not None
        with contextlib.ExitStack() as stack:
            address = ("127.0.0.1", int(found[1]))
            clients = [stack.enter_context(connected(address)) for _ in range(20)]
            for at, client in enumerate(clients):
                assert client(request("list_schemas", id=at))["id"] == at
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0


def test_what_is_under_way_on_a_connection_is_finished_on_a_signal(folder: Path) -> None:
    path = folder / "adapter.sock"
    extra = {"MCP_ENDPOINT": "socket", "MCP_SOCKET_PATH": str(path), "SYN_BACKEND_ASSETS_PATH": "/wait"}
    with backend() as url, running(folder, SYN_BACKEND_URL=url, **extra) as process:
        ready_line(process)
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            client.connect(str(path))
            client.sendall(request("populate_backend", asset={"name": "a"}))
            until(lambda: get(f"{url}/seen"))
            process.terminate()
            assert process.stderr is not None
            process.stderr.readline()
            get(f"{url}/go")
            assert b'"asset_id":"waited"' in client.recv(65536)
            assert client.recv(1) == b""
        assert process.wait(PATIENCE) == 0


def test_a_socket_left_behind_is_taken_over_and_nothing_else_is(folder: Path) -> None:
    path = folder / "adapter.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    extra = {"MCP_ENDPOINT": "socket", "MCP_SOCKET_PATH": str(path)}
    with running(folder, **extra) as process:
        ready_line(process)
        second = run(folder, **extra)
        assert (second.returncode, b"somebody listens there already" in second.stderr) == (2, True)
        with connected(str(path)) as client:
            assert client(request("list_schemas"))["result"]["ok"] is True
        process.terminate()
        process.wait(PATIENCE)
    path.write_text("a file")
    third = run(folder, **extra)
    assert (third.returncode, path.read_text()) == (2, "a file")


@pytest.mark.parametrize(
    ("extra", "said"),
    [
        ({"MCP_ENDPOINT": "carrier-pigeon"}, "MCP_ENDPOINT must be one of stdio, socket, tcp"),
        ({"MCP_ENDPOINT": "tcp", "MCP_PORT": "high"}, "MCP_PORT must be a whole number"),
        ({"MCP_ENDPOINT": "tcp", "MCP_HOST": "0.0.0.0", "MCP_PORT": "0"}, "carries no key"),
        ({"MCP_ENDPOINT": "tcp", "MCP_HOST": "no-such-host.invalid"}, "cannot listen on"),
        ({"MCP_ENDPOINT": "socket", "MCP_SOCKET_PATH": "/nowhere/at/all"}, "cannot listen there"),
    ],
)
def test_a_door_that_cannot_be_opened_stops_the_start(extra: dict[str, str], said: str, folder: Path) -> None:
    done = run(folder, **extra)
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert not (folder / "ready").exists()


def test_a_port_that_others_reach_is_opened_where_the_operator_says_so(folder: Path) -> None:
    (folder / "portbook.toml").write_text("[keys]\nrequired = false\n")
    with running(folder, MCP_ENDPOINT="tcp", MCP_HOST="0.0.0.0", MCP_PORT="0") as process:
        port = int(ready_line(process).rpartition("=")[2])
        with connected(("127.0.0.1", port)) as client:
            assert client(request("list_schemas"))["result"]["ok"] is True


def test_the_environments_of_these_tests_are_clean() -> None:
    assert not [name for name in environment() if name.startswith(("SYN_", "MCP_"))]
    assert os.environ.get("SYN_BACKEND_URL") is None


@pytest.mark.covers("004.listing.same-path")
def test_a_schema_has_the_same_path_wherever_its_folder_was_set(tmp_path: Path) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas/tone.json").write_text("{}")
    (tmp_path / "file").mkdir()
    (tmp_path / "file/schemas").symlink_to(tmp_path / "schemas")
    (tmp_path / "file/portbook.toml").write_text('[assets]\nschemas = "schemas"\n')
    ways: list[tuple[Path, list[str], dict[str, str]]] = [
        (tmp_path, [], {"SYN_SCHEMAS_DIR": "schemas"}),
        (tmp_path, [], {"SYN_SCHEMAS_DIR": str(tmp_path / "schemas")}),
        (tmp_path, [], {"SYN_SCHEMAS_DIR": "./file/../schemas"}),
        (tmp_path / "file", [], {}),
        (tmp_path, ["--config", "file/portbook.toml"], {}),
        (tmp_path / "schemas", ["--config", str(tmp_path / "file/portbook.toml")], {}),
    ]
    for cwd, options, extra in ways:
        done = forked_process.run(
            [sys.executable, "-m", "portbook.cli.adapter", *options],
            input=request("list_schemas"),
            cwd=cwd,
            env=environment(MCP_READY_FILE="", **extra),
            capture_output=True,
            check=True,
        )
        [schema] = json.loads(done.stdout)["result"]["schemas"]
        assert schema["path"] == "schemas/tone.json", (cwd, options, extra)
