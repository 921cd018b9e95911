"""Keys of `paths` that are more than a path."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.apis.gateway import Gateway, is_argument_header
from portbook.apis.openapi.parameters_and_path_keys import ArgumentRules, PathKey, read_path_key, with_query
from portbook.tools.http_operation import problem_of_path
from support.openapi_samples import document, left_out, only, parameter, request_of


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("/a/{b}", PathKey("/a/{b}", {}, {}, {})),
        ("/#X-Amz-Target=Queue.Send", PathKey("/", {}, {"X-Amz-Target": "Queue.Send"}, {})),
        ("/#Action=Send", PathKey("/", {}, {}, {"Action": "Send"})),
        ("/?Action=Send", PathKey("/?Action=Send", {}, {}, {})),
        ("/a#overload=stream", PathKey("/a", {}, {}, {})),
        ("/a#shared&tagKeys", PathKey("/a", {}, {}, {})),
        ("/a#Operation=x&Action=y", PathKey("/a", {}, {}, {"Operation": "x", "Action": "y"})),
        ("/#Action=x&X-Y=1&Version=2", PathKey("/", {}, {"X-Y": "1"}, {"Action": "x", "Version": "2"})),
        ("/a?lat={x}&units=m&lon={y}", PathKey("/a?units=m", {"x": "lat", "y": "lon"}, {}, {})),
        ("/a?x={y},{z}", PathKey("/a?x={y},{z}", {}, {}, {})),
    ],
)  # fmt: skip
def test_a_key_is_taken_apart(key: str, expected: PathKey) -> None:
    assert read_path_key(key) == expected


def test_pairs_are_added_to_a_query_as_they_must_be_written() -> None:
    assert with_query("/a", {}) == "/a"
    path = with_query(with_query("/a", {"x y": "1&2"}), {"é": "{z}"})
    assert path == "/a?x%20y=1%262&%C3%A9=%7Bz%7D"
    assert problem_of_path(path) is None


def aws(path: str, *parameters: dict[str, Any]) -> dict[str, Any]:
    """An operation as the documents of AWS have them."""
    return document(path=path, method="post", parameters=list(parameters))


TARGET = parameter("X-Amz-Target", "header", required=True, schema={"type": "string", "enum": ["Queue.Send"]})


@pytest.mark.parametrize(
    ("given", "target", "headers"),
    [
        (aws("/#X-Amz-Target=Queue.Send"), "/", {"X-Amz-Target": "Queue.Send"}),
        (aws("/#X-Amz-Target=Queue.Send", TARGET), "/", {"X-Amz-Target": "Queue.Send"}),
        (aws("/#Action=Send"), "/?Action=Send", {}),
        (aws("/#Action=Send&Version=1"), "/?Action=Send&Version=1", {}),
        (aws("/?Action=Send"), "/?Action=Send", {}),
        (
            aws(
                "/#Action=Send",
                parameter("Action", "query", required=True, schema={"enum": ["Send"]}),
                parameter("Version", "query", required=True, schema={"const": 3}),
                parameter("acl", "query", required=True, schema={"type": "boolean", "enum": [True]}),
            ),
            "/?Action=Send&Version=3&acl=true",
            {},
        ),
    ],
)
def test_what_a_fragment_stands_for_is_sent_and_is_no_argument(
    write: Any, given: dict[str, Any], target: str, headers: dict[str, str]
) -> None:
    operation = only(write(given))
    assert operation.input_schema["properties"] == {}
    request = request_of(operation, {})
    assert (request.target, dict(request.headers)) == (target, headers)


def test_a_parameter_with_a_choice_or_without_need_stays_an_argument(write: Any) -> None:
    given = document(
        parameters=[
            parameter("a", "query", schema={"enum": ["x"]}),
            parameter("b", "query", required=True, schema={"enum": ["x", "y"]}),
            parameter("c", "header", required=True, schema={"enum": ["x\r\nEvil: 1"]}),
            parameter("d", "query", required=True, schema={"enum": [None]}),
        ]
    )
    assert list(only(write(given)).input_schema["properties"]) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    "parameters",
    [[parameter("lat", "path")], [parameter("lat", "query", required=True)], []],
    ids=["in the path", "in the query", "not described"],
)
def test_a_name_in_the_query_of_a_path_is_an_argument_of_the_query(write: Any, parameters: list[Any]) -> None:
    given = document(path="/alerts?lat={lat}&units=m", parameters=parameters)
    operation = only(write(given))
    assert operation.input_schema["required"] == ["lat"]
    assert request_of(operation, {"lat": "a&b"}).target == "/alerts?units=m&lat=a%26b"


def test_two_operations_of_one_path_are_told_apart_by_the_fragment(write: Any) -> None:
    given = document(path="/files/{id}#shared", parameters=[parameter("id", "path")])
    given["paths"]["/files/{id}"] = {"get": {"parameters": [parameter("id", "path")]}}
    del given["paths"]["/files/{id}#shared"]["get"]["operationId"]
    assert [found.name for found in write(given)] == ["get_files_id_shared", "get_files_id"]


@pytest.mark.parametrize("header", ["X-Request-Id=1", "X-Y=a\r\nEvil: 1", "X-Y="])
def test_a_fragment_cannot_set_a_header_that_an_argument_could_not(write: Any, header: str) -> None:
    gateway = Gateway("g", "https://a.example")
    rules = ArgumentRules(lambda name: is_argument_header(name, gateway))
    found = left_out(write(document(path=f"/#{header}"), rules=rules))
    assert found.sentence == "its path stands for a header that cannot be sent"
