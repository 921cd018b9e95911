"""Results of imported operations by the content types of their responses, from a real server to a client."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from support.decoding_api import decoding_api
from support.portbook_process import HttpServer, http_server

PNG = b"\x89PNG\x00"
# What is documented for each operation; what is sent is decided by its path.
WANTED: dict[str, dict[str, Any]] = {
    "json": {"200": {"content": {"application/json": {"schema": {"type": "array"}}}}},
    "vendor": {"2XX": {"content": {"application/vnd.x+json": {}}}},
    "text": {"200": {"content": {"text/plain": {}}}},
    "picture": {"200": {"content": {"image/*": {}}}},
    "document": {"200": {"content": {"application/pdf": {}}}},
    "anything": {"200": {"description": "Whatever it is."}},
    "nothing": {"204": {"description": "Done."}},
    "later": {"201": {"content": {"application/json": {"schema": {"type": "array"}}}}, "202": {}},
    "either": {"200": {"content": {"application/json": {"schema": {"type": "array"}}, "text/csv": {}}}},
    "fallback": {"default": {"content": {"application/json": {"schema": {"type": "array"}}}}},
}

SETTINGS = '[docs]\nenabled = false\n[http.api]\nbase_url = "{url}"\nopenapi = "api.json"\n'


def operation(name: str) -> dict[str, Any]:
    return {
        "operationId": name,
        "parameters": [
            *({"name": part, "in": "path", "required": True, "schema": {}} for part in ("kind", "subtype")),
            {"name": "status", "in": "query", "schema": {"type": "integer"}},
        ],
        "requestBody": {"content": {"application/octet-stream": {}}},
        "responses": WANTED[name],
    }


@dataclass
class Client:
    portbook: HttpServer

    def call(self, tool: str, content_type: str, body: bytes, status: int = 200) -> dict[str, Any]:
        """Call a tool whose response is `body`; return the answer at its route."""
        arguments = {**_arguments(content_type, body), "status": status}
        return json.loads(self._post(f"/tools/api.{tool}", {"session_id": "s-1", "args": arguments}))

    def mcp(self, tool: str, content_type: str, body: bytes) -> dict[str, Any]:
        """Call a tool over MCP; return its result."""
        meta = {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
        given = {"name": f"api.{tool}", "arguments": _arguments(content_type, body), "_meta": meta}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": given}
        headers = {
            "mcp_protocol_version": "2026-07-28",
            "mcp_method": "tools/call",
            "mcp_name": f"api.{tool}",
        }
        return json.loads(self._post("/mcp", message, **headers))["result"]

    def _post(self, path: str, message: Any, **headers: str) -> bytes:
        accept = "application/json, text/event-stream"
        data = json.dumps(message).encode()
        return self.portbook.request(
            path, data, content_type="application/json", accept=accept, **headers
        ).body


def _arguments(content_type: str, body: bytes) -> dict[str, Any]:
    kind, _, subtype = content_type.partition("/")
    return {"kind": kind, "subtype": subtype, "body": base64.b64encode(body).decode()}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("results")
    paths = {f"/{name}/{{kind}}/{{subtype}}": {"post": operation(name)} for name in WANTED}
    (folder / "api.json").write_text(json.dumps({"openapi": "3.1.0", "paths": paths}))
    with decoding_api() as api:
        (folder / "portbook.toml").write_text(SETTINGS.format(url=f"{api.url}/typed"))
        with http_server(cwd=folder, tools=()) as portbook:
            yield Client(portbook)


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


RESULTS: list[tuple[str, str, bytes, Any]] = [
    ("json", "application/json", b"[1]", [1]),
    ("json", "application/problem+json", b"[1]", [1]),
    ("vendor", "application/json", b"", None),
    ("vendor", "application/json; charset=utf-8", b'{"a":1}', {"a": 1}),
    ("text", "text/plain; charset=iso-8859-1", b"\xe9", "é"),
    ("fallback", "application/json", b"[]", []),
    ("anything", "application/json", b'{"a":1}', {"a": 1}),
    ("anything", "text/csv", b"a,b", "a,b"),
    ("anything", "image/png", PNG, {"content_type": "image/png", "base64": _encoded(PNG)}),
    ("anything", "text/plain", b"", None),
    ("picture", "image/png", PNG, [{"type": "image", "data": _encoded(PNG), "mimeType": "image/png"}]),
]


@pytest.mark.covers("002.execution.openapi-results")
@pytest.mark.parametrize(("tool", "content_type", "body", "result"), RESULTS)
def test_a_response_is_a_result_of_its_type(
    client: Client, tool: str, content_type: str, body: bytes, result: Any
) -> None:
    answer = client.call(tool, content_type, body)
    assert (answer["status"], answer["result"]) == ("success", result)


@pytest.mark.parametrize(
    ("tool", "status", "content_type", "body", "result"),
    [
        ("nothing", 204, "application/json", b"", None),
        ("nothing", 200, "application/json", b'{"a":1}', {"a": 1}),
        ("nothing", 202, "text/plain", b"queued", "queued"),
        ("later", 201, "application/json", b"[1]", [1]),
        ("later", 202, "application/json", b'{"job":1}', {"job": 1}),
        ("later", 202, "application/json", b"", None),
        ("either", 200, "application/json", b"[1]", [1]),
        ("either", 200, "text/csv", b"a,b", "a,b"),
    ],
)
def test_what_the_document_allows_is_not_withheld(
    client: Client, tool: str, status: int, content_type: str, body: bytes, result: Any
) -> None:
    answer = client.call(tool, content_type, body, status)
    assert (answer["status"], answer.get("result")) == ("success", result)


def test_a_result_that_is_withheld_after_effects_says_that_the_call_ran(client: Client) -> None:
    error = client.call("json", "application/json", b"{}")["error"]
    assert "was withheld. The call ran; check its effects before you retry." in error["message"]


@pytest.mark.parametrize(
    ("tool", "content_type", "body", "code"),
    [
        ("json", "text/html", b"<p>", "UPSTREAM_ERROR"),
        ("json", "application/json", b"{}", "INVALID_OUTPUT"),
        ("fallback", "application/json", b"{}", "INVALID_OUTPUT"),
        ("picture", "application/pdf", b"%PDF", "UPSTREAM_ERROR"),
        ("text", "text/plain", b"\xff", "UPSTREAM_ERROR"),
    ],
)
def test_a_response_that_was_not_promised_is_no_result(
    client: Client, tool: str, content_type: str, body: bytes, code: str
) -> None:
    assert client.call(tool, content_type, body)["error"]["code"] == code


def test_binary_data_is_content_over_mcp(client: Client) -> None:
    picture = client.mcp("picture", "image/png", PNG)
    assert picture["content"] == [{"type": "image", "data": _encoded(PNG), "mimeType": "image/png"}]
    (document,) = client.mcp("document", "application/pdf", b"%PDF")["content"]
    assert (document["type"], document["resource"]["mimeType"]) == ("resource", "application/pdf")
    assert document["resource"]["blob"] == _encoded(b"%PDF")
    assert client.mcp("document", "application/pdf", b"")["content"] == []
