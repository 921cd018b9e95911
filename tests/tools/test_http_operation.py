"""Operations: where they lead, and what may be shown of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from portbook.canonical import fingerprint
from portbook.net.destinations import Destination
from portbook.tools.http_operation import (
    BodyPart,
    HttpOperation,
    Parameter,
    ParameterPlace,
    Style,
    problem_of_path,
    split_path,
)

OPERATION = HttpOperation("orders", "https://api.example.com/v1/", "GET", "/orders/{id}")


def test_an_operation_knows_where_it_leads() -> None:
    assert OPERATION.destination == Destination("https", "api.example.com", 443)
    assert OPERATION.domain == "api.example.com:443"
    assert OPERATION.endpoint == "https://api.example.com/v1/orders/{id}"


@pytest.mark.parametrize(
    "url", ["", "https://u:hunter2@a.example", "https://a.example/?k=hunter2", "https://127.1"]
)
def test_a_base_url_that_cannot_be_used_leads_nowhere_and_is_not_shown(url: str) -> None:
    operation = replace(OPERATION, base_url=url)
    assert (operation.destination, operation.domain) == (None, None)
    assert operation.endpoint == "/orders/{id}"


@pytest.mark.parametrize(
    ("method", "has_body", "expected"),
    [
        ("GET", None, False),
        ("DELETE", None, False),
        ("POST", None, True),
        ("PUT", None, True),
        ("PATCH", None, True),
        ("DELETE", True, True),
        ("POST", False, False),
    ],
)
def test_the_verb_says_whether_there_is_a_body_unless_the_operation_does(
    method: str, has_body: bool | None, expected: bool
) -> None:
    assert replace(OPERATION, method=method, has_body=has_body).sends_body is expected


@pytest.mark.parametrize(
    "changed",
    [
        {"base_url": "https://api.example.com/v2/"},
        {"method": "POST"},
        {"path": "/orders"},
        {"parameters": (Parameter("id", ParameterPlace.QUERY, "id"),)},
        {"parameters": (Parameter("id", ParameterPlace.QUERY, "id", Style.COMMA),)},
        {"body": "order"},
        {"has_body": True},
        {"request": "application/merge-patch+json"},
        {"response": "text/csv"},
    ],
)
def test_what_changes_a_request_changes_the_digest(changed: dict[str, object]) -> None:
    """An approval is bound to it."""
    before = replace(OPERATION, parameters=(Parameter("id", ParameterPlace.HEADER, "id"),))
    assert fingerprint(replace(before, **changed).as_data()) != fingerprint(before.as_data())


def test_a_template_is_taken_apart() -> None:
    assert split_path("/a/{x}/b{y}") == (["/a/", "/b", ""], ["x", "y"])
    assert split_path("/a") == (["/a"], [])


@pytest.mark.parametrize(
    "path",
    ["/", "/orders/{id}", "/a/{x}/b{y}", "/o?tenant=acme&v=1", "/a..b/...", "/.well-known", "/o?up=/../x"],
)
def test_a_path_that_can_be_sent_is_a_template(path: str) -> None:
    assert problem_of_path(path) is None


@pytest.mark.parametrize(
    "path",
    [
        "", "orders", "/a b", "/a\r\nX: 1", "/a?x=1 HTTP/1.1\r\nX: 1", "/é", "/a#b", "/{a", "/a}", "/{}",
        "/{a}/{a}", "/a?x={id}", "/..", "/a/./b", "/a/../b", "/%2e%2E/b", "/a%2f..%2Fb", "/a\\..\\b",
        "/..;x/b",
    ],
)  # fmt: skip
def test_a_path_that_could_be_more_than_a_path_is_none(path: str) -> None:
    assert str(problem_of_path(path)).startswith("must ")


def test_an_operation_says_what_it_accepts() -> None:
    assert OPERATION.accept == "application/json"
    mixed = replace(OPERATION, response="application/hal+json", other_responses=("text/*", "*/*"))
    assert mixed.accept == "application/hal+json, text/*;q=0.5, */*;q=0.5"
    assert mixed.accepts("image/png")
    strict = replace(OPERATION, other_responses=("text/*",))
    assert [strict.accepts(media) for media in ("application/problem+json", "text/csv", "image/png")] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("response", "expected"),
    [("application/json", False), ("text/csv", False), ("image/*", True), ("application/pdf", True)],
)
def test_binary_data_is_content(response: str, expected: bool) -> None:
    assert replace(OPERATION, response=response).gives_content is expected


def test_what_goes_over_the_wire_is_part_of_the_digest() -> None:
    reserved = Parameter("x", ParameterPlace.QUERY, "x", allows_reserved=True)
    plain = replace(reserved, allows_reserved=False)
    changed = [
        OPERATION,
        replace(OPERATION, parts=(BodyPart("x"),)),
        replace(OPERATION, parts=(BodyPart("x", Style.DEEP),)),
        replace(OPERATION, parts=(BodyPart("x", is_binary=True),)),
        replace(OPERATION, other_responses=("*/*",)),
        replace(OPERATION, parameters=(plain,)),
        replace(OPERATION, parameters=(reserved,)),
    ]
    assert len({fingerprint(operation.as_data()) for operation in changed}) == len(changed)
