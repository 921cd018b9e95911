"""Swagger 2.0 documents: the requests and schemas are those that they mean."""

from __future__ import annotations

import json
from typing import Any

import pytest

from portbook.apis.openapi.swagger import is_swagger, openapi_of
from support.openapi_samples import STRING, accepts, left_out, only, request_of


def swagger(path: str = "/it", method: str = "get", **members: Any) -> dict[str, Any]:
    names = ("definitions", "parameters_", "responses_")
    root = {key: members.pop(key) for key in names if key in members}
    operation = {"operationId": "it", "responses": {}, **members}
    shared = {key.removesuffix("_"): value for key, value in root.items()}
    return {"swagger": "2.0", "paths": {path: {method: operation}}, **shared}


def test_parameters_have_their_schemas_and_styles(write: Any) -> None:
    given = swagger(
        "/orders/{id}",
        parameters=[
            {"name": "id", "in": "path", "required": True, "type": "string"},
            {"name": "top", "in": "query", "type": "integer", "maximum": 5, "description": "How many."},
            {"name": "a", "in": "query", "type": "array", "items": STRING},
            {"name": "b", "in": "query", "type": "array", "items": STRING, "collectionFormat": "multi"},
            {"name": "c", "in": "query", "type": "array", "items": STRING, "collectionFormat": "pipes"},
            {"name": "X-D", "in": "header", "type": "array", "items": STRING, "collectionFormat": "csv"},
        ],
    )
    operation = only(write(given))
    assert operation.input_schema["properties"]["top"] == {
        "type": "integer",
        "maximum": 5,
        "description": "How many.",
    }
    lists = {name: ["1", "2"] for name in ("a", "b", "c", "X-D")}
    request = request_of(operation, {"id": "x", "top": 3, **lists})
    assert request.target == "/orders/x?top=3&a=1,2&b=1&b=2&c=1%7C2"
    assert dict(request.headers) == {"X-D": "1,2"}


ORDER = {"$ref": "#/definitions/Order"}


def test_a_body_is_sent_and_its_references_are_followed(write: Any) -> None:
    given = swagger(
        method="post",
        parameters=[{"name": "order", "in": "body", "required": True, "schema": ORDER}],
        responses={"200": {"description": "", "schema": ORDER}},
        definitions={"Order": {"type": "object", "properties": {"id": {**STRING, "x-nullable": True}}}},
    )
    operation = only(write(given))
    assert request_of(operation, {"id": "a"}).body == b'{"id":"a"}'
    assert accepts(operation.output_schema, {"id": "a"})
    assert accepts(operation.output_schema, {"id": None})
    assert not accepts(operation.output_schema, {"id": 5})


@pytest.mark.parametrize("is_shared", [False, True])
def test_fields_of_a_form_are_sent_as_a_form(write: Any, is_shared: bool) -> None:
    fields = [
        {"name": "name", "in": "formData", "type": "string", "required": True},
        {"name": "age", "in": "formData", "type": "integer"},
    ]
    if is_shared:
        references = [{"$ref": f"#/parameters/{field['name']}"} for field in fields]
        given = swagger(
            method="post", parameters=references, parameters_={field["name"]: field for field in fields}
        )
    else:
        given = swagger(method="post", parameters=fields)
    operation = only(write(given))
    assert operation.input_schema["required"] == ["name"]
    assert operation.request == "application/x-www-form-urlencoded"
    assert request_of(operation, {"name": "a b", "age": 5}).body == b"name=a+b&age=5"


@pytest.mark.parametrize("consumes", [[], ["application/x-www-form-urlencoded"], ["application/json"]])
def test_a_file_makes_a_form_multipart(write: Any, consumes: list[str]) -> None:
    file = {"name": "file", "in": "formData", "type": "file"}
    given = swagger(method="post", parameters=[file], consumes=consumes)
    assert only(write(given)).request == "multipart/form-data"


def test_a_list_that_cannot_be_written_as_it_says_is_left_out(write: Any) -> None:
    tabs = {"name": "a", "in": "query", "type": "array", "items": STRING, "collectionFormat": "tsv"}
    assert "the style tabDelimited" in left_out(write(swagger(parameters=[tabs]))).sentence


@pytest.mark.parametrize("place", ["query", "formData"])
@pytest.mark.parametrize("garbage", [{}, [], 5, ["csv"]])
def test_a_list_with_a_format_that_is_not_a_text_is_left_out(write: Any, place: str, garbage: Any) -> None:
    wrong = {"name": "a", "in": place, "type": "array", "items": STRING, "collectionFormat": garbage}
    given = swagger(method="post", parameters=[wrong])
    assert left_out(write(given)).sentence.endswith("the style of a parameter must be a text")


@pytest.mark.parametrize("garbage", [{"a": 1}, "x", 5, [5], [None]])
@pytest.mark.parametrize("is_shared", [False, True])
def test_parameters_that_are_no_list_of_objects_leave_the_operation_out(
    write: Any, is_shared: bool, garbage: Any
) -> None:
    given = swagger()
    (given["paths"]["/it"] if is_shared else given["paths"]["/it"]["get"])["parameters"] = garbage
    assert "parameter" in left_out(write(given)).sentence


def test_a_path_without_an_object_is_left_out(write: Any) -> None:
    assert left_out(write({"swagger": "2.0", "paths": {"/a": None}})).name == "a"


def test_shared_parameters_and_responses_are_followed(write: Any) -> None:
    given = swagger(
        parameters=[{"$ref": "#/parameters/Top"}],
        responses={"200": {"$ref": "#/responses/Orders"}},
        parameters_={"Top": {"name": "top", "in": "query", "type": "integer"}},
        responses_={"Orders": {"description": "", "schema": {"type": "array", "items": STRING}}},
    )
    operation = only(write(given))
    assert request_of(operation, {"top": 1}).target == "/it?top=1"
    assert operation.output_schema == {"type": "array", "items": STRING}


def test_the_body_of_a_path_belongs_to_each_of_its_operations(write: Any) -> None:
    given = swagger(method="post")
    given["paths"]["/it"]["parameters"] = [{"name": "b", "in": "body", "schema": STRING, "required": True}]
    assert request_of(only(write(given)), {"body": "x"}).body == b'"x"'


def test_a_reference_that_leads_nowhere_is_left_out(write: Any) -> None:
    given = swagger(responses={"200": {"description": "", "schema": {"$ref": "#/definitions/None"}}})
    assert left_out(write(given)).sentence.endswith("refers to a part that does not exist")


def test_hosts_credentials_and_the_rest_keep_their_meaning() -> None:
    found = openapi_of(
        {
            "swagger": "2.0",
            "info": {"title": "Shop"},
            "host": "shop.example",
            "basePath": "/v1",
            "schemes": ["http", "https"],
            "security": [{"key": []}],
            "securityDefinitions": {
                "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
                "basic": {"type": "basic"},
                "oauth": {
                    "type": "oauth2",
                    "flow": "accessCode",
                    "tokenUrl": "https://t",
                    "scopes": {"a": ""},
                },
            },
        }
    )
    assert found["servers"] == [{"url": "https://shop.example/v1"}, {"url": "http://shop.example/v1"}]
    assert (found["info"], found["security"]) == ({"title": "Shop"}, [{"key": []}])
    assert found["components"]["securitySchemes"] == {
        "key": {"type": "apiKey", "in": "header", "name": "X-Key"},
        "basic": {"type": "http", "scheme": "basic"},
        "oauth": {
            "type": "oauth2",
            "flows": {"authorizationCode": {"tokenUrl": "https://t", "scopes": {"a": ""}}},
        },
    }
    assert openapi_of({"basePath": "/v1"})["servers"] == [{"url": "/v1"}]


@pytest.mark.parametrize(("version", "expected"), [("2.0", True), (2.0, True), ("1.2", False), (None, False)])
def test_only_version_2_is_translated(version: Any, expected: bool) -> None:
    assert is_swagger({"swagger": version}) is expected
    assert json.dumps(openapi_of({"swagger": version}))


@pytest.mark.parametrize(
    "garbage", [5, "x", None, [], [5], {"a": 5}, {"a": [5]}, {"/x": {"get": {"parameters": [5]}}}]
)
@pytest.mark.parametrize(
    "key",
    ["paths", "parameters", "responses", "definitions", "schemes", "host", "consumes", "securityDefinitions"],
)
def test_a_document_that_is_broken_anywhere_stays_one(key: str, garbage: Any) -> None:
    assert openapi_of({"swagger": "2.0", "host": "shop.example", key: garbage})["openapi"] == "3.0.3"
