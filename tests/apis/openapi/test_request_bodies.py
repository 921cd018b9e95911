"""Request bodies of OpenAPI documents: which content type is sent, and which arguments it has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portbook.apis.openapi.document_files import Documents
from portbook.apis.openapi.operations_and_names import ImportedOperation, read_openapi
from portbook.apis.openapi.parameters_and_path_keys import ArgumentRules
from portbook.errors import Refused
from support.openapi_samples import STRING, accepts, document, only, request_of

BINARY = {"type": "string", "format": "binary"}


def posting(content: dict[str, Any], **members: Any) -> dict[str, Any]:
    return document(method="post", requestBody={"content": content, **members})


def form(*, media: str = "application/x-www-form-urlencoded", encoding: Any = None, **members: Any) -> Any:
    schema = {"type": "object", "properties": members}
    return posting({media: {"schema": schema, "encoding": encoding or {}}})


def body_of(operation: ImportedOperation, arguments: dict[str, Any]) -> tuple[bytes | None, str]:
    request = request_of(operation, arguments)
    return request.body, request.content_type


# --- the order of content types

OFFERS = [
    (["text/plain", "application/json"], "application/json"),
    (["application/vnd.x+json", "application/json"], "application/json"),
    (["*/*", "application/vnd.x+json"], "application/vnd.x+json"),
    (["*/*"], "application/json"),
    (["application/json; charset=utf-8"], "application/json"),
    (["multipart/form-data", "application/x-www-form-urlencoded"], "application/x-www-form-urlencoded"),
    (["text/plain", "multipart/form-data"], "multipart/form-data"),
    (["application/xml", "text/plain"], "text/plain"),
    (["application/octet-stream", "application/xml"], "application/xml"),
    (["image/png", "application/octet-stream"], "application/octet-stream"),
    (["image/*"], "application/octet-stream"),
    (["text/*"], "text/plain"),
    (["multipart/related", "no type", "image/png"], "image/png"),
]


@pytest.mark.parametrize(("offered", "sent"), OFFERS)
def test_the_first_content_type_of_the_documented_order_is_sent(
    write: Any, offered: list[str], sent: str
) -> None:
    assert only(write(posting({media: {} for media in offered}))).request == sent


def test_a_form_with_a_file_is_multipart(write: Any) -> None:
    schema = {"type": "object", "properties": {"file": BINARY}}
    offered = ("application/x-www-form-urlencoded", "multipart/form-data")
    assert only(write(posting({media: {"schema": schema} for media in offered}))).request == offered[1]


# --- forms


def test_a_form_that_is_not_required_is_sent(write: Any) -> None:
    operation = only(write(form(To=STRING, Tags={"type": "array", "items": STRING})))
    assert "required" not in operation.input_schema
    assert body_of(operation, {"To": "+1 2", "Tags": ["a", "b&c"]}) == (
        b"To=%2B1+2&Tags=a&Tags=b%26c",
        "application/x-www-form-urlencoded",
    )
    assert body_of(operation, {})[0] == b""


def test_the_fields_of_a_form_have_the_styles_of_their_encoding(write: Any) -> None:
    deep = {"style": "deepObject", "explode": True}
    encoding = {
        "items": deep,
        "card": deep,
        "commas": {"style": "form", "explode": False},
        "spread": {"style": "form"},
        "meta": {"contentType": "application/json"},
        "link": {"allowReserved": True},
    }
    given = form(encoding=encoding, **{name: {} for name in (*encoding, "plain")})
    arguments = {
        "items": [{"price": "p", "tags": [1]}],
        "card": {"owner": {"name": "A B"}, "none": None},
        "commas": ["a", "b,c"],
        "spread": {"left": 1},
        "meta": "text",
        "link": "https://x.example/?a=b&c",
        "plain": {"an": "object"},
    }
    assert body_of(only(write(given)), arguments)[0] == (
        b"items%5B0%5D%5Bprice%5D=p&items%5B0%5D%5Btags%5D%5B0%5D=1&card%5Bowner%5D%5Bname%5D=A+B"
        b"&commas=a,b%2Cc&left=1&meta=%22text%22&link=https://x.example/?a=b%26c"
        b"&plain=%7B%22an%22%3A%22object%22%7D"
    )


@pytest.mark.parametrize("media", ["application/x-www-form-urlencoded", "multipart/form-data"])
def test_no_field_of_a_form_stands_in_for_another_one(write: Any, media: str) -> None:
    encoding = {"spread": {"style": "form"}, "deep": {"style": "deepObject"}}
    given = form(media=media, encoding=encoding, amount={}, spread={}, deep={}, **{"deep[a]": {}})
    operation = only(write(given))
    for arguments, pointer in (
        ({"amount[]": 1}, "/amount[]"),
        ({"Amount": 1}, "/Amount"),
        ({"spread": {"amount": 1}}, "/spread/amount"),
        ({"deep": {"a": 1}}, "/deep/a"),
    ):
        with pytest.raises(Refused) as caught:
            request_of(operation, dict(arguments))
        assert [finding.pointer for finding in caught.value.findings] == [pointer]
    assert request_of(operation, {"amount": 1, "deep": {"b": 1}, "other": 1}).body


def test_a_form_without_fields_is_no_body(write: Any) -> None:
    operation = only(write(form()))
    assert not operation.has_body
    assert operation.input_schema == {"type": "object", "properties": {}, "additionalProperties": False}


def test_a_form_that_is_no_plain_object_is_one_argument(write: Any) -> None:
    schema = {
        "allOf": [
            {"$ref": "#/components/schemas/Base"},
            {"type": "object", "properties": {"b": {}}},
        ]
    }
    given = posting(
        {
            "application/x-www-form-urlencoded": {
                "schema": schema,
                "encoding": {"a": {"style": "deepObject"}},
            }
        },
        required=True,
    )
    given["components"] = {"schemas": {"Base": {"type": "object", "properties": {"a": {}}}}}
    operation = only(write(given))
    assert body_of(operation, {"body": {"a": {"x": 1}, "b": 2}})[0] == b"a%5Bx%5D=1&b=2"
    with pytest.raises(Refused, match="BAD_ARGUMENTS"):
        request_of(operation, {"body": ["a"]})


# --- files


def test_a_file_is_an_argument_of_base64(write: Any) -> None:
    operation = only(
        write(form(media="multipart/form-data", file=BINARY, files={"type": "array", "items": BINARY}))
    )
    assert accepts(operation.input_schema, {"file": "aGk=", "files": ["aGk="]})
    assert accepts(operation.input_schema, {"file": {"base64": "aGk=", "filename": "a.txt"}})
    assert not accepts(operation.input_schema, {"file": {"path": "a.txt"}})
    assert not accepts(operation.input_schema, {"file": {"filename": "a.txt"}})
    assert not accepts(operation.input_schema, {"files": "aGk="})


REFERRED: dict[str, Any] = {
    "Data": BINARY,
    "List": {"type": "array", "items": {"$ref": "#/components/schemas/Data"}},
    **{f"Fan{n}": {"anyOf": [{"$ref": f"#/components/schemas/Fan{n + 1}"}] * 2} for n in range(12)},
    "Fan12": BINARY,
}
FILE, OBJECT = "aGk=", {"base64": "aGk=", "filename": "a.txt"}

# A field, what it takes, and what it does not.
SHAPES: list[tuple[str, dict[str, Any], list[Any], list[Any]]] = [
    ("a reference", {"$ref": "#/components/schemas/Data"}, [FILE, OBJECT], [[FILE], None]),
    ("a reference to a list", {"$ref": "#/components/schemas/List"}, [[FILE, OBJECT]], [FILE, None]),
    ("allOf", {"allOf": [{"$ref": "#/components/schemas/Data"}, {"description": "x"}]}, [OBJECT], [None]),
    ("allOf of a list", {"allOf": [{"$ref": "#/components/schemas/List"}]}, [[OBJECT]], [OBJECT]),
    ("null beside it", {"anyOf": [BINARY, {"type": "null"}]}, [FILE, OBJECT, None], [[FILE]]),
    ("a file or files", {"oneOf": [BINARY, {"type": "array", "items": BINARY}]}, [OBJECT, [OBJECT]], [None]),
    ("two types", {"type": ["string", "null"], "format": "binary"}, [OBJECT, None], [[FILE]]),
    ("a list or null", {"type": ["array", "null"], "items": BINARY}, [[OBJECT], None], [FILE]),
    ("limits of a list", {"type": "array", "items": BINARY, "maxItems": 1}, [[FILE]], [[FILE, FILE]]),
    ("a file or an address", {"anyOf": [BINARY, {"type": "string", "format": "uri"}]}, ["x"], [OBJECT]),
    ("a fan", {"$ref": "#/components/schemas/Fan0"}, [OBJECT], [None]),
]


@pytest.mark.parametrize(("what", "schema", "taken", "refused"), SHAPES, ids=[row[0] for row in SHAPES])
def test_a_file_is_taken_in_every_shape_that_the_document_gives_it(
    write: Any, what: str, schema: Any, taken: list[Any], refused: list[Any]
) -> None:
    given = form(media="multipart/form-data", file=schema)
    operation = only(write({**given, "openapi": "3.1.0", "components": {"schemas": REFERRED}}))
    assert [accepts(operation.input_schema, {"file": value}) for value in taken] == [True] * len(taken)
    assert [accepts(operation.input_schema, {"file": value}) for value in refused] == [False] * len(refused)


def test_a_file_that_may_be_null_keeps_null_in_3_0(write: Any) -> None:
    given = form(media="multipart/form-data", file={**BINARY, "nullable": True})
    operation = only(write({**given, "openapi": "3.0.3"}))
    assert accepts(operation.input_schema, {"file": None})
    assert body_of(operation, {"file": None})[0] == b""


def test_a_form_of_combined_objects_has_its_files_as_arguments(write: Any) -> None:
    note = {"type": "object", "properties": {"note": STRING}, "required": ["note"]}
    schema = {"allOf": [note, {"type": "object", "properties": {"file": BINARY}}], "required": ["file"]}
    operation = only(write(posting({"multipart/form-data": {"schema": schema}})))
    assert accepts(operation.input_schema, {"note": "n", "file": OBJECT})
    assert not accepts(operation.input_schema, {"note": "n"})
    assert not accepts(operation.input_schema, {"file": OBJECT})
    body, _ = body_of(operation, {"note": "n", "file": OBJECT})
    assert b'name="file"; filename="a.txt"' in (body or b"")


@pytest.mark.parametrize(
    "second",
    [
        {"type": "object", "properties": {"note": {"minLength": 3}, "file": BINARY}},
        {"type": "object", "properties": {"file": BINARY}, "additionalProperties": False},
        {"oneOf": [{"type": "object", "properties": {"file": BINARY}}]},
    ],
    ids=["the same member", "closed", "a choice"],
)
def test_combined_objects_that_would_lose_a_rule_are_one_argument(write: Any, second: Any) -> None:
    schema = {"allOf": [{"type": "object", "properties": {"note": STRING}}, second]}
    operation = only(write(posting({"multipart/form-data": {"schema": schema}})))
    assert (operation.body, list(operation.input_schema["properties"])) == ("body", ["body"])


def test_a_file_may_be_named_where_the_operator_set_a_folder(tmp_path: Path) -> None:
    given = form(media="multipart/form-data", file=BINARY)
    (tmp_path / "api.json").write_text(json.dumps(given))
    rules = ArgumentRules(takes_paths=True)
    operation = only(read_openapi(Documents(tmp_path / "api.json"), rules=rules))
    assert accepts(operation.input_schema, {"file": {"path": "a.txt"}})


FILES: list[tuple[dict[str, Any], Any, bool]] = [
    (BINARY, None, True),
    ({"type": "string"}, "image/png, image/jpeg", True),
    ({"contentMediaType": "application/pdf"}, None, True),
    ({"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"}, None, False),
    ({"type": "string", "format": "byte"}, None, False),
    ({"type": "string"}, "text/csv", False),
    ({"type": "object"}, "application/octet-stream", False),
]


@pytest.mark.parametrize(("schema", "content_type", "is_file"), FILES)
def test_what_is_binary_is_a_file(write: Any, schema: Any, content_type: str | None, is_file: bool) -> None:
    encoding = {"x": {"contentType": content_type}} if content_type else {}
    operation = only(write(form(media="multipart/form-data", encoding=encoding, x=schema)))
    assert [part.is_binary for part in operation.parts] == [is_file]


# --- text and binary data


@pytest.mark.parametrize(
    ("media", "schema", "value", "sent", "content_type"),
    [
        ("text/plain", STRING, "é", "é".encode(), "text/plain; charset=utf-8"),
        ("text/plain", {"type": "integer"}, 7, b"7", "text/plain; charset=utf-8"),
        ("application/xml", {"type": "object", "properties": {"a": {}}}, "<a/>", b"<a/>", "application/xml"),
        ("application/octet-stream", BINARY, "AP8=", b"\x00\xff", "application/octet-stream"),
        ("image/*", BINARY, {"base64": "AA==", "content_type": "image/png"}, b"\x00", "image/png"),
        ("application/vnd.x+json", {"type": "array"}, [1], b"[1]", "application/vnd.x+json"),
    ],
)
def test_a_body_that_is_no_form_is_one_argument(
    write: Any, media: str, schema: Any, value: Any, sent: bytes, content_type: str
) -> None:
    operation = only(write(posting({media: {"schema": schema}}, required=True)))
    assert accepts(operation.input_schema, {"body": value})
    assert not accepts(operation.input_schema, {})
    assert body_of(operation, {"body": value}) == (sent, content_type)


@pytest.mark.parametrize("value", ["no base64", "AA", "AA==\n", {"base64": "é"}, {"base64": 1}])
def test_what_is_no_base64_is_refused(write: Any, value: Any) -> None:
    operation = only(write(posting({"image/png": {"schema": BINARY}})))
    with pytest.raises(Refused) as caught:
        request_of(operation, {"body": value})
    assert caught.value.findings[0].pointer in ("/body", "/body/base64")


def test_a_content_type_cannot_end_its_line(write: Any) -> None:
    operation = only(write(posting({"image/png": {"schema": BINARY}})))
    with pytest.raises(Refused) as caught:
        request_of(operation, {"body": {"base64": "AA==", "content_type": "a/b\r\nX: 1"}})
    assert caught.value.findings[0].pointer == "/body/content_type"


# --- what other people's documents must not do


def test_a_name_that_path_and_body_require_is_required_once(write: Any) -> None:
    given = document(
        path="/it/{id}",
        method="post",
        parameters=[{"name": "id", "in": "path", "required": True, "schema": STRING}],
        requestBody={
            "content": {
                "application/json": {
                    "schema": {"type": "object", "properties": {"n": STRING}, "required": ["id", "n"]}
                }
            }
        },
    )
    schema = only(write(given)).input_schema
    assert schema["required"] == ["id", "n"]
    assert accepts(schema, {"id": "1", "n": "2"})


@pytest.mark.parametrize("media", ["application/x-www-form-urlencoded", "application/json"])
@pytest.mark.parametrize("keyword", ["allOf", "anyOf"])
def test_references_that_fan_out_in_circles_are_walked_once_each(
    write: Any, media: str, keyword: str
) -> None:
    names = [f"S{number}" for number in range(60)]
    schemas = {
        name: {
            "type": "object",
            "properties": {name: STRING},
            keyword: [{"$ref": f"#/components/schemas/{each}"} for each in names],
        }
        for name in names
    }
    given = posting({media: {"schema": {"$ref": "#/components/schemas/S0"}}})
    given["components"] = {"schemas": schemas}
    assert len(write(given)) == 1  # 60 to the power of 4 or 8 visits would not end
