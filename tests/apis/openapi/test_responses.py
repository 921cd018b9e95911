"""Responses of OpenAPI documents: the contract of the result, and the content types that it may have."""

from __future__ import annotations

from typing import Any

import pytest

from support.openapi_samples import STRING, accepts, document, left_out, only

JSON = "application/json"
ANY = ("*/*",)
PDF = "application/pdf"


def content(media: str, schema: Any = None) -> dict[str, Any]:
    return {"content": {media: {} if schema is None else {"schema": schema}}}


RESPONSES: list[tuple[str, dict[str, Any], Any, str, tuple[str, ...]]] = [
    ("none", {}, True, JSON, ANY),
    ("errors only", {"404": content(JSON, STRING)}, True, JSON, ANY),
    ("one", {"200": content(JSON, STRING)}, STRING, JSON, ()),
    ("a range", {"2XX": content(JSON, STRING)}, STRING, JSON, ()),
    ("only default", {"default": content(JSON, STRING)}, STRING, JSON, ()),
    ("default is for errors", {"200": content(JSON, STRING), "default": content(JSON)}, STRING, JSON, ()),
    ("204", {"204": {"description": "x"}}, True, JSON, ANY),
    ("without content", {"200": {"description": "x"}}, True, JSON, ANY),
    ("without content or a body", {"202": {}, "204": {}}, True, JSON, ANY),
    ("two", {"200": content(JSON, STRING), "204": {}}, {"anyOf": [STRING, {"type": "null"}]}, JSON, ()),
    (
        "with and without content",
        {"200": content(JSON, STRING), "201": {}},
        True,
        JSON,
        ANY,
    ),
    ("the same twice", {status: content(JSON, STRING) for status in ("200", "201")}, STRING, JSON, ()),
    ("no schema", {"200": content(JSON)}, True, JSON, ()),
    ("text", {"200": content("text/csv", STRING)}, STRING, "text/csv", ()),
    (
        "XML of an object",
        {"200": content("application/xml", {"type": "object"})},
        STRING,
        "application/xml",
        (),
    ),
    ("any text", {"200": content("text/*")}, STRING, "text/*", ()),
    ("anything", {"200": content("*/*", STRING)}, STRING, JSON, ANY),
    ("binary data", {"200": content(PDF, {"type": "string", "format": "binary"})}, True, PDF, ()),
    ("any picture", {"200": content("image/*")}, True, "image/*", ()),
    (
        "JSON before text",
        {"200": {"content": {"text/csv": {}, "application/hal+json": {"schema": {"type": "array"}}}}},
        {"anyOf": [{"type": "array"}, STRING]},
        "application/hal+json",
        ("text/csv",),
    ),
    (
        "JSON in another notation",
        {
            "200": {
                "content": {each: {"schema": {"type": "array"}} for each in ("text/plain", "text/xml", JSON)}
            }
        },
        {"type": "array"},
        JSON,
        (),
    ),
    (
        "text before binary data",
        {"200": {"content": {PDF: {}, "text/html": {}, "not a type": {}}}},
        STRING,
        "text/html",
        (),
    ),
    (
        "JSON and text",
        {"200": content("text/plain"), "201": content(JSON, {"type": "array"})},
        {"anyOf": [STRING, {"type": "array"}]},
        JSON,
        ("text/plain",),
    ),
]


@pytest.mark.parametrize(
    ("what", "responses", "schema", "wanted", "others"), RESPONSES, ids=[row[0] for row in RESPONSES]
)
def test_the_responses_of_success_are_the_contract_of_the_result(
    write: Any, what: str, responses: dict[str, Any], schema: Any, wanted: str, others: tuple[str, ...]
) -> None:
    operation = only(write(document(responses=responses)))
    assert (operation.output_schema, operation.response) == (schema, wanted)
    assert operation.other_responses == others


@pytest.mark.parametrize(
    ("responses", "by_status"),
    [
        ({"200": content(JSON, STRING)}, ()),
        ({"200": content(JSON, STRING), "201": content(JSON, STRING)}, ()),
        (
            {"200": content(JSON, STRING), "201": content(JSON, {"type": "array"})},
            (("200", STRING), ("201", {"type": "array"})),
        ),
        ({"201": content(JSON, STRING), "202": {}}, (("201", STRING), ("202", True))),
        ({"2XX": content(JSON, STRING), "204": {}}, (("2XX", STRING), ("204", {"type": "null"}))),
        ({"200": content(PDF), "202": content("image/png")}, ()),
    ],
)
def test_responses_that_differ_have_schemas_of_their_own(
    write: Any, responses: dict[str, Any], by_status: tuple[Any, ...]
) -> None:
    assert only(write(document(responses=responses))).outputs_by_status == by_status


def test_one_and_true_are_not_the_same_schema(write: Any) -> None:
    responses = {"200": content(JSON, {"const": 1}), "201": content(JSON, {"const": True})}
    operation = only(write(document(version="3.1.0", responses=responses)))
    assert [status for status, _ in operation.outputs_by_status] == ["200", "201"]
    assert accepts(operation.output_schema, 1)
    assert accepts(operation.output_schema, True)


def test_binary_data_beside_json_is_an_object(write: Any) -> None:
    responses = {"200": content(PDF), "202": content(JSON, {"type": "array"})}
    operation = only(write(document(responses=responses)))
    assert (operation.response, operation.other_responses) == (JSON, (PDF,))
    assert accepts(operation.output_schema, {"content_type": PDF, "base64": "AA=="})
    assert accepts(operation.output_schema, [])
    assert not accepts(operation.output_schema, {"base64": "AA=="})


@pytest.mark.parametrize("media", ["text/a b", "x\r\nY: 1/json", "*/json"])
def test_a_response_of_no_valid_type_is_not_served(write: Any, media: str) -> None:
    reason = left_out(write(document(responses={"200": content(media)}))).sentence
    assert reason == "it names a content type that is not valid in a header"
