"""OpenAPI documents: found in the folder and nowhere else, references followed, YAML without surprises."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from portbook.apis.left_out_operations import Cause
from portbook.apis.openapi.document_files import BadOpenAPI, Documents
from portbook.apis.openapi.operations_and_names import read_openapi
from portbook.canonical import json_bytes
from support.openapi_samples import STRING, accepts, document, left_out, only, parameter


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


@pytest.mark.parametrize(
    "reference",
    [
        "https://evil.test/x.json", "//evil.test/x.json", "file:///etc/passwd", "../secret.json",
        "/etc/hostname", "none.json", "#/components/nothing", "#nothing", "other.json#/It/0",
        "a/../../secret.json", "%2e%2e/secret.json", "\x00.json", "link.json", "pipe.json", "folder",
    ],
)  # fmt: skip
def test_a_reference_that_leads_out_or_nowhere_is_refused(write: Any, tmp_path: Path, reference: str) -> None:
    secret = tmp_path.parent / "secret.json"
    secret.write_text("{}")
    (tmp_path / "link.json").symlink_to(secret)
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    given = document(responses={"200": {"content": {"application/json": {"schema": {"$ref": reference}}}}})
    assert left_out(write(given, **{"other.json": {"It": []}})).cause is Cause.REFERENCE


@pytest.mark.parametrize("place", ["parameters", "responses"])
def test_references_in_a_circle_are_refused(write: Any, place: str) -> None:
    loop = {"$ref": f"#/components/{place}/A"}
    given = document(
        **{place: [loop] if place == "parameters" else {"200": loop}},
        components={
            place: {"A": {"$ref": f"#/components/{place}/B"}, "B": {"$ref": f"#/components/{place}/A"}}
        },
    )
    found = left_out(write(given))
    assert (found.cause, found.pointer) == (Cause.REFERENCE, "/paths/~1it/get")
    assert found.sentence.endswith("refers to itself")


@pytest.mark.parametrize(
    "given",
    [
        "", "nonsense", "[]", "{}", '{"openapi":"2.0"}', '{"openapi":"3.2.0"}', '{"openapi":3}',
        '{"swagger":"1.2"}', '{"openapi":"3.0.0","openapi":"3.0.0"}',
    ],
)  # fmt: skip
def test_a_document_that_is_not_openapi_is_refused(write: Any, given: str) -> None:
    with pytest.raises(BadOpenAPI, match=r"^api\.json"):
        write(given)


@pytest.mark.parametrize(
    "given",
    [
        document(parameters=[{"in": "query"}]),
        document(parameters=[parameter("x", "nowhere")]),
        document(parameters=[parameter("x", "path")]),
        document(path="/{id}"),
        document(parameters=[parameter("x", "query", schema=5)]),
    ],
)
def test_an_operation_that_is_not_openapi_is_left_out_alone(write: Any, given: dict[str, Any]) -> None:
    given["paths"]["/good"] = {"get": {"operationId": "good", "responses": {}}}
    bad, good = write(given)
    assert left_out([bad]).cause is Cause.INVALID
    assert only([good]).name == "good"


def test_an_operation_and_a_path_may_be_references(write: Any) -> None:
    given = document(path="/a", components={"x": {"get": {"operationId": "a", "responses": {}}}})
    given["paths"] = {
        "/a": {"$ref": "#/components/x"},
        "/b": {"get": {"$ref": "operations.json#/b"}},
        "/c": {"$ref": "none.json"},
    }
    others = {"operations.json": {"b": {"operationId": "b", "responses": {}}}}
    a, b, c = write(given, **others)
    assert (only([a]).name, only([b]).name, only([b]).path) == ("a", "b", "/b")
    found = left_out([c])
    assert (found.name, found.pointer, found.method) == ("c", "/paths/~1c", None)
    assert found.cause is Cause.REFERENCE


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


def test_yaml_is_read(tmp_path: Path) -> None:
    (tmp_path / "api.yaml").write_text(YAML)
    operation = only(read_openapi(Documents(tmp_path / "api.yaml")))
    date = {"type": "string", "format": "date", "default": "2024-01-01"}
    assert operation.input_schema["properties"] == {"since": date, "until": date}
    assert operation.output_schema == {"type": "array"}


def test_yaml_without_a_parser_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml12", None)
    (tmp_path / "api.yaml").write_text(YAML)
    with pytest.raises(BadOpenAPI, match=r"api\.yaml: .*install portbook\[yaml\]"):
        read_openapi(Documents(tmp_path / "api.yaml"))


def test_yaml_that_is_none_is_refused_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "api.yaml").write_text("a: [")
    with pytest.raises(BadOpenAPI, match=r"^api\.yaml: not YAML 1\.2"):
        read_openapi(Documents(tmp_path / "api.yaml"))


def test_files_that_refer_to_each_other_across_folders_are_read_once_each(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "shared").mkdir()
    reference = {"$ref": "models/a.json"}
    given = document(responses={"200": {"content": {"application/json": {"schema": reference}}}})
    (tmp_path / "api.json").write_bytes(json_bytes(given))
    for name, other in (("models/a.json", "../shared/b.json"), ("shared/b.json", "../models/a.json")):
        schema = {"type": "object", "properties": {"other": {"$ref": other}}}
        (tmp_path / name).write_bytes(json_bytes(schema))
    documents = Documents(tmp_path / "api.json")
    first = documents.target(documents.root(), "models/a.json")
    second = documents.target(first, "../shared/b.json")
    assert documents.target(second, "../models/a.json").file == first.file == "models/a.json"
    operation = only(read_openapi(documents, lambda _: True))
    assert accepts(operation.output_schema, {"other": {"other": {}}})
    assert not accepts(operation.output_schema, {"other": {"other": {"other": 5}}})


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda path: None, "does not exist; check its name"),
        (lambda path: path.mkdir(), "is a folder; name the document in it"),
        (
            os.mkfifo,
            "is not a regular file, but a pipe, a socket or a device; copy its content into a file",
        ),
    ],
    ids=["missing", "folder", "pipe"],
)
def test_what_is_no_file_is_called_what_it_is(tmp_path: Path, write: Any, make: Any, problem: str) -> None:
    other = tmp_path / "other.json"
    make(other)
    given = document(responses={"200": {"$ref": "other.json"}})
    assert left_out(write(given)).sentence.endswith(f": refers to a file that {problem}")
    with pytest.raises(BadOpenAPI, match=f"^other.json: {problem}$"):
        Documents(other).root()
