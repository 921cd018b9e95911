"""No argument reaches a name that the operator set, however a server may read it: nothing is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.portbook_process import environment
from support.served_document import ServedDocument, served_document

SETTINGS = """
[docs]
enabled = false

[http.api]
base_url = "{url}"
openapi = "api.json"

[http.api.credentials]
key = {{ env = "API_KEY" }}
login = {{ env = "API_LOGIN" }}
"""


def spread(place: str, name: str) -> dict[str, Any]:
    return {"name": name, "in": place, "schema": {"type": "object"}, "explode": True}


def form(media: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"tenant_id": {}}, "additionalProperties": True}
    return {"content": {media: {"schema": schema}}}


DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.3",
    "paths": {
        "/query?tenant_id=acme": {"get": {"operationId": "query", "parameters": [spread("query", "more")]}},
        "/cookies": {
            "get": {
                "operationId": "cookies",
                "parameters": [spread("cookie", "more"), {"name": "theme", "in": "cookie", "schema": {}}],
            }
        },
        "/form": {
            "post": {"operationId": "form", "requestBody": form("application/x-www-form-urlencoded")},
        },
        "/parts": {"post": {"operationId": "parts", "requestBody": form("multipart/form-data")}},
        **{
            f"/{name}?Action=Get": {"post": {"operationId": name, "requestBody": form(media)}}
            for name, media in (
                ("fixed_form", "application/x-www-form-urlencoded"),
                ("fixed_parts", "multipart/form-data"),
                ("fixed_json", "application/json"),
            )
        },
    },
    "security": [{"key": [], "login": []}],
    "components": {
        "securitySchemes": {
            "key": {"type": "apiKey", "in": "query", "name": "api_key"},
            "login": {"type": "apiKey", "in": "cookie", "name": "session_id"},
        }
    },
}


@pytest.fixture(scope="module")
def portbook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedDocument]:
    secrets = environment(API_KEY="k-operator-1", API_LOGIN="l-operator-1")
    with served_document(tmp_path_factory.mktemp("names"), DOCUMENT, SETTINGS, env=secrets) as served:
        yield served


# The last part of the place is the name.
SMUGGLED: list[tuple[str, tuple[str, ...]]] = [
    *(
        ("query", ("more", name))
        for name in (
            "tenant_id", "tenant.id", "tenant id", " Tenant.ID", "tenant[id", "[tenant_id]", "tenant_id\0x",
            "tenant_id[]", "api_key", "api.key", "api[key", "API_KEY\0",
        )
    ),
    *(("cookies", ("more", name)) for name in ("session_id", "Session_ID", "session.id", "theme", "THEME")),
    *(("form", (name,)) for name in ("tenant.id", "tenant id", "tenant[id", "tenant_id\0x", "TENANT_ID")),
    *(
        ("parts", (name,))
        for name in ("tenant.id", "tenant[id", "tenant_id\0", "tenant\\_id", 'x"; name="tenant_id', "x\\")
    ),
    *(
        (tool, (name,))
        for tool in ("fixed_form", "fixed_parts", "fixed_json")
        for name in ("Action", "action", "Action[]", "api_key", "api.key")
    ),
]  # fmt: skip


@pytest.mark.covers("002.execution.reserved-names")
@pytest.mark.parametrize(("tool", "place"), SMUGGLED)
def test_a_name_that_some_server_reads_as_a_reserved_one_is_not_sent(
    portbook: ServedDocument, tool: str, place: tuple[str, ...]
) -> None:
    arguments: Any = "other"
    for name in reversed(place):
        arguments = {name: arguments}
    before = len(portbook.api.asked)
    error = portbook.call(tool, arguments)["error"]
    assert error["code"] == "INVALID_INPUT"
    (violation,) = error["details"]["violations"]
    assert violation["pointer"].startswith("/" + "/".join(place[:-1]))
    assert len(portbook.api.asked) == before


def test_every_other_name_is_sent(portbook: ServedDocument) -> None:
    assert portbook.call("query", {"more": {"tenants": 1, "id": 2}})["status"] == "success"
    assert dict(portbook.api.last.query) == {
        "tenant_id": "acme",
        "tenants": "1",
        "id": "2",
        "api_key": "k-operator-1",
    }
    assert portbook.call("cookies", {"more": {"session": "a"}, "theme": "b"})["status"] == "success"
    assert dict(portbook.api.last.cookies) == {"session": "a", "theme": "b", "session_id": "l-operator-1"}
    for tool in ("form", "parts"):
        assert portbook.call(tool, {"tenant_id": "a", "tenants": "b"})["status"] == "success"
        assert portbook.api.last.form == [("tenant_id", "a"), ("tenants", "b")]


def test_a_body_may_have_every_name_that_is_not_fixed(portbook: ServedDocument) -> None:
    for tool in ("fixed_form", "fixed_parts", "fixed_json"):
        assert portbook.call(tool, {"tenant_id": "a", "Actions": "b"})["status"] == "success"
        assert ("Action", "Get") in portbook.api.last.query


def test_null_in_a_list_or_an_object_is_left_out(portbook: ServedDocument) -> None:
    assert portbook.call("query", {"more": {"a": None, "b": 1}})["status"] == "success"
    assert [name for name, _ in portbook.api.last.query] == ["tenant_id", "b", "api_key"]
    for tool in ("form", "parts"):
        assert portbook.call(tool, {"list": ["a", None, "b"], "gone": None})["status"] == "success"
        assert portbook.api.last.form == [("list", "a"), ("list", "b")]
