"""What real APIs answer beside plain JSON: redirects, large errors, texts in old charsets."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.served_document import ServedDocument, served_document

SETTINGS = """
[docs]
enabled = false

[http.api]
base_url = "{url}"
openapi = "api.json"
max_response_bytes = 1000
retries = 0
"""


def query(name: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {}}


def typed(name: str, responses: dict[str, Any]) -> dict[str, Any]:
    return {
        "operationId": name,
        "parameters": [{"name": "type", "in": "path", "required": True, "schema": {}}, query("status")],
        "requestBody": {"content": {"application/octet-stream": {}}},
        "responses": responses,
    }


DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "paths": {
        "/moved/here": {"get": {"operationId": "moved", "parameters": [query("to")], "responses": {}}},
        "/alerts?lat={lat}": {"get": {"operationId": "alerts", "responses": {}}},
        "/typed/text/text/{type}": {"post": typed("text", {"200": {"content": {"text/plain": {}}}})},
        "/typed/any/text/{type}": {"post": typed("any", {"200": {"description": ""}})},
    },
}


@pytest.fixture(scope="module")
def portbook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedDocument]:
    with served_document(tmp_path_factory.mktemp("odd"), DOCUMENT, SETTINGS) as served:
        yield served


def echo(
    portbook: ServedDocument, tool: str, content_type: str, body: bytes, status: int = 200
) -> dict[str, Any]:
    """Call a tool whose answer is `body`."""
    sent = base64.b64encode(body).decode()
    return portbook.call(tool, {"type": content_type, "body": sent, "status": status})


@pytest.mark.parametrize(
    ("to", "target"), [("../found/there?a=1", "/found/there?a=1"), ("./../found", "/found"), ("/a", "/a")]
)
def test_a_redirect_may_be_relative(portbook: ServedDocument, to: str, target: str) -> None:
    assert portbook.call("moved", {"to": to})["status"] == "success"
    assert portbook.api.last.target == target


def test_a_name_in_the_query_of_a_path_is_sent_though_nothing_describes_it(portbook: ServedDocument) -> None:
    assert portbook.call("alerts", {})["error"]["details"]["violations"][0]["keyword"] == "required"
    assert portbook.call("alerts", {"lat": "5,1"})["status"] == "success"
    assert portbook.api.last.target == "/alerts?lat=5%2C1"


@pytest.mark.parametrize(
    ("status", "reason"),
    [(404, "UPSTREAM_NOT_FOUND"), (403, "UPSTREAM_DENIED"), (422, "UPSTREAM_REJECTED")],
)
def test_an_error_too_large_to_be_read_has_its_reason(
    portbook: ServedDocument, status: int, reason: str
) -> None:
    error = echo(portbook, "any", "plain", b"x" * 5000, status)["error"]
    assert (error["details"]["reason"], error["details"]["upstream_status"]) == (reason, status)
    assert "xxx" not in json.dumps(error)


@pytest.mark.parametrize(
    ("charset", "body"),
    [("latin-1", b"\xe9"), ("ISO8859-1", b"\xe9"), ("cp1252", b"\xe9"), ("utf-8", b"\xc3\xa9")],
)
def test_text_is_read_in_its_charset(portbook: ServedDocument, charset: str, body: bytes) -> None:
    assert echo(portbook, "text", f"plain; charset={charset}", body)["result"] == "é"


def test_text_in_an_unknown_charset_is_binary_data_or_an_error_that_says_so(portbook: ServedDocument) -> None:
    sent = "plain; charset=x-nothing"
    answer = echo(portbook, "any", sent, b"\xe9")
    assert answer["result"] == {"content_type": "text/plain", "base64": base64.b64encode(b"\xe9").decode()}
    error = echo(portbook, "text", sent, b"\xe9")["error"]
    assert error["code"] == "UPSTREAM_ERROR"
    assert "the answer is text in a charset that is not supported" in error["message"]
