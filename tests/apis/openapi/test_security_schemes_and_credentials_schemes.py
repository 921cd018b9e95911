"""Security schemes and requirements of a document, as they are in the wild."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portbook.apis.openapi.document_files import DocumentNode, Documents
from portbook.apis.openapi.security_schemes_and_credentials import described, read_requirement, read_schemes
from portbook.tools.http_operation import CredentialUse
from support.openapi_samples import document, left_out


def node(value: Any) -> DocumentNode:
    return DocumentNode(value, "api.json", "")


def schemes(tmp_path: Path, given: dict[str, Any], **components: Any) -> Any:
    document = {"openapi": "3.0.3", "components": {"securitySchemes": given, **components}}
    (tmp_path / "api.json").write_text(json.dumps(document))
    documents = Documents(tmp_path / "api.json")
    return read_schemes(documents, documents.root())


@pytest.mark.parametrize(
    ("given", "words", "use"),
    [
        (
            {"type": "apiKey", "in": "header", "name": "X-Key"},
            "apiKey in the header X-Key",
            CredentialUse("it", "header", "X-Key"),
        ),
        (
            {"type": "apiKey", "in": "query", "name": "api key"},
            "apiKey in the query api key",
            CredentialUse("it", "query", "api key"),
        ),
        (
            {"type": "apiKey", "in": "cookie", "name": "sid"},
            "apiKey in the cookie sid",
            CredentialUse("it", "cookie", "sid"),
        ),
        (
            {"type": "http", "scheme": "Basic"},
            "http basic",
            CredentialUse("it", "header", "Authorization", "basic"),
        ),
        (
            {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
            "http bearer",
            CredentialUse("it", "header", "Authorization", "bearer"),
        ),
        (
            {"type": "oauth2", "flows": {}},
            "oauth2, as a bearer token",
            CredentialUse("it", "header", "Authorization", "bearer"),
        ),
        (
            {"type": "openIdConnect", "openIdConnectUrl": "https://a.example"},
            "openIdConnect, as a bearer token",
            CredentialUse("it", "header", "Authorization", "bearer"),
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_scheme_says_where_its_credential_goes(
    tmp_path: Path, given: Any, words: str, use: CredentialUse
) -> None:
    found = schemes(tmp_path, {"it": given})["it"]
    assert (found.words, found.use) == (words, use)


@pytest.mark.parametrize(
    "given",
    [
        {"type": "http", "scheme": "digest"},
        {"type": "mutualTLS"},
        {"type": "apiKey", "in": "header", "name": "X-Key\r\nX-Admin"},
        {"type": "apiKey", "in": "cookie", "name": "a=b"},
        {"type": "apiKey", "in": "query", "name": ""},
        {"type": "apiKey", "in": "body", "name": "key"},
        {"type": 7},
        {},
        {"$ref": "#/components/nowhere"},
        "no object",
    ],
    ids=str,
)
def test_a_scheme_that_cannot_be_sent_has_no_use_and_stops_nothing(tmp_path: Path, given: Any) -> None:
    found = schemes(tmp_path, {"it": given})["it"]
    assert found.use is None
    assert found.words
    assert found.words.isprintable()


def test_a_scheme_may_be_a_reference(tmp_path: Path) -> None:
    there = {"type": "http", "scheme": "basic"}
    found = schemes(
        tmp_path, {"it": {"$ref": "#/components/x-shared/basic"}}, **{"x-shared": {"basic": there}}
    )
    assert found["it"].words == "http basic"


@pytest.mark.parametrize(
    ("document", "operation", "expected"),
    [
        ({}, {}, ()),
        ({"security": [{"a": []}]}, {}, (("a",),)),
        ({"security": [{"a": []}]}, {"security": []}, ()),
        ({"security": [{"a": []}]}, {"security": [{"b": [], "c": ["read"]}, {}]}, (("b", "c"), ())),
    ],
    ids=str,
)
def test_an_operation_replaces_what_the_document_requires(
    document: Any, operation: Any, expected: Any
) -> None:
    assert read_requirement(node(document), node(operation)) == expected


def test_a_requirement_is_described_in_one_line(tmp_path: Path) -> None:
    known = schemes(tmp_path, {"a": {"type": "http", "scheme": "basic"}, "b\n": {"type": "mutualTLS"}})
    words = described((("a", "b\n"), (), ("c",)), known)
    assert words == ("a (http basic) and b\\n (mutualTLS) or c (a scheme that the document does not define)")


@pytest.mark.parametrize("garbage", ["x", 5, {"key": []}, ["key"], [None]])
@pytest.mark.parametrize("is_of_document", [False, True])
def test_a_requirement_that_cannot_be_understood_leaves_the_operation_out(
    write: Any, is_of_document: bool, garbage: Any
) -> None:
    given = document()
    (given if is_of_document else given["paths"]["/it"]["get"])["security"] = garbage
    assert left_out(write(given)).sentence.endswith("/security: security must be a list of objects")
