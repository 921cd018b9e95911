"""Parameters of OpenAPI documents: each in its place and its style."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from portbook.apis.openapi.document_files import Documents
from portbook.apis.openapi.operations_and_names import read_openapi
from portbook.apis.openapi.parameters_and_path_keys import ArgumentRules
from portbook.errors import Refused
from support.openapi_samples import STRING, document, left_out, only, parameter, request_of

PATHS: list[tuple[dict[str, Any], Any, str]] = [
    ({}, {"a": 1, "b": 2}, "a,1,b,2"),
    ({"explode": True}, {"a": 1, "b": 2}, "a=1,b=2"),
    ({"style": "label"}, [1, 2], ".1,2"),
    ({"style": "label", "explode": True}, [1, 2], ".1.2"),
    ({"style": "matrix"}, [1, 2], ";x=1,2"),
    ({"style": "matrix", "explode": True}, [1, 2], ";x=1;x=2"),
    ({"schema": None, "content": {"application/json": {"schema": {}}}}, {"a": 1}, "%7B%22a%22%3A1%7D"),
]


@pytest.mark.parametrize(("members", "value", "segment"), PATHS)
def test_a_path_parameter_is_written_in_its_style(
    write: Any, members: dict[str, Any], value: Any, segment: str
) -> None:
    given = document(path="/it/{x}", parameters=[parameter("x", "path", **{"schema": {}, **members})])
    assert request_of(only(write(given)), {"x": value}).target == f"/it/{segment}"


HEADERS: list[tuple[dict[str, Any], Any, str]] = [
    ({}, [1, 2], "1,2"),
    ({}, {"a": 1, "b": 2}, "a,1,b,2"),
    ({"explode": True}, {"a": 1, "b": 2}, "a=1,b=2"),
    ({"content": {"application/json": {}}}, {"a": 1}, '{"a":1}'),
]


@pytest.mark.parametrize(("members", "value", "text"), HEADERS)
def test_a_header_is_written_in_its_style(write: Any, members: dict[str, Any], value: Any, text: str) -> None:
    given = document(parameters=[parameter("X-It", "header", **{"schema": {}, **members})])
    assert request_of(only(write(given)), {"X-It": value}).headers == (("X-It", text),)


COOKIES: list[tuple[dict[str, Any], Any, str]] = [
    ({}, "a b;c", "x=a%20b%3Bc"),
    ({}, "", "x="),
    ({}, [1, 2], "x=1; x=2"),
    ({"explode": False}, [1, 2], "x=1,2"),
    ({}, {"a": 1, "b": 2}, "a=1; b=2"),
    ({}, None, ""),
]


@pytest.mark.parametrize(("members", "value", "cookies"), COOKIES)
def test_a_cookie_is_an_argument(write: Any, members: dict[str, Any], value: Any, cookies: str) -> None:
    operation = only(write(document(parameters=[parameter("x", "cookie", **{"schema": {}, **members})])))
    assert request_of(operation, {"x": value}).cookies == cookies


def test_a_required_cookie_is_a_required_argument(write: Any) -> None:
    operation = only(write(document(parameters=[parameter("x", "cookie", required=True)])))
    assert operation.input_schema["required"] == ["x"]


def test_cookies_are_no_arguments_where_the_operator_sets_them(tmp_path: Path) -> None:
    given = document(parameters=[parameter("x", "cookie", required=True), parameter("y", "query")])
    (tmp_path / "api.json").write_text(json.dumps(given))
    rules = ArgumentRules(takes_cookies=False)
    operation = only(read_openapi(Documents(tmp_path / "api.json"), rules=rules))
    assert operation.input_schema["properties"] == {"y": STRING}
    assert "required" not in operation.input_schema


def test_an_object_cannot_name_a_cookie_that_is_none(write: Any) -> None:
    operation = only(write(document(parameters=[parameter("x", "cookie", schema={})])))
    with pytest.raises(Refused) as caught:
        request_of(operation, {"x": {"a=b; c": 1}})
    assert caught.value.findings[0].pointer == "/x/a=b; c"


def test_reserved_characters_stay_where_the_document_says_so(write: Any) -> None:
    given = document(parameters=[parameter("x", "query", allowReserved=True), parameter("y", "query")])
    request = request_of(only(write(given)), {"x": "a/b?c&d#e", "y": "a/b"})
    assert request.target == "/it?x=a/b?c%26d%23e&y=a%2Fb"


def test_a_parameter_of_text_is_sent_as_it_is(write: Any) -> None:
    given = document(parameters=[parameter("x", "query", content={"text/plain": {"schema": STRING}})])
    assert request_of(only(write(given)), {"x": '"a"'}).target == "/it?x=%22a%22"


def test_stripes_lists_have_indices(write: Any) -> None:
    expand = parameter("expand", "query", style="deepObject", explode=True, schema={"type": "array"})
    request = request_of(only(write(document(parameters=[expand]))), {"expand": ["a", "b"]})
    assert request.target == "/it?expand%5B0%5D=a&expand%5B1%5D=b"


@pytest.mark.parametrize(
    ("key", "place", "name"),
    [
        ("/#X-Amz-Target=Queue.Read", "header", "x-amz-target"),
        ("/#Action=Read", "query", "Action"),
    ],
)
def test_an_argument_never_changes_what_the_path_says(write: Any, key: str, place: str, name: str) -> None:
    operation = only(write(document(path=key, parameters=[parameter(name, place)])))
    assert operation.parameters == ()
    assert operation.input_schema["properties"] == {}


@pytest.mark.parametrize("garbage", [{"a": 1}, "x", 5])
@pytest.mark.parametrize("is_shared", [False, True])
def test_parameters_that_are_no_list_leave_the_operation_out(
    write: Any, is_shared: bool, garbage: Any
) -> None:
    given = document()
    (given["paths"]["/it"] if is_shared else given["paths"]["/it"]["get"])["parameters"] = garbage
    assert left_out(write(given)).sentence.endswith("/parameters: parameters must be a list")
