"""OpenAPI documents into operations: parameters, bodies, references, results."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from portbook.apis.openapi import ImportedOperation, Skipped, read_openapi
from portbook.apis.openapi_documents import BadOpenAPI, Documents
from portbook.apis.request_composer import Composer
from portbook.schema.cache import validator_for
from portbook.tools.operation import HttpOperation, Parameter, ParameterPlace, Style

STRING: dict[str, Any] = {"type": "string"}


@pytest.fixture
def write(tmp_path: Path) -> Any:
    """Write files, and read the operations of the first one."""

    def read(*documents: dict[str, Any] | str, **others: Any) -> list[ImportedOperation | Skipped]:
        for name, document in {"api.json": documents[0], **others}.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(document if isinstance(document, str) else json.dumps(document))
        return read_openapi(Documents(tmp_path / "api.json"))

    return read


def document(
    version: str = "3.0.3", path: str = "/it", method: str = "get", **operation: Any
) -> dict[str, Any]:
    components = operation.pop("components", {})
    operation = {"operationId": "it", "responses": {}, **operation}
    return {"openapi": version, "paths": {path: {method: operation}}, "components": components}


def only(found: list[ImportedOperation | Skipped]) -> ImportedOperation:
    assert len(found) == 1
    assert isinstance(found[0], ImportedOperation), found[0]
    return found[0]


def skipped(found: list[ImportedOperation | Skipped]) -> str:
    assert len(found) == 1
    assert isinstance(found[0], Skipped)
    return found[0].reason


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


def accepts(schema: Any, value: Any) -> bool:
    return validator_for(schema).is_valid(value)


# --- names and words


@pytest.mark.parametrize(
    ("operation_id", "name"),
    [
        ("getOrder", "get_order"),
        ("GetOrderByID", "get_order_by_id"),
        ("listHTTPRoutes", "list_http_routes"),
        ("orders/get-one", "orders_get_one"),
        ("orders.get", "orders.get"),
        ("__x__", "x"),
        ("Über", "ber"),
        ("é", "operation"),
        (None, "get_it"),
    ],
)
def test_an_operation_id_becomes_a_name(write: Any, operation_id: str | None, name: str) -> None:
    given = document()
    if operation_id is None:
        del given["paths"]["/it"]["get"]["operationId"]
    else:
        given["paths"]["/it"]["get"]["operationId"] = operation_id
    assert only(write(given)).name == name


def test_a_path_is_a_name_where_there_is_no_operation_id(write: Any) -> None:
    parameters = [{"name": "id", "in": "path", "required": True, "schema": STRING}]
    given = document(path="/orders/{id}/lines", method="post", parameters=parameters)
    del given["paths"]["/orders/{id}/lines"]["post"]["operationId"]
    assert only(write(given)).name == "post_orders_id_lines"


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


def test_operations_come_in_the_documents_order(write: Any) -> None:
    given = document()
    for path in ("/b", "/a"):
        given["paths"][path] = {verb: {"responses": {}} for verb in ("delete", "get", "x-note", "trace")}
    assert [operation.name for operation in write(given)] == ["it", "get_b", "delete_b", "get_a", "delete_a"]


# --- parameters


def parameter(name: str, place: str, **members: Any) -> dict[str, Any]:
    return {
        "name": name,
        "in": place,
        "schema": STRING,
        **({"required": True} if place == "path" else {}),
        **members,
    }


@pytest.mark.covers("002.tools.openapi-parameters")
def test_every_kind_of_parameter_goes_to_its_place(write: Any) -> None:
    given = document(
        path="/orders/{order-id}",
        method="post",
        parameters=[
            parameter("order-id", "path"),
            parameter("$top", "query", schema={"type": "integer"}),
            parameter("X-Tenant", "header", required=True, description="Whose."),
            parameter("session", "cookie"),
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
            document(parameters=[parameter("s", "cookie", required=True)]),
            "it needs a cookie, and cookies are not supported",
        ),
        (
            document(path="/{x}", parameters=[parameter("x", "path", style="matrix")]),
            "a parameter has the style matrix, which is not supported",
        ),
        (
            document(parameters=[parameter("x", "query", content={"text/xml": {}})]),
            "a parameter is text/xml, and only JSON is supported",
        ),
        (
            document(method="post", requestBody={"required": True, "content": {"multipart/form-data": {}}}),
            "its body is not JSON",
        ),
        (
            document(
                responses={
                    "200": {"content": {"application/json": {}}},
                    "201": {"content": {"text/plain": {}}},
                }
            ),
            "its responses have several content types",
        ),
        (
            document(responses={"200": {"content": {"text/*": {}}}}),
            "it names a content type that is not valid in a header",
        ),
        (
            document(method="post", requestBody={"content": {"a\r\nb/x+json": {}}}),
            "it names a content type that is not valid in a header",
        ),
        (
            document(parameters=[parameter("x", "query", content={"a\x1b[2J": {}})]),
            "a parameter is a\\x1b[2J, and only JSON is supported",
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
            document(path="/o?x={x}", parameters=[parameter("x", "path")]),
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


def test_an_optional_body_that_is_not_json_is_left_out(write: Any) -> None:
    given = document(method="post", requestBody={"content": {"multipart/form-data": {}}})
    assert not only(write(given)).has_body


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

RESPONSES: list[tuple[str, dict[str, Any], Any, str]] = [
    ("none", {}, True, "application/json"),
    ("errors only", {"404": {"content": {"application/json": {"schema": STRING}}}}, True, "application/json"),
    ("one", {"200": {"content": {"application/json": {"schema": STRING}}}}, STRING, "application/json"),
    ("a range", {"2XX": {"content": {"application/json": {"schema": STRING}}}}, STRING, "application/json"),
    ("no content", {"204": {"description": "x"}}, {"type": "null"}, "application/json"),
    (
        "two",
        {"200": {"content": {"application/json": {"schema": STRING}}}, "204": {"description": "x"}},
        {"anyOf": [STRING, {"type": "null"}]},
        "application/json",
    ),
    (
        "the same twice",
        {status: {"content": {"application/json": {"schema": STRING}}} for status in ("200", "201")},
        STRING,
        "application/json",
    ),
    ("no schema", {"200": {"content": {"application/json": {}}}}, True, "application/json"),
    ("text", {"200": {"content": {"text/csv": {"schema": STRING}}}}, STRING, "text/csv"),
    ("anything", {"200": {"content": {"*/*": {"schema": STRING}}}}, STRING, "application/json"),
    (
        "JSON before text",
        {"200": {"content": {"text/csv": {}, "application/hal+json": {"schema": {"type": "array"}}}}},
        {"type": "array"},
        "application/hal+json",
    ),
]


@pytest.mark.parametrize(
    ("what", "responses", "schema", "response"), RESPONSES, ids=[row[0] for row in RESPONSES]
)
def test_the_responses_of_2xx_are_the_contract_of_the_result(
    write: Any, what: str, responses: dict[str, Any], schema: Any, response: str
) -> None:
    operation = only(write(document(responses=responses)))
    assert (operation.output_schema, operation.response) == (schema, response)


def test_head_has_no_result(write: Any) -> None:
    given = document(method="head", responses={"200": {"content": {"application/json": {"schema": STRING}}}})
    assert only(write(given)).output_schema == {"type": "null"}


# --- references


@pytest.mark.covers("002.tools.openapi-references")
def test_references_are_followed_wherever_they_may_stand(write: Any) -> None:
    given = document(
        parameters=[{"$ref": "#/components/parameters/Top"}],
        responses={"200": {"$ref": "#/components/responses/Orders"}},
        components={
            "parameters": {"Top": parameter("top", "query", schema={"$ref": "#/components/schemas/Count"})},
            "responses": {
                "Orders": {
                    "content": {
                        "application/json": {
                            "schema": {"type": "array", "items": {"$ref": "#/components/schemas/a~1b"}}
                        }
                    }
                }
            },
            "schemas": {"Count": {"type": "integer"}, "a/b": {"$ref": "#/components/schemas/Count"}},
        },
    )
    operation = only(write(given))
    assert accepts(operation.input_schema, {"top": 5})
    assert not accepts(operation.input_schema, {"top": "5"})
    assert accepts(operation.output_schema, [1, 2])
    assert not accepts(operation.output_schema, ["1"])


@pytest.mark.parametrize("version", ["3.0.3", "3.1.0"])
def test_a_schema_that_refers_to_itself_stays_finite(write: Any, version: str) -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}, "value": STRING}}
    given = document(
        version,
        responses={
            "200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}}
        },
        components={"schemas": {"Node": node}},
    )
    schema = only(write(given)).output_schema
    assert accepts(schema, {"next": {"next": {"value": "a"}}})
    assert not accepts(schema, {"next": {"next": {"value": 1}}})


def test_a_long_chain_of_references_is_no_trouble(write: Any) -> None:
    schemas: dict[str, Any] = {
        f"S{n}": {"type": "object", "properties": {"next": {"$ref": f"#/components/schemas/S{n + 1}"}}}
        for n in range(3000)
    }
    schemas["S3000"] = STRING
    given = document(
        responses={"200": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/S0"}}}}},
        components={"schemas": schemas},
    )
    schema = only(write(given)).output_schema
    assert isinstance(schema, dict)
    assert len(schema["$defs"]) == 3001


def test_references_lead_to_other_files_of_the_folder(write: Any) -> None:
    ref = {"$ref": "schemas/order.json#/definitions/Order"}
    order = {
        "type": "object",
        "properties": {"id": {"$ref": "id.json"}, "total": {"$ref": "#/definitions/Money"}},
    }
    given = document(responses={"200": {"content": {"application/json": {"schema": ref}}}})
    schema = only(
        write(
            given,
            **{
                "schemas/order.json": {"definitions": {"Order": order, "Money": {"type": "integer"}}},
                "schemas/id.json": STRING,
            },
        )
    ).output_schema
    assert accepts(schema, {"id": "a", "total": 1})
    assert not accepts(schema, {"id": 1})
    assert not accepts(schema, {"total": "1"})


def test_two_schemas_of_one_name_stay_apart(write: Any) -> None:
    refs = [{"$ref": "#/components/schemas/It"}, {"$ref": "other.json#/It"}]
    given = document(
        responses={
            "200": {"content": {"application/json": {"schema": {"type": "array", "prefixItems": refs}}}}
        },
        components={"schemas": {"It": STRING}},
    )
    schema = only(write(given, **{"other.json": {"It": {"type": "integer"}}})).output_schema
    assert accepts(schema, ["a", 1])
    assert not accepts(schema, [1, "a"])


@pytest.mark.parametrize(
    "reference",
    [
        "https://evil.test/x.json", "//evil.test/x.json", "file:///etc/passwd", "../secret.json",
        "/etc/hostname", "none.json", "#/components/nothing", "#nothing", "other.json#/It/0",
        "a/../../secret.json", "%2e%2e/secret.json", "\x00.json", "link.json",
    ],
)  # fmt: skip
def test_a_reference_that_leads_out_or_nowhere_is_refused(write: Any, tmp_path: Path, reference: str) -> None:
    secret = tmp_path.parent / "secret.json"
    secret.write_text("{}")
    (tmp_path / "link.json").symlink_to(secret)
    given = document(responses={"200": {"content": {"application/json": {"schema": {"$ref": reference}}}}})
    with pytest.raises(BadOpenAPI):
        write(given, **{"other.json": {"It": []}})


@pytest.mark.parametrize("place", ["parameters", "responses"])
def test_references_in_a_circle_are_refused(write: Any, place: str) -> None:
    loop = {"$ref": f"#/components/{place}/A"}
    given = document(
        **{place: [loop] if place == "parameters" else {"200": loop}},
        components={
            place: {"A": {"$ref": f"#/components/{place}/B"}, "B": {"$ref": f"#/components/{place}/A"}}
        },
    )
    with pytest.raises(BadOpenAPI, match="refers to itself"):
        write(given)


# --- what 3.0 writes in its own way


def converted(write: Any, version: str, schema: Any) -> Any:
    given = document(version, responses={"200": {"content": {"application/json": {"schema": schema}}}})
    return only(write(given)).output_schema


OLD: list[tuple[str, Any, Any]] = [
    ("nullable", {"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    ("not nullable", {"type": "string", "nullable": False}, STRING),
    (
        "a nullable enum",
        {"type": "string", "enum": ["a"], "nullable": True},
        {"type": ["string", "null"], "enum": ["a", None]},
    ),
    (
        "nullable without a type",
        {"allOf": [STRING], "nullable": True},
        {"anyOf": [{"allOf": [STRING]}, {"type": "null"}]},
    ),
    (
        "an exclusive minimum",
        {"type": "integer", "minimum": 1, "exclusiveMinimum": True},
        {"type": "integer", "exclusiveMinimum": 1},
    ),
    (
        "an inclusive maximum",
        {"type": "integer", "maximum": 9, "exclusiveMaximum": False},
        {"type": "integer", "maximum": 9},
    ),
    ("nested", {"type": "array", "items": {"type": "string", "nullable": True}},
     {"type": "array", "items": {"type": ["string", "null"]}}),
    ("documentation", {"type": "string", "example": "a", "xml": {}, "x-a": 1, "externalDocs": {}}, STRING),
    ("a property called nullable", {"properties": {"nullable": {"type": "boolean", "nullable": True}}},
     {"properties": {"nullable": {"type": ["boolean", "null"]}}}),
    ("a property called example", {"properties": {"example": STRING}}, {"properties": {"example": STRING}}),
    ("data", {"enum": [{"nullable": True}], "default": {"example": 1}},
     {"enum": [{"nullable": True}], "default": {"example": 1}}),
]  # fmt: skip


@pytest.mark.parametrize(("what", "schema", "expected"), OLD, ids=[row[0] for row in OLD])
def test_schemas_of_3_0_are_rewritten(write: Any, what: str, schema: Any, expected: Any) -> None:
    assert converted(write, "3.0.1", schema) == expected


def test_schemas_of_3_1_are_left_as_they_are(write: Any) -> None:
    schema = {"type": ["string", "null"], "exclusiveMinimum": 5, "nullable": True}
    assert converted(write, "3.1.0", schema) == {"type": ["string", "null"], "exclusiveMinimum": 5}


def test_what_stands_beside_a_reference_counts_from_3_1_on(write: Any) -> None:
    components = {"schemas": {"S": STRING}}
    schema = {"$ref": "#/components/schemas/S", "minLength": 3}
    for version, verdict in (("3.0.3", True), ("3.1.0", False)):
        given = document(
            version,
            responses={"200": {"content": {"application/json": {"schema": schema}}}},
            components=components,
        )
        assert accepts(only(write(given)).output_schema, "a") is verdict


# --- documents that are none


@pytest.mark.parametrize(
    "given",
    [
        "", "nonsense", "[]", "{}", '{"openapi":"2.0"}', '{"openapi":"3.2.0"}', '{"openapi":3}',
        '{"swagger":"2.0"}', '{"openapi":"3.0.0","openapi":"3.0.0"}',
        json.dumps(document(parameters=[{"in": "query"}])),
        json.dumps(document(parameters=[parameter("x", "nowhere")])),
        json.dumps(document(parameters=[parameter("x", "path")])),
        json.dumps(document(path="/{id}")),
        json.dumps(document(parameters=[parameter("x", "query", schema=5)])),
    ],
)  # fmt: skip
def test_a_document_that_is_not_openapi_is_refused(write: Any, given: str) -> None:
    with pytest.raises(BadOpenAPI, match=r"^api\.json"):
        write(given)


def test_a_document_without_paths_has_no_operations(write: Any) -> None:
    assert write('{"openapi":"3.1.0"}') == []


YAML = """
openapi: 3.0.3
paths:
  /orders:
    get:
      operationId: listOrders
      parameters:
        - {name: since, in: query, schema: &date {type: string, format: date, default: 2024-01-01}}
        - {name: until, in: query, schema: *date}
      responses:
        200:
          content:
            application/json:
              schema: {type: array}
"""


def test_yaml_is_read_where_a_parser_is_installed(tmp_path: Path) -> None:
    pytest.importorskip("yaml")
    (tmp_path / "api.yaml").write_text(YAML)
    operation = only(read_openapi(Documents(tmp_path / "api.yaml")))
    date = {"type": "string", "format": "date", "default": "2024-01-01"}
    assert operation.input_schema["properties"] == {"since": date, "until": date}
    assert operation.output_schema == {"type": "array"}


def test_yaml_without_a_parser_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    (tmp_path / "api.yaml").write_text(YAML)
    with pytest.raises(BadOpenAPI, match="PyYAML"):
        read_openapi(Documents(tmp_path / "api.yaml"))


def bomb() -> str:
    """A few lines of YAML that mean 9^9 values."""
    return "a: &a0 [x]\n" + "".join(f"b{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 10))


@pytest.mark.parametrize(
    "text",
    ["a: [", bomb(), "!!python/object/apply:os.system ['true']"],
    ids=["broken", "a bomb", "an object"],
)
def test_yaml_that_is_no_plain_data_is_refused(tmp_path: Path, text: str) -> None:
    pytest.importorskip("yaml")
    (tmp_path / "api.yaml").write_text(text)
    with pytest.raises(BadOpenAPI, match="not YAML"):
        read_openapi(Documents(tmp_path / "api.yaml"))


def test_what_is_not_wanted_is_not_even_read(tmp_path: Path) -> None:
    given = document()
    given["paths"]["/broken"] = {"get": {"operationId": "broken", "parameters": [{"$ref": "#/nowhere"}]}}
    (tmp_path / "api.json").write_text(json.dumps(given))
    assert only(read_openapi(Documents(tmp_path / "api.json"), lambda name: name != "broken")).name == "it"


def test_a_header_that_is_ours_is_no_argument(tmp_path: Path) -> None:
    given = document(parameters=[parameter("X-Key", "header", required=True), parameter("X-Other", "header")])
    (tmp_path / "api.json").write_text(json.dumps(given))
    operation = only(
        read_openapi(Documents(tmp_path / "api.json"), is_argument_header=lambda name: name != "X-Key")
    )
    assert operation.input_schema["properties"] == {"X-Other": STRING}
    assert "required" not in operation.input_schema
