"""A POST to the backend that fails is a failure through every door, recorded and told as what it was."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.every_door import ASSET_DOORWAYS, BARE_DOORWAYS, Asked, Verdict
from support.portbook_process import http_server, run

SETTINGS = """
[docs]
enabled = false
[assets]
schemas = "schemas"
backend_url = "http://ada:pass%20word@localhost:{port}"
[policy]
{policy}
"""
SCHEMA = {"version": "1.0", "type": "object", "properties": {"name": {"type": "string"}}}
SENT = Asked("populate_backend", {"asset": {"name": "a"}}, session="s-1")
INVALID = Asked("populate_backend", {"asset": {"name": 1}}, session="s-1")

EFFECTS = "Check whether it had effects before you retry."
NO_EFFECTS = "Nothing was sent, so there were no effects."


class Backend(NamedTuple):
    port: int
    headers: list[dict[str, str]]


@contextlib.contextmanager
def answering(status: int, body: bytes) -> Iterator[Backend]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            backend.headers.append({name.lower(): value for name, value in self.headers.items()})
            if not status:  # a reset, in the middle of everything
                linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.connection.close()
                return
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def finish(self) -> None:
            with contextlib.suppress(OSError, ValueError):
                super().finish()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        backend = Backend(server.server_port, [])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield backend
        server.shutdown()
        thread.join()


def serve(folder: Path, port: int | None, policy: str = "") -> None:
    (folder / "schemas").mkdir(exist_ok=True)
    (folder / "schemas/synesthetic-asset.schema.json").write_text(json.dumps(SCHEMA))
    settings = SETTINGS.format(port=port, policy=policy)
    if port is None:
        settings = "\n".join(line for line in settings.splitlines() if "backend_url" not in line)
    (folder / "portbook.toml").write_text(settings)


def last(folder: Path, stream: str) -> dict[str, Any]:
    """The last record of a stream, of the one run that there was."""
    [file] = folder.glob(f"runs/*/mcp_server/{stream}/{stream}.latest.jsonl")
    return json.loads(file.read_text().splitlines()[-1])


def asked_through(door: str, folder: Path, asked: Asked = SENT) -> Verdict:
    with ASSET_DOORWAYS[door](folder, None) as doorway:
        return doorway(asked)


every_door = pytest.mark.parametrize("door", ASSET_DOORWAYS)


@pytest.mark.covers("002.populate.governed")
@every_door
def test_a_failed_post_is_a_failure_through_every_door(tmp_path: Path, door: str) -> None:
    with answering(500, b"") as backend:
        serve(tmp_path, backend.port)
        verdict = asked_through(door, tmp_path)
    assert verdict.reason == "UPSTREAM_ERROR"
    [headers] = backend.headers
    assert headers["authorization"] == "Basic YWRhOnBhc3Mgd29yZA=="
    record, execution = last(tmp_path, "envelope_validation"), last(tmp_path, "execution")
    assert (headers["x-request-id"], headers["x-trace-id"]) == (record["requestId"], record["traceId"])
    assert (headers["x-session-id"], headers["x-correlation-id"]) == ("s-1", record["traceId"])
    assert (record["status"], record["error"]["reason"]) == ("error", "UPSTREAM_ERROR")
    assert record["error"]["executed"] is True
    assert record["error"]["note"] == "the answer has the status 500"
    assert (execution["status_code"], execution["error_class"]) == (502, "UPSTREAM_ERROR")
    assert (execution["method"], execution["domain"]) == ("POST", f"localhost:{backend.port}")
    assert execution["endpoint"] == f"http://localhost:{backend.port}/synesthetic-assets/"
    if door in BARE_DOORWAYS:
        assert verdict.details == {
            "ok": False, "reason": "backend_error", "status": 500, "detail": "internal error"
        }  # fmt: skip
    else:
        assert verdict.details["upstream_status"] == 500
        assert verdict.details["happened"] == "the answer has the status 500"
        assert verdict.details["detail"] == "internal error"


@every_door
def test_an_invalid_asset_and_a_missing_backend_are_failures_through_every_door(
    tmp_path: Path, door: str
) -> None:
    with answering(201, b'{"id":"1"}') as backend:
        serve(tmp_path, backend.port)
        refused = asked_through(door, tmp_path, INVALID)
    assert backend.headers == []
    if door in BARE_DOORWAYS:
        errors = [{"path": "/name", "msg": "expected string"}]
        assert json.loads(refused.raw)["result"] == {
            "ok": False, "reason": "validation_failed", "errors": errors
        }  # fmt: skip
    else:
        assert refused.reason == "BAD_ASSET"
        assert [each["pointer"] for each in refused.details["violations"]] == ["/name"]
    error = last(tmp_path, "envelope_validation")["error"]
    assert (error["reason"], error["executed"]) == ("BAD_ASSET", False)
    serve(tmp_path, None)
    assert asked_through(door, tmp_path).reason == "BACKEND_DISABLED"


WAYS = [
    # what the backend does, and what of it is told
    ("refuses the connection", None, "the connection was refused", NO_EFFECTS),
    ("resets the connection", (0, b""), "the connection was reset before an answer arrived", EFFECTS),
    ("is unavailable", (503, b""), "the answer has the status 503", EFFECTS),
    ("names no asset", (201, b"{}"), "the answer does not name the id of the asset", EFFECTS),
]


@pytest.mark.covers("002.error.what-happened")
@pytest.mark.parametrize(("name", "answer", "happened", "advice"), WAYS, ids=[way[0] for way in WAYS])
def test_what_happened_is_told_and_effects_only_where_something_was_sent(
    tmp_path: Path, name: str, answer: tuple[int, bytes] | None, happened: str, advice: str
) -> None:
    with contextlib.ExitStack() as stack:
        if answer is None:
            with socket.create_server(("127.0.0.1", 0)) as closed:
                port = closed.getsockname()[1]
        else:
            port = stack.enter_context(answering(*answer)).port
        serve(tmp_path, port)
        server = stack.enter_context(
            http_server("--log-dir", str(tmp_path / "runs/http"), cwd=tmp_path, tools=())
        )
        body = {"tool_id": "populate_backend", "session_id": "s", "args": SENT.arguments}
        response = server.request("/execute", json.dumps(body).encode(), content_type="application/json")
        called = run("call", "populate_backend", "asset={}", cwd=tmp_path)
    error = response.json["error"]
    assert (response.status, error["code"], error["details"]["happened"]) == (502, "UPSTREAM_ERROR", happened)
    assert error["message"].endswith(f": {happened}. {advice}")
    record = last(tmp_path, "envelope_validation")["error"]
    assert (record["note"], record["executed"]) == (happened, advice is EFFECTS)
    assert called.code == 1
    assert f": {happened}. {advice}" in called.err


def test_a_deadline_before_anything_was_sent_speaks_of_no_effects(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, contextlib.ExitStack() as waiting:
        for _ in range(4):  # the queue of a server that accepts nothing is full
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        serve(tmp_path, full.getsockname()[1], "max_execution_timeout_ms = 300")
        verdict = asked_through("POST /execute", tmp_path)
    assert verdict.reason == "TIMEOUT"
    message = json.loads(verdict.raw)["error"]["message"]
    assert (
        message
        == f"The tool did not answer before its deadline: no connection was made in time. {NO_EFFECTS}"
    )
    assert last(tmp_path, "envelope_validation")["error"]["executed"] is False


def test_policy_holds_for_the_post_and_its_address_counts_as_listed(tmp_path: Path) -> None:
    with answering(201, b'{"id":"1"}') as backend:
        serve(tmp_path, backend.port, 'allowed_methods = ["GET"]')
        denied = asked_through("POST /execute", tmp_path)
        assert (denied.reason, denied.details["rule"]) == ("POLICY_VIOLATION", "allowed_methods")
        assert backend.headers == []
        serve(tmp_path, backend.port, 'allowed_domains = ["api.example.com"]')
        assert asked_through("POST /tools/NAME", tmp_path).reason == "OK"
    assert len(backend.headers) == 1


def test_the_approval_of_a_failed_post_ends_as_failed(tmp_path: Path) -> None:
    with answering(500, b"") as backend:
        serve(tmp_path, backend.port, 'approval = "writes"')
        with ASSET_DOORWAYS["POST /execute"](tmp_path, None) as ask:
            assert ask(INVALID).reason == "BAD_ASSET", "nobody is asked to approve what cannot be sent"
            ticket = str(ask(SENT).details["approval_id"])
            assert run("approvals", "approve", ticket, cwd=tmp_path).code == 0
            assert (
                ask(Asked(SENT.tool, SENT.arguments, SENT.session, approval=ticket)).reason
                == "UPSTREAM_ERROR"
            )
        shown = run("approvals", "show", ticket, "--json", cwd=tmp_path)
    assert json.loads(shown.out)["state"] == "failed"
