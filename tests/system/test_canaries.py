"""Secrets that are sent everywhere a secret can be sent, and then looked for everywhere one could be found.

Every file under the folder (records, intents, approvals, what the server said on standard error), every
answer, and all that an operator sees. The strings that try to forge log lines go the same way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import forked_process
from support.portbook_process import PORTBOOK, TESTS, HttpServer, environment, http_server, run
from support.threaded_api import upstream

CANARIES: list[dict[str, str]] = json.loads((TESTS / "corpora" / "secret_canaries.json").read_text("utf-8"))
INJECTIONS: list[dict[str, str]] = json.loads((TESTS / "corpora" / "log_injection.json").read_text("utf-8"))
TOKEN = "CANARY-tok-91c2"
API_KEY = "0123456789abcdefCANARY0123456789"
OPERATOR = "the operator's CANARY key"

TOOLS = """
from typing import Any
from portbook import Toolset

toolset = Toolset("leaky")

@toolset.tool(effect="read")
def echo(value: Any) -> Any:
    return {"said": value, "password": value}

@toolset.tool(effect="write")
def ask(value: Any, password: str = "") -> Any:
    return value

@toolset.tool(effect="read")
def fail(value: Any) -> Any:
    raise RuntimeError(str(value))
"""

SETTINGS = """
[python]
toolsets = ["tools.py"]
[policy]
approval = "writes"
[audit]
arguments = true
stderr = true
[redaction]
keys = ["password", "token", "authorization"]
secrets = ["THE_TOKEN"]
[http.api]
base_url = "http://127.0.0.1:{port}"
subscription_key = {{ env = "API_KEY" }}
[http.api.tools.post]
method = "POST"
path = "/things"
effect = "read"
input = {{ type = "object" }}
"""


def needles() -> Iterator[tuple[str, bytes]]:
    """Every form in which a canary could be found."""
    for canary in CANARIES:
        raw = canary["value"]
        yield canary["kind"], raw.encode()
        yield canary["kind"], json.dumps(raw)[1:-1].encode()
    for secret in (TOKEN, API_KEY, OPERATOR, "CANARYpw", "CANARYkey4", "CANARYtok5", "CANARYMIIEvQ"):
        yield secret, secret.encode()


def found_in(data: bytes) -> list[str]:
    return [kind for kind, needle in needles() if needle in data]


def send_everywhere(server: HttpServer, folder: Path) -> Iterator[bytes]:
    """Yield every answer to a canary in every place that a caller can put one."""

    def execute(tool: str, args: Any, **extra: Any) -> bytes:
        body = {"session_id": "s-1", "tool_id": tool, "args": args, **extra}
        return server.request("/execute", json.dumps(body).encode(), content_type="application/json").body

    for canary in CANARIES:
        value = canary["value"]
        yield execute("echo", {"value": value})
        yield execute("echo", {"value": {"deep": [{"token": value}, f"before {value} after"]}})
        yield execute("fail", {"value": value})
        yield execute("ask", {"value": value, "password": value})
        yield execute("ask", {"value": 1, value: 1})
        yield execute("echo", {"value": 1}, session_id=value[:256], correlation_id=value[:256])
        yield execute(value[:200], {})
        yield execute("echo", {"value": 1}, trace_id=value[:128])
        yield execute("api.post", {"note": value})
        yield server.rpc(
            json.dumps({"jsonrpc": "2.0", "id": 1, "method": value[:100], "params": {"x": value}}).encode()
        ).body
        yield server.request("/tools", authorization=f"Basic {value.encode().hex()}").body
    yield server.request("/approvals", authorization=f"Bearer {OPERATOR}").body
    yield server.request("/approvals", authorization=f"Bearer {OPERATOR}x").body
    for verb in (["approvals", "list"], ["audit", "tail"], ["audit", "export"]):
        done = run(*verb, cwd=folder)
        assert done.code == 0, done.err
        yield done.out + done.err.encode()


@pytest.mark.covers("002.redaction.nowhere")
def test_no_canary_is_in_any_file_database_answer_or_on_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("THE_TOKEN", TOKEN), ("API_KEY", API_KEY)):
        monkeypatch.setenv(name, value)
    with upstream() as api, (tmp_path / "stderr").open("wb") as stderr:
        (tmp_path / "tools.py").write_text(TOOLS)
        (tmp_path / "portbook.toml").write_text(SETTINGS.format(port=api.port))
        with http_server(
            cwd=tmp_path, tools=(), env=environment(PORTBOOK_OPERATOR_KEY=OPERATOR), stderr=stderr
        ) as server:
            for answer in send_everywhere(server, tmp_path):
                assert found_in(answer) == [], answer[:2000]
        assert all(headers["ocp-apim-subscription-key"] == API_KEY for headers in api.headers)
        assert api.headers
    files = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    looked_at = {path.name.split(".")[-1] for path in files if path.stat().st_size}
    assert {"jsonl", "db", "stderr"} <= looked_at
    for path in files:
        assert (path.name, found_in(path.read_bytes())) == (path.name, [])


@pytest.mark.covers("002.log.injection")
@pytest.mark.parametrize("injection", INJECTIONS, ids=lambda row: row["escaped"][:30])
def test_no_string_of_a_caller_forges_a_line(injection: dict[str, str], tmp_path: Path) -> None:
    value = injection["value"]
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "portbook.toml").write_text('[python]\ntoolsets = ["tools.py"]\n[audit]\nstderr = true\n')
    calls = [
        {
            "tool": "mcp.tool:echo",
            "input": {"value": 1},
            "context": {"agentId": value[:256], "taskId": value[:256]},
        },
        {"tool": "mcp.tool:echo", "input": {"value": 1}, "_meta": {"portbook/session_id": value[:256]}},
        {"tool": "mcp.tool:echo", "input": {"value": 1, value: 1}},
        {"tool": f"mcp.tool:{value}", "input": {}},
    ]
    frames = [
        {"jsonrpc": "2.0", "id": 1, "method": "mcp.tool.invoke", "params": params} for params in calls
    ] + [{"jsonrpc": "2.0", "id": 1, "method": value[:128]}]
    done = forked_process.run(
        [*PORTBOOK, "serve", "--stdio"],
        input="".join(json.dumps(frame) + "\n" for frame in frames).encode(),
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        timeout=60,
    )
    assert len(done.stdout.splitlines()) == len(frames)
    lines = done.stderr.decode().splitlines()
    assert len(lines) == len(frames), done.stderr.decode()
    assert all(json.loads(line) for line in lines)
    for stream in ("execution", "envelope_validation"):
        folder = tmp_path / "runs" / "mcp_server" / stream
        text = (folder / f"{stream}.latest.jsonl").read_text("utf-8")
        assert len(text.splitlines()) == len(frames)
        assert not [character for character in text if not character.isprintable() and character != "\n"]
    executions = [json.loads(line) for line in lines]
    if len(value) <= 256:
        assert executions[1]["session_id"] == injection["escaped"][:256] or len(injection["escaped"]) > 256


ROTATED = """
[http.api]
base_url = "http://127.0.0.1:{port}"
subscription_key = {{ file = "key" }}
[http.api.tools.post]
method = "POST"
path = "/things"
effect = "read"
input = {{ type = "object" }}
"""


@pytest.mark.covers("002.redaction.learnt")
def test_a_secret_that_a_call_itself_learns_of_does_not_leave_with_its_result(tmp_path: Path) -> None:
    def call(server: HttpServer) -> bytes:
        body = b'{"session_id":"s","tool_id":"api.post","args":{}}'
        return server.request("/execute", body, content_type="application/json").body

    with upstream() as api:
        (tmp_path / "portbook.toml").write_text(ROTATED.format(port=api.port))
        (tmp_path / "key").write_text("the-first-key-of-the-api")
        with http_server(cwd=tmp_path, tools=()) as server:
            assert b"the-first-key" not in call(server)
            (tmp_path / "key").write_text("another-key-after-rotation")
            assert b"after-rotation" not in call(server)
        sent = [headers["ocp-apim-subscription-key"] for headers in api.headers]
        assert sent == ["the-first-key-of-the-api", "another-key-after-rotation"]
