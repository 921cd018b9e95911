"""Arguments into requests: each goes to its place, and none can leave it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.apis.arguments_put_into_request import Composed, Composer
from portbook.errors import Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.tools.http_operation import (
    BodyPart,
    CredentialUse,
    HttpOperation,
    Parameter,
    ParameterPlace,
    Style,
)

BASE = "https://api.example.com/base/"


def compose(method: str, path: str, arguments: JSONObject, **options: Any) -> Composed:
    composer = Composer(HttpOperation("g", BASE, method, path, **options))
    composed = composer.compose(arguments)
    assert composer.compose(arguments)[:2] == composed[:2], "a later call is composed as the first one"
    return composed


def refused(method: str, path: str, arguments: JSONObject, **options: Any) -> tuple[str, ...]:
    with pytest.raises(Refused) as caught:
        compose(method, path, arguments, **options)
    assert caught.value.reason is Reason.BAD_ARGUMENTS
    return tuple(finding.pointer for finding in caught.value.findings)


def placed(place: ParameterPlace, name: str = "x", style: Style = Style.REPEAT) -> dict[str, Any]:
    return {"parameters": (Parameter("x", place, name, style),)}


# --- the path

PATHS: list[tuple[str, JSON, str]] = [
    ("a string", "A-1", "A-1"),
    ("a number", 7, "7"),
    ("a big number", 2**70, str(2**70)),
    ("true", True, "true"),
    ("a slash", "a/b", "a%2Fb"),
    ("a question mark", "a?b=c", "a%3Fb%3Dc"),
    ("a fragment", "a#b", "a%23b"),
    ("a space", "a b", "a%20b"),
    ("a percent sign", "100%", "100%25"),
    ("an escape", "a%20b", "a%2520b"),
    ("a semicolon", "a;b", "a%3Bb"),
    ("beyond ASCII", "é", "%C3%A9"),
    ("dots that are no segment", "a..b", "a..b"),
    ("three dots", "...", "..."),
    ("a host", "//evil.test", "%2F%2Fevil.test"),
    ("a URL", "https://evil.test", "https%3A%2F%2Fevil.test"),
    ("a list", ["a", "b/c"], "a,b%2Fc"),
]


@pytest.mark.covers("002.execution.path-parameters-encoded")
@pytest.mark.parametrize(("what", "value", "written"), PATHS, ids=[row[0] for row in PATHS])
def test_a_path_argument_is_encoded_whole(what: str, value: JSON, written: str) -> None:
    assert compose("GET", "/orders/{id}/lines", {"id": value}).target == f"/base/orders/{written}/lines"


@pytest.mark.parametrize(
    "value",
    [
        None, "", [], [""], {"a": 1}, ".", "..", "../admin", "a/../b", "a/..", "./a", "..\\admin", "a\\.\\b",
        "%2e%2e", "%2E.", "%2e%2e%2fadmin", "%252e%252e", "..;", "..;/admin", "a/..;x/b", "\x00", "a\nb",
        "a\x7fb", "%00", "%0d%0a", "a/%2e%2e/b", "%25252525252e%25252525252e", [".", "."],
    ],
)  # fmt: skip
def test_a_path_argument_that_could_leave_its_place_is_refused(value: JSON) -> None:
    assert refused("GET", "/orders/{id}", {"id": value}) == ("/id",)


def test_a_path_argument_that_is_missing_is_refused() -> None:
    assert refused("GET", "/orders/{a~b}", {}) == ("/a~0b",)


def test_two_harmless_arguments_cannot_make_a_dot_segment_together() -> None:
    assert compose("GET", "/x/{a}{b}", {"a": "a", "b": "b"}).target == "/base/x/ab"
    assert refused("GET", "/x/.{a}", {"a": "."}) == ("/a",)


@given(st.one_of(st.text(), st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)))
def test_no_path_argument_changes_anything_but_its_segment(value: JSON) -> None:
    try:
        target = compose("GET", "/orders/{id}/lines", {"id": value}).target
    except Refused:
        return
    parts = urlsplit(target)
    assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == ("", "", "", "")
    before, segment, after = target.rsplit("/", 2)
    assert (before, after) == ("/base/orders", "lines")
    said = unquote(segment, errors="strict")
    assert (said if isinstance(value, str) else json.loads(said)) == value
    assert segment not in ("", ".", "..")
    assert target.isascii()
    assert target.isprintable()


@pytest.mark.parametrize(
    ("base", "path", "target"),
    [
        ("https://a.example", "/", "/"),
        ("https://a.example", "/orders", "/orders"),
        ("https://a.example/", "/orders", "/orders"),
        ("https://a.example/api/v1", "/orders", "/api/v1/orders"),
        ("https://a.example/api/", "/orders/", "/api/orders/"),
        ("https://a.example", "/orders?api-version=2024-01-01", "/orders?api-version=2024-01-01&id=1"),
        ("https://a.example", "/orders?at=12:00/7?&x=%20", "/orders?at=12:00/7?&x=%20&id=1"),
        ("https://a.example", "/with space", "/with%20space"),
        ("https://a.example", "/o?x=1 HTTP/1.1\r\nX-A: 1", "/o?x=1%20HTTP/1.1%0D%0AX-A:%201&id=1"),
        ("https://a.example", "/o?x=é#y", "/o?x=%C3%A9%23y&id=1"),
    ],
)
def test_a_path_is_joined_to_that_of_its_base_url(base: str, path: str, target: str) -> None:
    arguments: JSONObject = {"id": 1} if "?" in path else {}
    assert Composer(HttpOperation("g", base, "GET", path)).compose(arguments).target == target


def test_a_path_parameter_may_have_another_name_than_its_argument() -> None:
    composed = compose("GET", "/orders/{order-id}", {"x": "A"}, **placed(ParameterPlace.PATH, "order-id"))
    assert composed.target == "/base/orders/A"


# --- the query

QUERIES: list[tuple[str, JSON, Style, str]] = [
    ("a string", "a b&c=d", Style.REPEAT, "x=a%20b%26c%3Dd"),
    ("a plus", "a+b", Style.REPEAT, "x=a%2Bb"),
    ("a number", 1.5, Style.REPEAT, "x=1.5"),
    ("false", False, Style.REPEAT, "x=false"),
    ("null", None, Style.REPEAT, ""),
    ("a list", ["a", 1, True], Style.REPEAT, "x=a&x=1&x=true"),
    ("an empty list", [], Style.REPEAT, ""),
    ("an object", {"a": [1]}, Style.REPEAT, "x=%7B%22a%22%3A%5B1%5D%7D"),
    ("commas", ["a,b", "c"], Style.COMMA, "x=a%2Cb,c"),
    ("an object with commas", {"r": 1, "g": "2"}, Style.COMMA, "x=r,1,g,2"),
    ("spaces", ["a", "b"], Style.SPACE, "x=a%20b"),
    ("pipes", ["a", "b"], Style.PIPE, "x=a%7Cb"),
    ("a spread object", {"r": 1, "g": "a&b"}, Style.SPREAD, "r=1&g=a%26b"),
    ("a spread list", ["a", "b"], Style.SPREAD, "x=a&x=b"),
    ("a deep object", {"r": 1, "g": 2}, Style.DEEP, "x%5Br%5D=1&x%5Bg%5D=2"),
    ("JSON", "a", Style.JSON, "x=%22a%22"),
    ("a list as JSON", [1, 2], Style.JSON, "x=%5B1%2C2%5D"),
]


@pytest.mark.parametrize(("what", "value", "style", "query"), QUERIES, ids=[row[0] for row in QUERIES])
def test_a_query_argument_is_written_in_its_style(what: str, value: JSON, style: Style, query: str) -> None:
    target = compose("GET", "/", {"x": value}, **placed(ParameterPlace.QUERY, style=style)).target
    assert target == (f"/base/?{query}" if query else "/base/")


@pytest.mark.covers("002.execution.arguments-placed-by-verb")
@pytest.mark.parametrize("method", ["GET", "DELETE", "HEAD", "OPTIONS"])
def test_verbs_without_a_body_carry_arguments_in_the_query(method: str) -> None:
    composed = compose(method, "/orders/{id}", {"id": "A", "state": "open", "tag": ["a", "b"]})
    assert composed == Composed("/base/orders/A?state=open&tag=a&tag=b", (), None)


@given(st.dictionaries(st.text(min_size=1), st.text() | st.integers(), max_size=4))
def test_a_query_says_what_the_arguments_said(arguments: dict[str, str | int]) -> None:
    target = compose("GET", "/", dict(arguments)).target
    expected = [(name, str(value)) for name, value in arguments.items()]
    assert (
        parse_qsl(target.partition("?")[2], keep_blank_values=True, strict_parsing=bool(expected)) == expected
    )
    assert target.isascii()
    assert target.isprintable()


FIXED = "/orders?tenant=acme&filter[state]=open&flag"


@pytest.mark.covers("002.execution.fixed-query-holds")
@pytest.mark.parametrize(
    "name",
    [
        "tenant", "Tenant", " tenant", "tenant[]", "tenant[x]", "tenant[x][y]", "flag", "filter",
        "filter[state]", "filter[state][]", "FILTER[state]",
    ],
)  # fmt: skip
def test_no_argument_stands_beside_what_the_operator_fixed(name: str) -> None:
    """Servers differ in which of two equal names they believe, and in which names are equal."""
    pointer = f"/{name}"
    assert refused("GET", FIXED, {name: "evil"}) == (pointer,)
    assert refused("GET", FIXED, {name: ["evil"]}) == (pointer,)
    assert refused("POST", FIXED, {"x": "evil"}, **placed(ParameterPlace.QUERY, name)) == ("/x",)
    spread = placed(ParameterPlace.QUERY, style=Style.SPREAD)
    assert refused("GET", FIXED, {"x": {"a": 1, name: "evil"}}, **spread) == (f"/x{pointer}",)


def test_a_deep_member_does_not_stand_beside_what_the_operator_fixed() -> None:
    deep = {"parameters": (Parameter("x", ParameterPlace.QUERY, "filter", Style.DEEP),)}
    assert refused("GET", FIXED, {"x": {"owner": "ada", "state": "closed"}}, **deep) == ("/x/state",)
    target = compose("GET", FIXED, {"x": {"owner": "ada"}}, **deep).target
    assert target.endswith("&flag&filter%5Bowner%5D=ada")


@pytest.mark.parametrize("name", ["tenants", "ten", "filters", "filter_state", "x", "acme"])
def test_a_name_of_its_own_goes_beside_what_the_operator_fixed(name: str) -> None:
    assert compose("GET", FIXED, {name: 1}).target.endswith(f"&flag&{name}=1")


def test_what_is_not_in_the_query_is_not_compared_with_it() -> None:
    assert compose("GET", "/o/{tenant}?tenant=acme", {"tenant": "x"}).target == "/base/o/x?tenant=acme"
    assert compose("GET", "/o?tenant=acme", {"tenant": None}).target == "/base/o?tenant=acme"


def test_no_argument_stands_in_for_another_one() -> None:
    """The schema says what `top` may be, and nothing of `$top`."""
    top = Parameter("top", ParameterPlace.QUERY, "$top")
    spread = Parameter("x", ParameterPlace.QUERY, "x", Style.SPREAD)
    deep = Parameter("d", ParameterPlace.QUERY, "d", Style.DEEP)
    inner = Parameter("d_a", ParameterPlace.QUERY, "d[a]")
    given = {"parameters": (top, spread, deep, inner)}
    assert compose("GET", "/", {"top": 1, "x": {"y": 1}, "d": {"b": 1}}, **given).target == (
        "/base/?%24top=1&y=1&d%5Bb%5D=1"
    )
    assert refused("GET", "/", {"top": 1, "$top": 2}, **given) == ("/$top",)
    assert refused("GET", "/", {"$TOP": 2}, **given) == ("/$TOP",)
    assert refused("GET", "/", {"x": {"$top": 2}}, **given) == ("/x/$top",)
    assert refused("GET", "/", {"d": {"a": 2}}, **given) == ("/d/a",)
    assert compose("GET", "/", {"x": {"x": 2}}, **given).target == "/base/?x=2"
    assert refused("POST", "/", {"y": 2}, **placed(ParameterPlace.BODY, "y")) == ("/y",)


def test_an_argument_that_was_a_text_once_may_be_anything_the_next_time() -> None:
    composer = Composer(HttpOperation("g", BASE, "GET", "/?tenant=acme"))
    targets = [composer.compose({"q": value}).target for value in ("a b", ["a", "b"], None, "c", {"d": 1}, 2)]
    assert [target.partition("acme")[2] for target in targets] == [
        "&q=a%20b", "&q=a&q=b", "", "&q=c", "&q=%7B%22d%22%3A1%7D", "&q=2"
    ]  # fmt: skip
    for _ in range(2):
        with pytest.raises(Refused):
            composer.compose({"q": "a", "TENANT": "other"})


def test_a_composer_remembers_some_names_and_composes_all() -> None:
    composer = Composer(HttpOperation("g", BASE, "GET", "/"))
    for number in range(1000):
        assert composer.compose({f"n{number}": "a&b"}).target == f"/base/?n{number}=a%26b"
    assert len(composer._plain_pairs) < 100


def test_two_parameters_may_be_declared_to_have_one_name() -> None:
    given = (
        Parameter("low", ParameterPlace.QUERY, "price"),
        Parameter("high", ParameterPlace.QUERY, "Price"),
    )
    assert compose("GET", "/", {"low": 1, "high": 2}, parameters=given).target == "/base/?price=1&Price=2"


def test_a_name_of_many_brackets_is_no_work() -> None:
    name = "a[" * 100_000
    assert compose("GET", "/?b=1", {name: 1}).target.count("%5B") == 100_000


# --- the body


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_other_verbs_carry_arguments_as_a_json_body(method: str) -> None:
    composed = compose(method, "/orders/{id}", {"id": "A", "cents": 100, "note": None, "tags": ["a"]})
    assert composed == Composed("/base/orders/A", (), b'{"cents":100,"note":null,"tags":["a"]}')


@pytest.mark.parametrize(
    ("options", "arguments", "body"),
    [
        ({}, {}, b"{}"),
        ({"has_body": False}, {}, b""),
        ({"body": "order"}, {"order": [1, 2]}, b"[1,2]"),
        ({"body": "order"}, {"order": None}, b"null"),
        ({"body": "order"}, {}, b""),
        (placed(ParameterPlace.BODY, "otherName"), {"x": 1, "y": 2}, b'{"otherName":1,"y":2}'),
    ],
)
def test_a_body_is_what_the_operation_says(
    options: dict[str, Any], arguments: JSONObject, body: bytes
) -> None:
    assert compose("POST", "/orders", arguments, **options).body == body


def test_a_delete_has_a_body_where_the_operation_says_so() -> None:
    assert compose("DELETE", "/orders", {"ids": [1]}, has_body=True).body == b'{"ids":[1]}'


# --- headers

HEADERS: list[tuple[str, JSON, Style, list[tuple[str, str]]]] = [
    ("a string", "abc", Style.REPEAT, [("X-Tenant", "abc")]),
    ("a number", 5, Style.REPEAT, [("X-Tenant", "5")]),
    ("null", None, Style.REPEAT, []),
    ("a list", ["a", 1], Style.COMMA, [("X-Tenant", "a,1")]),
    ("an object", {"a": 1}, Style.REPEAT, [("X-Tenant", '{"a":1}')]),
    ("JSON", "a", Style.JSON, [("X-Tenant", '"a"')]),
    ("an empty list", [], Style.COMMA, []),
    ("a list of nothing", [None], Style.COMMA, []),
    ("an empty object", {}, Style.PAIRS, []),
    ("an object of nothing", {"a": None}, Style.COMMA, []),
    ("an empty list as JSON", [], Style.JSON, [("X-Tenant", "[]")]),
    ("an empty string", "", Style.COMMA, [("X-Tenant", "")]),
]


@pytest.mark.parametrize(("what", "value", "style", "written"), HEADERS, ids=[row[0] for row in HEADERS])
def test_a_header_argument_is_written_in_its_header(
    what: str, value: JSON, style: Style, written: list[tuple[str, str]]
) -> None:
    composed = compose("GET", "/", {"x": value}, **placed(ParameterPlace.HEADER, "X-Tenant", style))
    assert (composed.target, list(composed.headers)) == ("/base/", written)


@pytest.mark.parametrize(
    "value", ["a\r\nX-Admin: 1", "a\nb", "a\rb", "a\x00b", "é", "a\x7f", ["a", "b\n"], "\u2028", "\x85"]
)
def test_a_header_argument_cannot_end_its_line(value: JSON) -> None:
    assert refused("GET", "/", {"x": value}, **placed(ParameterPlace.HEADER, "X-Tenant")) == ("/x",)


@pytest.mark.parametrize("value", [" a", "a ", "  a  ", " "])
def test_a_header_argument_is_not_silently_stripped(value: str) -> None:
    assert refused("GET", "/", {"x": value}, **placed(ParameterPlace.HEADER, "X-Tenant")) == ("/x",)


# --- before anything is asked of anybody


def test_what_would_be_refused_is_known_without_an_attempt() -> None:
    composer = Composer(HttpOperation("g", BASE, "GET", "/{id}?tenant=acme"))
    assert composer.refuse({"id": "A"}) is None
    for arguments, pointer in (({"id": ".."}, "/id"), ({"id": "A", "tenant": "x"}, "/tenant")):
        refusal = composer.refuse(dict(arguments))
        assert refusal is not None
        assert (refusal.reason, refusal.findings[0].pointer) == (Reason.BAD_ARGUMENTS, pointer)
        assert refusal.__traceback__ is None


def test_what_is_refused_is_told_without_its_value() -> None:
    with pytest.raises(Refused) as caught:
        compose("GET", "/{id}", {"id": "../hunter2"})
    assert "hunter2" not in caught.value.findings[0].message


def test_no_argument_sets_a_cookie_that_is_a_credential() -> None:
    credentials = (CredentialUse("login", "cookie", "session"),)
    cookie = Parameter("x", ParameterPlace.COOKIE, "x", Style.SPREAD)
    given: dict[str, Any] = {"parameters": (cookie,), "credentials": credentials}
    assert compose("GET", "/", {"x": {"theme": "dark"}}, **given).cookies == "theme=dark"
    assert refused("GET", "/", {"x": {"session": "mine"}}, **given) == ("/x/session",)


# --- items that could not be told apart


@pytest.mark.parametrize(
    ("place", "style", "value"),
    [
        (ParameterPlace.QUERY, Style.PIPE, ["a|b"]),
        (ParameterPlace.QUERY, Style.SPACE, ["a b"]),
        (ParameterPlace.HEADER, Style.COMMA, ["a,b"]),
        (ParameterPlace.COOKIE, Style.PIPE, ["a|b"]),
    ],
)
def test_a_list_that_would_be_split_elsewhere_is_refused(
    place: ParameterPlace, style: Style, value: JSON
) -> None:
    assert refused("GET", "/", {"x": value}, **placed(place, "X", style)) == ("/x",)


def test_a_list_that_would_be_split_elsewhere_is_refused_in_a_path_and_a_form() -> None:
    label = placed(ParameterPlace.PATH, "x", Style.LABEL_EXPLODED)
    assert refused("GET", "/{x}", {"x": ["a.b"]}, **label) == ("/x",)
    for media in ("application/x-www-form-urlencoded", "multipart/form-data"):
        form = {"request": media, "parts": (BodyPart("x", Style.PIPE),)}
        assert refused("POST", "/", {"x": ["a|b"]}, **form) == ("/x",)


# --- a body and the query


FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


@pytest.mark.parametrize("request_type", [*FORMS, "application/json"])
@pytest.mark.parametrize("name", ["tenant", "Tenant", "tenant[]", "api_key"])
def test_a_body_cannot_override_what_is_fixed_in_the_query(request_type: str, name: str) -> None:
    key = (CredentialUse("key", "query", "api_key"),)
    options: dict[str, Any] = {"request": request_type, "credentials": key}
    for whole, place in ((None, ()), ("body", ("body",))):
        arguments: JSONObject = {name: "evil"} if whole is None else {whole: {name: "evil"}}
        (pointer,) = refused("POST", "/orders?tenant=acme", arguments, body=whole, **options)
        assert pointer == "/" + "/".join((*place, name))


def test_members_of_a_spread_field_cannot_override_the_query() -> None:
    for request_type in FORMS:
        options: dict[str, Any] = {"request": request_type, "parts": (BodyPart("more", Style.SPREAD),)}
        assert refused("POST", "/?tenant=acme", {"more": {"tenant": "x"}}, **options) == ("/more/tenant",)


def test_a_described_member_may_have_a_name_of_the_query() -> None:
    path = "/orders?tenant=acme"
    arguments: JSONObject = {"tenant": {"id": "a"}}
    described = compose("POST", path, arguments, body_members=frozenset({"tenant"}))
    assert described.body == b'{"tenant":{"id":"a"}}'
    form = compose("POST", path, arguments, request=FORMS[0], parts=(BodyPart("tenant", Style.DEEP),))
    assert form.body == b"tenant%5Bid%5D=a"
    assert compose("POST", path, {"body": ["tenant"]}, body="body").body == b'["tenant"]'
