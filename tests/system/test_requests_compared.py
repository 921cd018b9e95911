"""Requests of imported operations, compared: with the arguments, and with those that Schemathesis makes.

For arguments that the input schema allows, a common server framework reads the same values back. For a
request that Schemathesis makes of the document, Portbook makes one that the framework reads alike.
"""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
import schemathesis
from hypothesis import given, settings
from hypothesis import strategies as st
from werkzeug.test import EnvironBuilder

from portbook.apis.openapi.document_files import Documents
from portbook.apis.openapi.operations_and_names import ImportedOperation, read_openapi
from support.counts import count
from support.decoding_api import DecodedRequest, decoded
from support.openapi_samples import request_of

FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
# Characters that no style uses between values, and many that have a meaning in URLs and forms.
TEXT = {"type": "string", "pattern": "^[-a-zA-Z0-9 &=+#/?%é日;:@!$'()*~_\"<>]{1,8}$"}
SEGMENT = {"type": "string", "pattern": "^[a-z0-9é]{1,9}$"}
LIST = {"type": "array", "items": TEXT, "minItems": 2, "maxItems": 3}
OBJECT = {
    "type": "object",
    "properties": {"left": TEXT, "right": TEXT},
    "required": ["left", "right"],
    "additionalProperties": False,
}
NESTED = {**OBJECT, "properties": {"left": OBJECT, "right": LIST}}
DEEP = {"style": "deepObject", "explode": True}

# Each query parameter: how it is written, and how a server that knows its style reads it.
QUERY: dict[str, tuple[dict[str, Any], Any]] = {
    "text": ({}, TEXT),
    "reserved": ({"allowReserved": True}, TEXT),
    "repeated": ({}, LIST),
    "commas": ({"explode": False}, LIST),
    "pipes": ({"style": "pipeDelimited", "explode": False}, LIST),
    "deep": (DEEP, OBJECT),
}


def _document() -> dict[str, Any]:
    query = [
        {"name": name, "in": "query", "required": True, "schema": schema, **style}
        for name, (style, schema) in QUERY.items()
    ]
    member = {"type": "object", "required": ["text", "list", "card"], "additionalProperties": False}
    form = {**member, "properties": {"text": TEXT, "list": LIST, "card": NESTED}}
    upload = {
        **member,
        "required": ["text", "list", "file"],
        "properties": {"text": TEXT, "list": LIST, "file": {"type": "string", "format": "binary"}},
    }
    path = {"name": "id", "in": "path", "required": True, "schema": SEGMENT}

    def posting(name: str, media: str, schema: Any, **members: Any) -> dict[str, Any]:
        content = {media: {"schema": schema, **members}}
        ok = {"200": {"description": "ok"}}
        return {"operationId": name, "requestBody": {"required": True, "content": content}, "responses": ok}

    ok = {"200": {"description": "ok"}}
    return {
        "openapi": "3.0.3",
        "info": {"title": "compared", "version": "1"},
        "paths": {
            "/query/{id}": {"get": {"operationId": "query", "parameters": [path, *query], "responses": ok}},
            "/form": {"post": posting("form", FORM, form, encoding={"card": DEEP})},
            "/flat": {"post": posting("flat", FORM, {**OBJECT})},
            "/upload": {"post": posting("upload", MULTIPART, upload)},
            "/json": {"post": posting("json", "application/json", NESTED)},
        },
    }


DOCUMENT = _document()


@cache
def _operations(folder: Path) -> dict[str, ImportedOperation]:
    (folder / "api.json").write_text(json.dumps(DOCUMENT))
    found = read_openapi(Documents(folder / "api.json"))
    return {each.name: each for each in found if isinstance(each, ImportedOperation)}


@pytest.fixture(scope="module")
def operations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, ImportedOperation]:
    return _operations(tmp_path_factory.mktemp("compared"))


def sent(operation: ImportedOperation, arguments: dict[str, Any]) -> DecodedRequest:
    return decoded(operation.method, request_of(operation, arguments))


def _deep(pairs: list[tuple[str, str]], name: str) -> Any:
    """Read `name[a][0]` as a tree, in which the members of a list are numbers."""
    tree: dict[str, Any] = {}
    for key, text in pairs:
        first, *steps = key.replace("]", "").split("[")
        if first == name and steps:
            into = tree
            for step in steps[:-1]:
                into = into.setdefault(step, {})
            into[steps[-1]] = text
    return _as_list(tree)


def _as_list(tree: Any) -> Any:
    if not isinstance(tree, dict):
        return tree
    inner = {key: _as_list(item) for key, item in tree.items()}
    return [inner[key] for key in sorted(inner)] if set(inner) <= {"0", "1", "2"} else inner


def query_arguments(request: DecodedRequest) -> dict[str, Any]:
    """Return what a server that knows the document reads of a request to `/query`."""
    single = dict(request.query)
    return {
        "id": request.path.removeprefix("/query/"),
        "text": single["text"],
        "reserved": single["reserved"],
        "repeated": [text for name, text in request.query if name == "repeated"],
        "commas": single["commas"].split(","),
        "pipes": single["pipes"].split("|"),
        "deep": _deep(request.query, "deep"),
    }


def drawn_from(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return values of a schema that is made of the few keywords above."""
    if schema["type"] == "object":
        return st.fixed_dictionaries({name: drawn_from(one) for name, one in schema["properties"].items()})
    if schema["type"] == "array":
        return st.lists(drawn_from(schema["items"]), min_size=schema["minItems"], max_size=schema["maxItems"])
    return st.from_regex(schema["pattern"], fullmatch=True)


def _arguments(name: str) -> st.SearchStrategy[dict[str, Any]]:
    if name == "query":
        properties = {"id": SEGMENT} | {each: schema for each, (_, schema) in QUERY.items()}
        return drawn_from({"type": "object", "properties": properties})
    content = DOCUMENT["paths"][f"/{name}"]["post"]["requestBody"]["content"]
    return drawn_from(next(iter(content.values()))["schema"])


EXAMPLES = settings(max_examples=count("requests compared"), deadline=None)


@pytest.mark.soak("requests compared")
@pytest.mark.covers("002.execution.openapi-read-back")
@EXAMPLES
@given(data=st.data())
def test_a_server_reads_the_arguments_back(
    data: st.DataObject, operations: dict[str, ImportedOperation]
) -> None:
    arguments = data.draw(_arguments("query"))
    assert query_arguments(sent(operations["query"], arguments)) == arguments

    arguments = data.draw(_arguments("form"))
    form = sent(operations["form"], arguments).form
    listed = [text for name, text in form if name == "list"]
    assert {"text": dict(form)["text"], "list": listed, "card": _deep(form, "card")} == arguments

    arguments = data.draw(_arguments("json"))
    assert json.loads(sent(operations["json"], arguments).body) == arguments

    texts, file = data.draw(_arguments("flat")), data.draw(st.binary(max_size=40))
    arguments = {"text": texts["left"], "list": list(texts.values()), "file": base64.b64encode(file).decode()}
    upload = sent(operations["upload"], arguments)
    expected = [("text", texts["left"]), *(("list", text) for text in texts.values())]
    assert (upload.form, [each.data for each in upload.files]) == (expected, [file])


def _made(case: Any) -> DecodedRequest:
    """Return what the framework reads of a request that Schemathesis made."""
    kwargs = case.as_transport_kwargs(base_url="http://a.example")
    known = ("method", "url", "headers", "params", "data", "json", "files", "cookies")
    prepared = requests.Request(**{key: kwargs[key] for key in known if key in kwargs}).prepare()
    parts = urlsplit(prepared.url or "")
    body = prepared.body or b""
    builder = EnvironBuilder(
        parts.path,
        query_string=parts.query,
        method=prepared.method or "GET",
        data=body if isinstance(body, bytes) else body.encode(),
        content_type=prepared.headers.get("Content-Type"),
    )
    try:
        return DecodedRequest.of(builder.get_environ())
    finally:
        builder.close()


def _cases(path: str, method: str) -> st.SearchStrategy[Any]:
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    return schema[path][method].as_strategy()


@pytest.mark.soak("requests compared")
@EXAMPLES
@given(data=st.data())
def test_a_request_of_schemathesis_is_read_like_ours(
    data: st.DataObject, operations: dict[str, ImportedOperation]
) -> None:
    theirs = _made(data.draw(_cases("/query/{id}", "GET")))
    ours = sent(operations["query"], query_arguments(theirs))
    assert (ours.path, sorted(ours.query)) == (theirs.path, sorted(theirs.query))

    theirs = _made(data.draw(_cases("/flat", "POST")))
    assert sorted(sent(operations["flat"], dict(theirs.form)).form) == sorted(theirs.form)

    theirs = _made(data.draw(_cases("/json", "POST")))
    assert json.loads(sent(operations["json"], json.loads(theirs.body)).body) == json.loads(theirs.body)

    theirs = _made(data.draw(_cases("/upload", "POST")))
    listed = [text for name, text in theirs.form if name == "list"]
    uploaded = [base64.b64encode(each.data).decode() for each in theirs.files if each.name == "file"]
    arguments = {"text": dict(theirs.form)["text"], "list": listed, "file": uploaded[0]}
    ours = sent(operations["upload"], arguments)
    assert sorted(ours.form) == sorted(theirs.form)
    assert [each.data for each in ours.files] == [each.data for each in theirs.files]
