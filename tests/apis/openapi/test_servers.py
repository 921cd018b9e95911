"""The server of each operation: levels, variables, relative addresses, and none at all."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.apis.openapi.document_files import DocumentNode
from portbook.apis.openapi.servers import Server, ServerChooser, ServerVariables
from portbook.apis.table_reader import Table


class Complaint(Exception):
    pass


def complain(path: tuple[str | int, ...], sentence: str) -> Exception:
    return Complaint(f"{'.'.join(map(str, path))} {sentence}")


def node(servers: Any, pointer: str = "") -> DocumentNode:
    return DocumentNode({} if servers is None else {"servers": servers}, "api.json", pointer)


def server(url: str, **variables: Any) -> dict[str, Any]:
    return {"url": url, "variables": variables}


A, B, C = server("https://a.example/v1/"), server("https://b.example"), server("https://c.example")


@pytest.mark.parametrize(
    ("root", "item", "operation", "chosen"),
    [
        ([A], None, None, "https://a.example/v1"),
        ([A], [B], None, "https://b.example"),
        ([A], [B], [C], "https://c.example"),
        ([A], [], [], "https://a.example/v1"),
        ([server("http://a.example"), A], None, None, "https://a.example/v1"),
        ([server("http://a.example"), server("http://b.example")], None, None, "http://a.example"),
        ([server("ftp://a.example"), B], None, None, "https://b.example"),
        ([server("https://a.example?x=1"), B], None, None, "https://b.example"),
        ([server("https://user@a.example")], None, None, None),
        ([server("/v1")], None, None, None),
        ([7, {"url": 7}], None, None, None),
        (None, None, None, None),
    ],
    ids=str,
)
def test_the_nearest_servers_count_and_of_these_the_first_with_https(
    root: Any, item: Any, operation: Any, chosen: str | None
) -> None:
    chooser = ServerChooser(node(root))
    expected = None if chosen is None else Server(chosen, is_proposed=True)
    assert chooser.choose(node(item, "/paths/~1a"), node(operation, "/paths/~1a/get")) == expected
    # Once more, for what is remembered; and the document's own is not confused with the path's.
    assert chooser.choose(node(item, "/paths/~1a"), node(operation, "/paths/~1a/get")) == expected
    assert chooser.choose() == ServerChooser(node(root)).choose()


@pytest.mark.parametrize(
    ("url", "chosen", "is_proposed"),
    [
        ("/v1", "https://docs.example:8443/v1", False),
        ("v1/", "https://docs.example:8443/api/v1", False),
        ("../v2", "https://docs.example:8443/v2", False),
        ("https://docs.example:8443/v3", "https://docs.example:8443/v3", False),
        ("https://docs.example/v3", "https://docs.example/v3", True),
        ("//other.example/x", "https://other.example/x", True),
        ("https://a.example", "https://a.example", True),
    ],
)
def test_a_relative_server_starts_where_the_document_is_from(
    url: str, chosen: str, is_proposed: bool
) -> None:
    chooser = ServerChooser(node([server(url)]), None, "https://docs.example:8443/api/openapi.json")
    assert chooser.choose() == Server(chosen, is_proposed)


def test_a_variable_may_have_a_long_name() -> None:
    name = "region_" * 20
    servers = node([server(f"https://{{{name}}}.example", **{name: {"default": "eu"}})])
    assert ServerChooser(servers).choose() == Server("https://eu.example", is_proposed=True)


def test_without_servers_the_documents_own_host_is_the_server() -> None:
    chooser = ServerChooser(node(None), None, "https://docs.example/openapi.json")
    assert chooser.choose() == Server("https://docs.example")


REGION = {"default": "eu", "enum": ["eu", "us"]}


@pytest.mark.parametrize(
    ("given", "variables", "chosen"),
    [
        (server("https://{region}.a.example", region=REGION), {}, "https://eu.a.example"),
        (server("https://{region}.a.example", region=REGION), {"region": "us"}, "https://us.a.example"),
        (server("https://a.example:{port}", port={"default": 8443}), {}, "https://a.example:8443"),
        (server("https://{r}.a.example", r={"enum": ["x", "y"]}), {}, "https://x.a.example"),
        (server("https://{r}.a.example"), {}, None),
        (server("https://{r}.a.example"), {"r": "z"}, "https://z.a.example"),
        (server("https://a.example/{base}", base={"default": ""}), {}, "https://a.example"),
        (server("https://{r}.a.example", r={"default": "a b"}), {}, None),
    ],
    ids=str,
)
def test_variables_have_the_operators_value_or_their_default(
    given: Any, variables: dict[str, str], chosen: str | None
) -> None:
    values = ServerVariables(variables)
    found = ServerChooser(node([given]), values).choose()
    assert (None if found is None else found.base_url) == chosen
    values.require_known(Table({}, ("http", "x", "server_variables"), complain))


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"regoin": "eu"}, "regoin is not a variable of the document's servers; did you mean region?"),
        ({"zzz": "eu"}, "zzz is not a variable of the document's servers; it has region"),
        ({"region": "uss"}, "region has a value that the document does not list; did you mean us?"),
        ({"region": "moon"}, "region has a value that the document does not list; use eu, us"),
    ],
    ids=str,
)
def test_a_variable_that_the_document_does_not_have_is_refused(
    variables: dict[str, str], sentence: str
) -> None:
    values = ServerVariables(variables)
    ServerChooser(node([server("https://{region}.a.example", region=REGION)]), values).choose()
    with pytest.raises(Complaint) as caught:
        values.require_known(Table({}, ("http", "x", "server_variables"), complain))
    assert str(caught.value) == f"http.x.server_variables.{sentence}"


def test_the_message_says_where_there_are_no_variables() -> None:
    values = ServerVariables({"region": "eu"})
    ServerChooser(node([A]), values).choose()
    with pytest.raises(Complaint, match=r"it has none$"):
        values.require_known(Table({}, ("http", "x", "server_variables"), complain))
