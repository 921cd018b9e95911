"""Every door and dialect as one row: the same call through each of them, and the same verdict read from it.

A new door joins every table that is driven through these by a row in `DOORWAYS`.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from support.in_process_connection import EVERY_REVISION, HANDSHAKES, handshake, params
from support.portbook_process import PORTBOOK, HttpServer, Response, child, environment, http_server


@dataclass(frozen=True)
class Asked:
    """One call, in no wire contract's words."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)
    session: str = "s-1"
    attempt: int = 1
    approval: str | None = None
    wait_ms: int = 0
    controls: dict[str, Any] = field(default_factory=dict)
    """What is asked of an envelope around the result."""

    @property
    def meta(self) -> dict[str, Any]:
        meta: dict[str, Any] = {
            "portbook/session_id": self.session,
            "portbook/attempt": self.attempt,
            **self.controls,
        }
        if self.approval is not None:
            meta["portbook/approval_id"] = self.approval
        if self.wait_ms:
            meta["portbook/wait_ms"] = self.wait_ms
        return meta


@dataclass(frozen=True)
class Verdict:
    """What came of a call: the reason it did not succeed, or OK; and what was told beside it."""

    reason: str
    details: dict[str, Any] = field(default_factory=dict, compare=False)
    result: Any = field(default=None, compare=False)
    raw: bytes = field(default=b"", compare=False, repr=False)
    envelope: Any = field(default=None, compare=False)
    """The result envelope, where one came."""


class Doorway(Protocol):
    def __call__(self, asked: Asked) -> Verdict: ...


def _rest_verdict(body: bytes) -> Verdict:
    answer = json.loads(body)
    assert answer.keys() == {"status", "result", "error", "metadata"}
    if answer["status"] == "success":
        return Verdict("OK", answer["metadata"], answer["result"], body, answer["result"])
    error = answer["error"]
    assert error.keys() == {"code", "message", "details", "retryable", "policy_violation"}
    return Verdict(error["details"]["reason"], error["details"], raw=body, envelope=answer["result"])


def _execute_body(asked: Asked) -> dict[str, Any]:
    body = {"session_id": asked.session, "args": asked.arguments, "attempt": asked.attempt}
    if asked.approval is not None:
        body["approval_id"] = asked.approval
    if asked.wait_ms:
        body["wait_ms"] = asked.wait_ms
    if asked.controls:
        body["_meta"] = asked.controls
    return body


class _Shared:
    """The HTTP server of one folder, for all doors of it that are open."""

    def __init__(self, folder: Path) -> None:
        self._running = contextlib.ExitStack()
        self.server = self._running.enter_context(
            http_server("--log-dir", str(folder / "runs" / "http"), cwd=folder, tools=())
        )
        self.doors = 0

    def close(self) -> None:
        self._running.close()


_shared: dict[Path, _Shared] = {}
_given: dict[Path, HttpServer | None] = {}
"""The servers that were started for folders; None once they have ended."""


@contextlib.contextmanager
def leading_to(folder: Path, server: HttpServer) -> Iterator[None]:
    """Let the HTTP doors of a folder lead to a server that runs already."""
    _given[folder] = server
    try:
        yield
    finally:
        _given[folder] = None


def leads_to(folder: Path) -> HttpServer | None:
    """The server that was given for a folder, if there is one."""
    return _given.get(folder)


@contextlib.contextmanager
def _http(folder: Path) -> Iterator[HttpServer]:
    """The server of a folder: started for the first door that is opened, ended with the last one."""
    if folder in _given:
        given = _given[folder]
        assert given is not None, "the server that this door leads to has ended"
        yield given
        return
    if folder not in _shared:
        _shared[folder] = _Shared(folder)
    shared = _shared[folder]
    shared.doors += 1
    try:
        yield shared.server
    finally:
        shared.doors -= 1
        if not shared.doors:
            del _shared[folder]
            shared.close()


def _post(server: HttpServer, path: str, body: Any, key: str | None) -> bytes:
    headers = {"content_type": "application/json"}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    return server.request(path, json.dumps(body).encode(), **headers).body


@contextlib.contextmanager
def _rest(folder: Path, key: str | None) -> Iterator[Doorway]:
    with _http(folder) as server:
        yield lambda asked: _rest_verdict(
            _post(server, "/execute", {"tool_id": asked.tool, **_execute_body(asked)}, key)
        )


@contextlib.contextmanager
def _rest_by_route(folder: Path, key: str | None) -> Iterator[Doorway]:
    with _http(folder) as server:
        yield lambda asked: _rest_verdict(_post(server, f"/tools/{asked.tool}", _execute_body(asked), key))


def _envelope(asked: Asked) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "mcp.tool.invoke",
        "params": {"tool": f"mcp.tool:{asked.tool}", "input": asked.arguments, "_meta": asked.meta},
    }


# What the envelope dialect says of a reason that has no name of its own there.
_CANONICAL = {"NOT_FOUND": "UNKNOWN_TOOL", "UNAUTHORIZED": "UNAUTHORIZED", "INVALID_OUTPUT": "BAD_RESULT"}


def _envelope_verdict(body: bytes) -> Verdict:
    answer = json.loads(body)
    if "result" in answer:
        return Verdict("OK", {}, answer["result"], body, answer["result"])
    data = answer["error"]["data"]
    code = data["canonical_code"]
    reason = data.get("reason") or _CANONICAL.get(code, code)
    return Verdict(reason, data, raw=body, envelope=data.get("envelope"))


@contextlib.contextmanager
def _rpc(folder: Path, key: str | None) -> Iterator[Doorway]:
    with _http(folder) as server:
        yield lambda asked: _envelope_verdict(_post(server, "/rpc", _envelope(asked), key))


_SERVE = (*PORTBOOK, "serve", "--stdio")
_ADAPTER = (sys.executable, "-m", "portbook.cli.adapter")


@contextlib.contextmanager
def _stdio(
    folder: Path, key: str | None, name: str, program: tuple[str, ...] = _SERVE
) -> Iterator[Callable[[Any], bytes]]:
    """A STDIO server; what is yielded sends one message and returns its answer."""
    extra = {"MCP_READY_FILE": ""} if key is None else {"MCP_READY_FILE": "", "PORTBOOK_KEY": key}
    with (folder / f"{name}.stderr").open("wb") as stderr, contextlib.ExitStack() as ending:
        process = ending.enter_context(
            child(
                [*program, "--log-dir", str(folder / "runs" / name)],
                cwd=folder,
                env=environment(**extra),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        )
        assert process.stdin is not None
        assert process.stdout is not None
        incoming, outgoing = process.stdin, process.stdout

        def exchange(message: Any) -> bytes:
            incoming.write(json.dumps(message).encode() + b"\n")
            incoming.flush()
            return outgoing.readline() if "id" in message else b""

        try:
            yield exchange
        finally:
            incoming.close()
            process.wait(30)


@contextlib.contextmanager
def _stdio_envelope(folder: Path, key: str | None) -> Iterator[Doorway]:
    with _stdio(folder, key, "envelope") as exchange:
        yield lambda asked: _envelope_verdict(exchange(_envelope(asked)))


def _official_verdict(body: bytes) -> Verdict:
    answer = json.loads(body)
    if "error" in answer:
        data = answer["error"]["data"]
        return Verdict(data["reason"], data, raw=body)
    result = answer["result"]
    meta = result.get("_meta", {})
    envelope = meta.get("portbook/envelope")
    if result.get("isError"):
        refusal = meta["portbook/refusal"]
        return Verdict(refusal["reason"], refusal, raw=body, envelope=envelope)
    texts = [block["text"] for block in result["content"]]
    return Verdict("OK", {}, json.loads(texts[0]) if texts else None, body, envelope)


def _official(revision: str) -> Callable[[Path, str | None], contextlib.AbstractContextManager[Doorway]]:
    @contextlib.contextmanager
    def opened(folder: Path, key: str | None) -> Iterator[Doorway]:
        with _stdio(folder, key, f"mcp-{revision}") as exchange:
            if revision in HANDSHAKES:
                hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": handshake(revision)}
                greeted = exchange(hello)
                if "error" in json.loads(greeted):  # who may not even come in is told so, and can ask nothing
                    yield lambda asked: _official_verdict(greeted)
                    return
                exchange({"jsonrpc": "2.0", "method": "notifications/initialized"})

            def ask(asked: Asked) -> Verdict:
                given = params(revision, name=asked.tool, arguments=asked.arguments, _meta=asked.meta)
                message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": given}
                return _official_verdict(exchange(message))

            yield ask

    return opened


def _mcp_headers(revision: str, message: dict[str, Any], key: str | None) -> dict[str, str]:
    headers = {"content_type": "application/json", "accept": "application/json, text/event-stream"}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    if revision not in HANDSHAKES:
        headers |= {"mcp_protocol_version": revision, "mcp_method": message["method"]}
        headers |= {"mcp_name": message["params"]["name"]} if "name" in message["params"] else {}
    return headers


def _answer_in(response: Response) -> bytes:
    """The answer itself: on a busy machine it may come late, and then as the last event of a stream."""
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        *_, answer = re.findall(rb"^data: (\{.*)$", response.body, re.MULTILINE)
        return answer
    return response.body


def _mcp(revision: str) -> Callable[[Path, str | None], contextlib.AbstractContextManager[Doorway]]:
    @contextlib.contextmanager
    def opened(folder: Path, key: str | None) -> Iterator[Doorway]:
        with _http(folder) as server:
            session: dict[str, str] = {}

            def post(message: dict[str, Any]) -> Any:
                headers = {**_mcp_headers(revision, message, key), **session}
                return server.request("/mcp", json.dumps(message).encode(), **headers)

            if revision in HANDSHAKES:
                hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": handshake(revision)}
                greeted = post(hello)
                if "error" in greeted.json:  # who may not even come in is told so, and can ask nothing
                    yield lambda asked: _official_verdict(greeted.body)
                    return
                session |= {"mcp_session_id": greeted.headers["mcp-session-id"]}
                post({"jsonrpc": "2.0", "method": "notifications/initialized"})

            def ask(asked: Asked) -> Verdict:
                given = params(revision, name=asked.tool, arguments=asked.arguments, _meta=asked.meta)
                message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": given}
                return _official_verdict(_answer_in(post(message)))

            yield ask

    return opened


# A door and a dialect, by name. A new one is a row here.
DOORWAYS: dict[str, Callable[[Path, str | None], contextlib.AbstractContextManager[Doorway]]] = {
    "POST /execute": _rest,
    "POST /tools/NAME": _rest_by_route,
    "POST /rpc, envelope": _rpc,
    "STDIO, envelope": _stdio_envelope,
    **{f"STDIO, MCP {revision}": _official(revision) for revision in EVERY_REVISION},
    **{f"POST /mcp, MCP {revision}": _mcp(revision) for revision in EVERY_REVISION},
}


HTTP_DOORWAYS = [name for name in DOORWAYS if name.startswith("POST ")]


def _request(asked: Asked) -> dict[str, Any]:
    request = {
        "schema_version": "mcp.request.v0.1",
        "tool": {"name": asked.tool},
        "params": {**asked.arguments, "_meta": asked.meta},
        "artifacts": [],
    }
    return {"jsonrpc": "2.0", "id": 1, "method": "mcp.request", "params": request}


@contextlib.contextmanager
def _rpc_request(folder: Path, key: str | None) -> Iterator[Doorway]:
    with _http(folder) as server:
        yield lambda asked: _envelope_verdict(_post(server, "/rpc", _request(asked), key))


@contextlib.contextmanager
def _stdio_request(folder: Path, key: str | None) -> Iterator[Doorway]:
    with _stdio(folder, key, "request") as exchange:
        yield lambda asked: _envelope_verdict(exchange(_request(asked)))


# Those whose answer is always an envelope.
ENVELOPE_DOORWAYS = {**DOORWAYS, "POST /rpc, request": _rpc_request, "STDIO, request": _stdio_request}


def _bare(asked: Asked) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": asked.tool,
        "params": {**asked.arguments, "_meta": asked.meta},
    }


# What the bare dialect says where no tool ran, or none came to its end; anything else is a tool's result.
_BARE = {
    "policy_violation": "POLICY_VIOLATION",
    "payload_too_large": "PAYLOAD_TOO_LARGE",
    "rate_limited": "RATE_LIMITED",
    "approval_required": "APPROVAL_REQUIRED",
    "approval_refused": "APPROVAL_REFUSED",
    "timeout": "TIMEOUT",
    "internal error": "UPSTREAM_ERROR",
    "invalid_response": "UPSTREAM_ERROR",
    "network_unreachable": "UPSTREAM_ERROR",
    "backend disabled": "BACKEND_DISABLED",
    "unauthorized": "UNAUTHORIZED",
    "redacted": "NOT_REDACTABLE",
    "tool not implemented": "UNKNOWN_TOOL",
    'missing property "name"': "BAD_ARGUMENTS",
}


def _bare_verdict(body: bytes) -> Verdict:
    result = json.loads(body)["result"]
    said = result["errors"][0]["msg"] if result.get("errors") else result.get("detail")
    if result["ok"] or said not in _BARE:
        return Verdict("OK", {}, result, body)
    assert result["reason"] in ("unsupported", "validation_failed", "backend_error")
    return Verdict(_BARE[said], result, raw=body)


@contextlib.contextmanager
def _rpc_bare(folder: Path, key: str | None) -> Iterator[Doorway]:
    with _http(folder) as server:
        yield lambda asked: _bare_verdict(_post(server, "/rpc", _bare(asked), key))


@contextlib.contextmanager
def _stdio_bare(folder: Path, key: str | None) -> Iterator[Doorway]:
    with _stdio(folder, key, "bare") as exchange:
        yield lambda asked: _bare_verdict(exchange(_bare(asked)))


@contextlib.contextmanager
def _adapter(folder: Path, key: str | None) -> Iterator[Doorway]:
    with _stdio(folder, key, "adapter", _ADAPTER) as exchange:
        yield lambda asked: _bare_verdict(exchange(_bare(asked)))


# Those through which a tool is called by its name alone: the asset tools, and no others.
BARE_DOORWAYS = {"POST /rpc, bare": _rpc_bare, "STDIO, bare": _stdio_bare, "python -m mcp": _adapter}
ASSET_DOORWAYS = {**DOORWAYS, **BARE_DOORWAYS}
