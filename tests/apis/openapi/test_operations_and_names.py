"""OpenAPI documents into operations: parameters, bodies, references, results."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portbook.apis.arguments_put_into_request import Composer
from portbook.apis.left_out_operations import LeftOutOperation
from portbook.apis.openapi.document_files import Documents
from portbook.apis.openapi.operations_and_names import ImportedOperation, read_openapi
from portbook.apis.openapi.parameters_and_path_keys import ArgumentRules
from portbook.tools.http_operation import HttpOperation, Parameter, ParameterPlace, Style
from support.openapi_samples import STRING, accepts, document, left_out, only, parameter


def skipped(found: list[ImportedOperation | LeftOutOperation]) -> str:
    return left_out(found).sentence


def composed(operation: ImportedOperation, arguments: dict[str, Any]) -> tuple[str, Any, Any]:
    """Send `arguments` as far as bytes: target, headers, body."""
    made = HttpOperation(
        "g",
        "https://a.example",
        operation.method,
        operation.path,
        parameters=operation.parameters,
        body=operation.body,
        has_body=operation.has_body,
    )
    request = Composer(made).compose(arguments)
    return request.target, dict(request.headers), request.body


# --- words


@pytest.mark.parametrize(
    ("words", "description"),
    [
        ({}, "GET /it"),
        ({"summary": "Short."}, "Short."),
        ({"description": " Long. "}, "Long."),
        ({"summary": "Short.", "description": "Long."}, "Short.\n\nLong."),
    ],
)
def test_summary_and_description_describe_a_tool(write: Any, words: dict[str, str], description: str) -> None:
    assert only(write(document(**words))).description == description


@pytest.mark.covers("002.tools.openapi-parameters")
def test_every_kind_of_parameter_goes_to_its_place(write: Any) -> None:
    given = document(
        path="/orders/{order-id}",
        method="post",
        parameters=[
            parameter("order-id", "path"),
            parameter("$top", "query", schema={"type": "integer"}),
            parameter("X-Tenant", "header", required=True, description="Whose."),
            parameter("Authorization", "header"),
            parameter("Accept", "header"),
        ],
        requestBody={
            "required": True,
            "content": {
                "application/json": {
                    "schema": {
                        "type": "object",
                        "properties": {"cents": {"type": "integer"}},
                        "required": ["cents"],
                    }
                }
            },
        },
    )
    operation = only(write(given))
    assert operation.parameters == (
        Parameter("order-id", ParameterPlace.PATH, "order-id", Style.COMMA),
        Parameter("top", ParameterPlace.QUERY, "$top", Style.SPREAD),
        Parameter("X-Tenant", ParameterPlace.HEADER, "X-Tenant", Style.COMMA),
    )
    assert operation.input_schema == {
        "type": "object",
        "properties": {
            "order-id": STRING,
            "top": {"type": "integer"},
            "X-Tenant": {"type": "string", "description": "Whose."},
            "cents": {"type": "integer"},
        },
        "required": ["order-id", "X-Tenant", "cents"],
    }
    arguments = {"order-id": "A/1", "top": 5, "X-Tenant": "t", "cents": 100}
    assert composed(operation, arguments) == (
        "/orders/A%2F1?%24top=5",
        {"X-Tenant": "t"},
        b'{"cents":100}',
    )


STYLES = [
    ({}, [1, 2], "x=1&x=2"),
    ({"explode": False}, [1, 2], "x=1,2"),
    ({"style": "form", "explode": True}, {"a": 1, "b": 2}, "a=1&b=2"),
    ({"style": "form", "explode": False}, {"a": 1, "b": 2}, "x=a,1,b,2"),
    ({"style": "spaceDelimited", "explode": False}, [1, 2], "x=1%202"),
    ({"style": "pipeDelimited", "explode": False}, [1, 2], "x=1%7C2"),
    ({"style": "spaceDelimited", "explode": True}, [1, 2], "x=1&x=2"),
    ({"style": "deepObject", "explode": True}, {"a": 1, "b": 2}, "x%5Ba%5D=1&x%5Bb%5D=2"),
    ({"schema": None, "content": {"application/json": {"schema": {}}}}, {"a": 1}, "x=%7B%22a%22%3A1%7D"),
]


@pytest.mark.parametrize(("members", "value", "query"), STYLES)
def test_a_query_parameter_is_written_in_its_style(
    write: Any, members: dict[str, Any], value: Any, query: str
) -> None:
    operation = only(write(document(parameters=[parameter("x", "query", **{"schema": {}, **members})])))
    assert composed(operation, {"x": value})[0] == f"/it?{query}"


def test_an_operations_parameter_stands_for_that_of_its_path(write: Any) -> None:
    given = document(parameters=[parameter("x", "query", schema={"type": "integer"})])
    given["paths"]["/it"]["parameters"] = [parameter("x", "query"), parameter("y", "query")]
    assert only(write(given)).input_schema["properties"] == {"x": {"type": "integer"}, "y": STRING}


def test_two_parameters_of_one_name_have_arguments_of_their_own(write: Any) -> None:
    operation = only(
        write(document(path="/{id}", parameters=[parameter("id", "path"), parameter("id", "query")]))
    )
    assert composed(operation, {"id": "a", "id_query": "b"})[0] == "/a?id=b"


def test_many_parameters_that_are_written_alike_have_arguments_of_their_own(write: Any) -> None:
    names = ["f[a", "f a", "f(a", "f)a", "f_a_query"]
    operation = only(write(document(parameters=[parameter(name, "query") for name in names])))
    arguments = [item.argument for item in operation.parameters]
    assert arguments == ["f_a", "f_a_query", "f_a_query_2", "f_a_query_3", "f_a_query_query"]
    assert list(operation.input_schema["properties"]) == arguments
    assert [item.name for item in operation.parameters] == names


def test_a_tool_takes_nothing_that_its_operation_does_not_know(write: Any) -> None:
    operation = only(write(document(parameters=[parameter("x", "query")])))
    assert accepts(operation.input_schema, {"x": "a"})
    assert not accepts(operation.input_schema, {"y": "a"})


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (
            document(parameters=[parameter("a b", "cookie")]),
            "a cookie has a name that is not valid in a header",
        ),
        (
            document(path="/{x}", parameters=[parameter("x", "path", style="form")]),
            "a parameter has the style form, which is not supported",
        ),
        (
            document(parameters=[parameter("x", "query", content={"image/png": {}})]),
            "a parameter is image/png, and only JSON and text are supported",
        ),
        (
            document(method="post", requestBody={"content": {"multipart/related": {}}}),
            "no content type of its body can be sent",
        ),
        (
            document(responses={"200": {"content": {"text/a b": {}}}}),
            "it names a content type that is not valid in a header",
        ),
        (
            document(method="post", requestBody={"content": {"a\r\nb/x+json": {}}}),
            "no content type of its body can be sent",
        ),
        (
            document(parameters=[parameter("x", "query", content={"a\x1b[2J": {}})]),
            "a parameter is a\\x1b[2J, and only JSON and text are supported",
        ),
        (
            document(parameters=[parameter("x", "query", style="a\nb")]),
            "a parameter has the style a\\nb, which is not supported",
        ),
        (document(path="/a/../b"), "its path must have no dot segments"),
        (
            document(path="orders"),
            "its path must start with / and be printable ASCII, with names in braces: /orders/{id}",
        ),
        (
            document(path="/o?x=1 HTTP/1.1\r\nX-A: 1"),
            "its path must start with / and be printable ASCII, with names in braces: /orders/{id}",
        ),
        (
            document(path="/o?x={x},{x}", parameters=[parameter("x", "path")]),
            "its path must name each argument once, and none after a question mark",
        ),
    ],
)
def test_what_cannot_be_sent_is_told(write: Any, given: dict[str, Any], reason: str) -> None:
    assert skipped(write(given)) == reason


# --- bodies


def body(schema: Any, **members: Any) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}, **members}


def test_a_body_that_is_no_plain_object_is_one_argument(write: Any) -> None:
    for schema in (
        {"type": "array", "items": STRING},
        {"type": "object", "additionalProperties": STRING},
        {"type": "object", "properties": {"a": STRING}, "minProperties": 1},
        {"oneOf": [STRING, {"type": "integer"}]},
        {"allOf": [{"type": "object", "properties": {"a": STRING}}]},
    ):
        operation = only(write(document(method="post", requestBody=body(schema, required=True))))
        assert operation.body == "body"
        assert operation.input_schema == {
            "type": "object",
            "properties": {"body": schema},
            "required": ["body"],
            "additionalProperties": False,
        }
        assert composed(operation, {"body": ["a"]})[2] == b'["a"]'


def test_a_body_whose_member_is_called_like_a_parameter_is_one_argument(write: Any) -> None:
    schema = {"type": "object", "properties": {"id": STRING}}
    operation = only(
        write(document(method="put", parameters=[parameter("id", "query")], requestBody=body(schema)))
    )
    assert composed(operation, {"id": "a", "body": {"id": "b"}}) == ("/it?id=a", {}, b'{"id":"b"}')


@pytest.mark.parametrize(("additional", "is_open"), [(True, True), (False, False), (None, True)])
def test_a_plain_body_is_as_open_as_its_schema(write: Any, additional: bool | None, is_open: bool) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": STRING}}
    if additional is not None:
        schema["additionalProperties"] = additional
    operation = only(write(document(method="post", requestBody=body(schema))))
    assert accepts(operation.input_schema, {"a": "x", "more": 1}) is is_open


def test_a_body_that_is_not_there_is_not_sent(write: Any) -> None:
    operation = only(write(document(method="post")))
    assert composed(operation, {})[2] == b""


def test_a_vendors_json_is_json(write: Any) -> None:
    request = {"content": {"text/xml": {}, "application/vnd.x+json; v=1": {"schema": {"type": "array"}}}}
    operation = only(write(document(method="post", requestBody=request)))
    assert (operation.body, operation.request) == ("body", "application/vnd.x+json")


def test_what_only_answers_have_is_no_argument_and_the_other_way_round(write: Any) -> None:
    schema = {
        "type": "object",
        "required": ["id", "name", "pin"],
        "properties": {
            "id": {"type": "string", "readOnly": True},
            "name": STRING,
            "pin": {"$ref": "#/components/schemas/Pin"},
        },
    }
    given = document(
        method="post",
        requestBody=body(schema, required=True),
        responses={"200": {"content": {"application/json": {"schema": schema}}}},
        components={"schemas": {"Pin": {"type": "string", "writeOnly": True}}},
    )
    operation = only(write(given))
    assert accepts(operation.input_schema, {"name": "a", "pin": "1"})
    assert not accepts(operation.input_schema, {"name": "a"})
    assert operation.input_schema["required"] == ["name", "pin"]
    assert accepts(operation.output_schema, {"id": "1", "name": "a"})
    assert not accepts(operation.output_schema, {"name": "a"})


# --- results


def test_head_has_no_result(write: Any) -> None:
    given = document(method="head", responses={"200": {"content": {"application/json": {"schema": STRING}}}})
    assert only(write(given)).output_schema == {"type": "null"}


def test_a_header_that_is_ours_is_no_argument(tmp_path: Path) -> None:
    given = document(parameters=[parameter("X-Key", "header", required=True), parameter("X-Other", "header")])
    (tmp_path / "api.json").write_text(json.dumps(given))
    operation = only(
        read_openapi(Documents(tmp_path / "api.json"), rules=ArgumentRules(lambda name: name != "X-Key"))
    )
    assert operation.input_schema["properties"] == {"X-Other": STRING}
    assert "required" not in operation.input_schema
