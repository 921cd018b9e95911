"""The operations of a document: their names, their order, and what is left out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portbook.apis.openapi.document_files import BadOpenAPI, Documents
from portbook.apis.openapi.operations_and_names import read_openapi
from support.openapi_samples import STRING, document, left_out, only


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


def test_operations_come_in_the_documents_order(write: Any) -> None:
    given = document()
    for path in ("/b", "/a"):
        given["paths"][path] = {verb: {"responses": {}} for verb in ("delete", "get", "x-note")}
    assert [operation.name for operation in write(given)] == ["it", "get_b", "delete_b", "get_a", "delete_a"]


@pytest.mark.parametrize(
    ("item", "name", "sentence"),
    [
        ({"trace": {}}, "trace_a", "api.json#/paths/~1a/trace: its method is not supported"),
        ({"query": {}}, "query_a", "api.json#/paths/~1a/query: its method is not supported"),
        ({"gett": {}}, "gett_a", "api.json#/paths/~1a/gett: its method is not supported"),
        ({"GET": {}}, "get_a", "api.json#/paths/~1a/GET: a method must be in lower case"),
        ({"get": None}, "get_a", "api.json#/paths/~1a/get: an operation must be an object"),
        ({"get": "x"}, "get_a", "api.json#/paths/~1a/get: an operation must be an object"),
        ({"get": {"$ref": "#/openapi"}}, "get_a", "api.json#/paths/~1a/get: an operation must be an object"),
        (None, "a", "api.json#/paths/~1a: a path must be an object"),
        ([], "a", "api.json#/paths/~1a: a path must be an object"),
    ],
)
def test_what_is_no_operation_is_left_out_with_its_reason(
    write: Any, item: Any, name: str, sentence: str
) -> None:
    found = left_out(write({"openapi": "3.1.0", "paths": {"/a": item}}))
    assert (found.name, found.sentence) == (name, sentence)


def test_extensions_and_what_a_path_says_of_itself_are_no_operations(write: Any) -> None:
    item = {"summary": "s", "description": "d", "servers": [], "parameters": None, "x-note": {"get": {}}}
    assert write({"openapi": "3.1.0", "paths": {"/a": item, "x-notes": {"get": {}}}}) == []


def test_a_document_without_paths_has_no_operations(write: Any) -> None:
    assert write('{"openapi":"3.1.0"}') == []


def test_what_is_not_wanted_is_not_even_read(tmp_path: Path) -> None:
    given = document()
    given["paths"]["/broken"] = {"get": {"operationId": "broken", "parameters": [{"$ref": "#/nowhere"}]}}
    (tmp_path / "api.json").write_text(json.dumps(given))
    found = read_openapi(Documents(tmp_path / "api.json"), lambda head: head.name != "broken")
    assert only(found).name == "it"


@pytest.mark.parametrize("version", ["3.0", "3.0.3", "3.1", "3.1.1", 3.0, 3.1])
def test_a_version_is_a_text_or_a_number(write: Any, version: Any) -> None:
    assert only(write(document(version=version))).name == "it"


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("3.2.0", "newer than supported: 3.0, 3.1"),
        (3.2, "newer than supported: 3.0, 3.1"),
        ("3.10.0", "newer than supported: 3.0, 3.1"),
        ("4.0", "newer than supported: 3.0, 3.1"),
        ("10.0", "newer than supported: 3.0, 3.1"),
        ("1.2", "convert an older document first"),
        (None, "convert an older document first"),
        (3, "convert an older document first"),
        ("x", "convert an older document first"),
    ],
)
def test_another_version_is_refused_with_what_to_do(write: Any, version: Any, words: str) -> None:
    with pytest.raises(BadOpenAPI, match=words):
        write(document(version=version))
