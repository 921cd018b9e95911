"""`GET /openapi.json`, as a process: valid, one operation a tool, and what it says is so."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR

from portbook.errors import REASONS
from portbook.stores.caller_keys import digest_of_key
from support.portbook_process import HttpServer, Response, http_server

GUEST = "key of a guest"

TOOLS = '''
import time
from pydantic import BaseModel
from portbook import Toolset

toolset = Toolset("described")

class Order(BaseModel):
    id: str
    parts: list["Order"] = []

@toolset.tool(effect="read")
def look(id: str, depth: int = 0) -> Order:
    """One order, <script>alert("by its id")</script>.

    More about it & its parts.
    """
    return Order(id=id)

@toolset.tool(effect="write")
def add(order: Order) -> list[Order]:
    """Several orders."""
    return [order]

@toolset.tool(effect="destructive")
def wipe() -> None:
    """Nothing left."""

@toolset.tool(effect="read", timeout_ms=50)
def slow() -> None:
    time.sleep(30)
'''

SETTINGS = f"""
[python]
toolsets = ["tools.py"]
[docs]
enabled = false
[[policy.rules]]
name = "nothing destructive"
effects = ["destructive"]
action = "deny"
[[keys.allow]]
name = "guest"
sha256 = "{digest_of_key(GUEST)}"
tools = ["look"]
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    folder = tmp_path_factory.mktemp("openapi")
    (folder / "tools.py").write_text(TOOLS)
    (folder / "portbook.toml").write_text(SETTINGS)
    with http_server(cwd=folder, tools=()) as server:
        yield server


@pytest.fixture(scope="module")
def document(server: HttpServer) -> Any:
    response = server.request("/openapi.json")
    assert (response.status, response.headers["content-type"]) == (200, "application/json")
    return response.json


def post(server: HttpServer, path: str, body: Any) -> Response:
    return server.request(path, json.dumps(body).encode(), content_type="application/json")


def schema_at(document: Any, *path: str) -> Draft202012Validator:
    """The schema at one place of the document, with the whole of it around for references."""
    pointer = "/".join(part.replace("~", "~0").replace("/", "~1") for part in path)
    return Draft202012Validator({**document, "$ref": f"#/{pointer}/content/application~1json/schema"})


@pytest.mark.covers("002.openapi.valid")
def test_the_document_is_valid_openapi_3_1(document: Any) -> None:
    assert document["openapi"].startswith("3.1.")
    assert [str(error) for error in OPENAPI_31_VALIDATOR.iter_errors(document)] == []


@pytest.mark.covers("002.openapi.operations")
def test_every_tool_is_one_operation_named_like_it(document: Any) -> None:
    tools = {path: item for path, item in document["paths"].items() if path.startswith("/tools/")}
    assert list(tools) == ["/tools/add", "/tools/look", "/tools/slow", "/tools/wipe"]
    assert all(list(item) == ["get", "post"] for item in tools.values())
    assert [item["post"]["operationId"] for item in tools.values()] == ["add", "look", "slow", "wipe"]
    others = {path: list(item) for path, item in document["paths"].items() if path not in tools}
    assert others == {
        "/execute": ["post"],
        "/tools": ["get"],
        "/health": ["get"],
        "/livez": ["get"],
        "/readyz": ["get"],
    }
    every = [operation["operationId"] for item in document["paths"].values() for operation in item.values()]
    assert len(set(every)) == len(every)


def test_an_operation_says_what_its_tool_is(document: Any) -> None:
    operation = document["paths"]["/tools/look"]["post"]
    assert operation["summary"] == 'One order, <script>alert("by its id")</script>.'
    assert (operation["tags"], operation["x-portbook-effect"]) == (["read"], "read")


def test_every_status_that_an_ending_can_have_is_documented(document: Any) -> None:
    expected = {"200", *(str(row.http) for row in REASONS.values())}
    for path in ("/execute", "/tools/look"):
        assert document["paths"][path]["post"]["responses"].keys() == expected


GOOD: dict[str, Any] = {"session_id": "s-1", "args": {"id": "7"}}


@pytest.mark.parametrize(
    ("change", "is_right"),
    [
        pytest.param({}, True, id="as it should be"),
        pytest.param({"attempt": 2, "trace_id": "t-1", "wait_ms": 5}, True, id="all that it may say"),
        pytest.param({"args": {"id": 7}}, False, id="an argument of another type"),
        pytest.param({"args": {}}, False, id="an argument that is missing"),
        pytest.param({"args": {"id": "7", "more": 1}}, False, id="an argument too many"),
        pytest.param({"session_id": ""}, False, id="an empty session"),
        pytest.param({"attempt": 0}, False, id="attempt zero"),
        pytest.param({"trace_id": "a b"}, False, id="a trace with a space"),
        pytest.param({"more": 1}, False, id="something else"),
    ],
)
def test_the_document_and_the_route_agree_on_what_a_request_may_be(
    server: HttpServer, document: Any, change: dict[str, Any], is_right: bool
) -> None:
    body = {**GOOD, **change}
    requests = schema_at(document, "paths", "/tools/look", "post", "requestBody")
    assert requests.is_valid(body) is is_right
    assert (post(server, "/tools/look", body).status == 200) is is_right


ORDER = {"id": "7", "parts": [{"id": "8", "parts": []}]}


@pytest.mark.covers("002.openapi.kept")
@pytest.mark.parametrize(
    ("tool", "body", "status"),
    [
        ("look", GOOD, 200),
        ("add", {"session_id": "s-1", "args": {"order": ORDER}}, 200),
        ("add", {"session_id": "s-1", "args": {"order": {"id": "7", "parts": [{}]}}}, 400),
        ("look", {"args": {}}, 400),
        ("wipe", {"session_id": "s-1", "args": {}}, 403),
        ("slow", {"session_id": "s-1", "args": {}}, 504),
    ],
)
def test_answers_are_what_the_document_promises(
    server: HttpServer, document: Any, tool: str, body: Any, status: int
) -> None:
    routes = {f"/tools/{tool}": body, "/execute": {"tool_id": tool, **body}}
    for path, request in routes.items():
        response = post(server, path, request)
        assert response.status == status
        answers = schema_at(document, "paths", path, "post", "responses", str(status))
        assert [error.message for error in answers.iter_errors(response.json)] == []


def test_a_result_of_another_shape_would_break_the_promise(document: Any) -> None:
    answers = schema_at(document, "paths", "/tools/look", "post", "responses", "200")
    metadata = {
        "latency_ms": 1,
        "status_code": 200,
        "request_id": "r",
        "trace_id": "t",
        "redaction_applied": False,
    }
    answer: Any = {"status": "success", "result": {"id": "7"}, "error": None, "metadata": metadata}
    assert answers.is_valid({**answer, "result": ORDER})
    assert not answers.is_valid({**answer, "result": {"id": 7, "parts": []}})
    assert not answers.is_valid({**answer, "status": "failure"})


def test_a_caller_reads_of_the_tools_of_its_key_alone(server: HttpServer) -> None:
    response = server.request("/openapi.json", authorization=f"Bearer {GUEST}")
    tools = [path for path in response.json["paths"] if path.startswith("/tools/")]
    assert tools == ["/tools/look"]
    assert "Several orders" not in response.body.decode()


def test_a_wrong_key_and_another_host_read_nothing(server: HttpServer) -> None:
    path = "/openapi.json"
    refused = server.request(path, authorization="Bearer wrong")
    assert (refused.status, refused.json["error"]["code"]) == (401, "UNAUTHORIZED")
    assert server.request(path, host="evil.test").status == 403
    assert server.request(path, method="HEAD").body == b""
