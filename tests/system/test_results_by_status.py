"""Results of imported operations by the status that answered, from a real server, at every door.

The same document, the same answers: what the status describes is checked, what comes empty is null, and what
an MCP client gets is always what its list announced.
"""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from portbook.tools.tool_names import listed_name
from support.decoding_api import decoding_api
from support.every_door import DOORWAYS, Asked, Doorway
from support.in_process_connection import HANDSHAKES, handshake, params
from support.portbook_process import HttpServer, http_server

SETTINGS = '[docs]\nenabled = false\n[http.api]\nbase_url = "{url}/typed"\nopenapi = "api.json"\n'


def a_response(*required: str) -> dict[str, Any]:
    schema = {"type": "object", "required": list(required)}
    return {"description": "", "content": {"application/json": {"schema": schema}}}


NOTHING = {"description": ""}
RESPONSES: dict[str, dict[str, Any]] = {
    "one": {"200": a_response("id")},
    "two": {"201": a_response("id"), "202": a_response("job")},
    "later": {"201": a_response("id"), "202": NOTHING},
    "done": {"200": a_response("id"), "204": NOTHING},
    "ranged": {"2XX": a_response("id"), "202": a_response("job")},
    "errors": {"200": a_response("id"), "default": a_response("error")},
    "fallback": {"default": a_response("id")},
    "read": {"200": a_response("id")},
    "look": {"200": a_response("id"), "204": NOTHING},
}
ID, JOB = b'{"id": 1}', b'{"job": 2}'

# Tool, status, body; the result, or the reason that there is none.
ANSWERS: list[tuple[str, int, bytes, Any]] = [
    ("one", 200, ID, {"id": 1}),
    ("one", 200, JOB, "BAD_RESULT"),
    ("one", 200, b"", None),
    ("one", 204, b"", None),
    ("one", 201, ID, {"id": 1}),
    ("one", 202, JOB, "BAD_RESULT"),
    ("two", 201, ID, {"id": 1}),
    ("two", 202, JOB, {"job": 2}),
    ("two", 201, JOB, "BAD_RESULT"),
    ("two", 202, ID, "BAD_RESULT"),
    ("two", 200, JOB, {"job": 2}),
    ("later", 201, ID, {"id": 1}),
    ("later", 201, JOB, "BAD_RESULT"),
    ("later", 202, JOB, {"job": 2}),
    ("later", 202, b"", None),
    ("later", 201, b"", None),
    ("done", 204, b"", None),
    ("ranged", 203, ID, {"id": 1}),
    ("ranged", 203, JOB, "BAD_RESULT"),
    ("ranged", 202, JOB, {"job": 2}),
    ("errors", 201, ID, {"id": 1}),
    ("errors", 201, b'{"error": 3}', "BAD_RESULT"),
    ("fallback", 201, ID, {"id": 1}),
    ("fallback", 205, b"", None),
    ("read", 200, b"", "BAD_RESULT"),
    ("read", 204, b"", "BAD_RESULT"),
    ("look", 204, b"", None),
]
READS = ("read", "look")


def operation(name: str) -> dict[str, Any]:
    return {
        "operationId": name,
        "parameters": [
            {"name": "status", "in": "query", "schema": {"type": "integer"}},
            {"name": "link", "in": "query", "schema": {"type": "array"}},
        ],
        "responses": RESPONSES[name],
    } | ({} if name in READS else {"requestBody": {"content": {"application/octet-stream": {}}}})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("statuses")
    paths = {
        f"/{name}/application/json": {"get" if name in READS else "post": operation(name)}
        for name in RESPONSES
    }
    (made / "api.json").write_text(json.dumps({"openapi": "3.1.0", "paths": paths}))
    with decoding_api() as api:
        (made / "portbook.toml").write_text(SETTINGS.format(url=api.url))
        yield made


def asked(tool: str, status: int, body: bytes, *links: str) -> Asked:
    sent = base64.b64encode(body).decode()
    given = {"status": status, "link": list(links)}
    return Asked(f"api.{tool}", given if tool in READS else {**given, "body": sent})


@pytest.fixture(scope="module", params=["POST /execute", "POST /rpc, envelope", "POST /mcp, MCP 2026-07-28"])
def door(request: pytest.FixtureRequest, folder: Path) -> Iterator[Doorway]:
    with contextlib.ExitStack() as opened:
        yield opened.enter_context(DOORWAYS[request.param](folder, None))


@pytest.mark.covers("002.execution.openapi-statuses")
@pytest.mark.parametrize(("tool", "status", "body", "expected"), ANSWERS)
def test_an_answer_is_checked_by_the_status_that_it_has(
    door: Doorway, tool: str, status: int, body: bytes, expected: Any
) -> None:
    verdict = door(asked(tool, status, body))
    if isinstance(expected, str):
        assert verdict.reason == expected
    else:
        assert (verdict.reason, verdict.result) == ("OK", expected)


class Session:
    """What an MCP client of one revision asks of `/mcp`."""

    def __init__(self, server: HttpServer, revision: str) -> None:
        self._server, self._revision = server, revision
        self._headers: dict[str, str] = {}
        if revision in HANDSHAKES:
            greeted = self._post("initialize", handshake(revision))
            self._headers = {"mcp_session_id": greeted.headers["mcp-session-id"]}

    def ask(self, method: str, **given: Any) -> dict[str, Any]:
        return json.loads(self._post(method, params(self._revision, **given)).body)

    def _post(self, method: str, given: dict[str, Any]) -> Any:
        headers = {"content_type": "application/json", "accept": "application/json, text/event-stream"}
        if self._revision not in HANDSHAKES:
            headers |= {"mcp_protocol_version": self._revision, "mcp_method": method}
            headers |= {"mcp_name": given["name"]} if "name" in given else {}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given}
        return self._server.request("/mcp", json.dumps(message).encode(), **headers, **self._headers)


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_structured_content_is_always_what_the_list_announced(folder: Path, revision: str) -> None:
    with http_server(cwd=folder, tools=()) as server:
        session = Session(server, revision)
        tools = session.ask("tools/list")["result"]["tools"]
        announced = {tool["name"]: tool.get("outputSchema") for tool in tools}
        assert [name for name, schema in announced.items() if schema is None] == [listed_name("api.later")]
        # What only reads gives its object as it is; the others may answer null, which no object holds.
        assert announced[listed_name("api.read")]["required"] == ["id"]
        for tool, status, body, expected in ANSWERS:
            call = asked(tool, status, body)
            answer = session.ask("tools/call", name=call.tool, arguments=call.arguments)
            assert ("error" in answer) is isinstance(expected, str)
            schema = announced[listed_name(call.tool)]
            if schema is not None and "result" in answer:
                Draft202012Validator(schema).validate(answer["result"]["structuredContent"])


LINK = '<https://ada:pw@api.example.com/items?page=2&api_key=hunter2hunter2>; rel="next"'
SHOWN = [{"url": "https://api.example.com/items?page=2&api_key=[redacted]", "rel": "next"}]


@pytest.mark.covers("002.execution.openapi-links")
def test_links_to_further_pages_come_with_the_result(folder: Path) -> None:
    call = asked("one", 200, ID, '</items?page=2>; rel="next"', "</items?page=9>; rel=last")
    links = [{"url": "/items?page=2", "rel": "next"}, {"url": "/items?page=9", "rel": "last"}]
    with DOORWAYS["POST /execute"](folder, None) as door:
        assert door(call).details["links"] == links
        assert "links" not in door(asked("one", 200, ID)).details
    with DOORWAYS["POST /mcp, MCP 2025-11-25"](folder, None) as door:
        assert json.loads(door(call).raw)["result"]["_meta"]["portbook/links"] == links


def test_no_credential_comes_in_a_link(folder: Path) -> None:
    with DOORWAYS["POST /execute"](folder, None) as door:
        verdict = door(asked("one", 200, ID, LINK))
    assert verdict.details["links"] == SHOWN
    assert verdict.details["redaction_applied"] is True


def test_no_password_comes_in_a_link_that_browsers_read_differently(folder: Path) -> None:
    links = (r"<https:\\ada:pw@api.example.com/>; rel=prev", "</items?page=2#access=ours>; rel=next")
    with DOORWAYS["POST /execute"](folder, None) as door:
        verdict = door(asked("one", 200, ID, *links))
    assert verdict.details["links"] == [{"url": "/items?page=2", "rel": "next"}]
