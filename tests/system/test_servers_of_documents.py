"""Servers of a document, from outside: where a call goes, and what is said where it may not go."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.portbook_process import environment, run
from support.shop_api import operation, write_shop
from support.threaded_api import Upstream, upstream


@pytest.fixture
def api() -> Iterator[Upstream]:
    with upstream() as started:
        yield started


def test_without_base_url_operations_are_called_at_the_documents_servers(
    tmp_path: Path, api: Upstream
) -> None:
    here = f"http://127.0.0.1:{api.port}"
    variables = {"version": {"default": "v1", "enum": ["v1", "v2"]}}
    write_shop(
        tmp_path,
        f'server_variables = {{ version = "v2" }}\n[policy]\nallowed_domains = ["127.0.0.1:{api.port}"]\n',
        operation("one"),
        operation("two", servers=[{"url": f"{here}/own"}]),
        servers=[{"url": here + "/{version}", "variables": variables}],
    )
    for tool in ("one", "two"):
        done = run("call", f"shop.{tool}", cwd=tmp_path)
        assert done.code == 0, done.err
    assert [path for _, path in api.seen] == ["/v2/one", "/own/two"]


def test_base_url_wins_over_every_server(tmp_path: Path, api: Upstream) -> None:
    write_shop(
        tmp_path,
        f'base_url = "http://127.0.0.1:{api.port}"\n',
        operation("one", servers=[{"url": "https://own.example"}]),
        servers=[{"url": "https://a.example"}],
    )
    assert run("call", "shop.one", cwd=tmp_path).code == 0
    assert api.seen == [("GET", "/one")]


def test_the_variable_of_the_base_url_wins_over_the_documents_servers(tmp_path: Path, api: Upstream) -> None:
    write_shop(tmp_path, "", operation("one"), servers=[{"url": "https://a.example"}])
    env = environment(APIM_BASE_URL=f"http://127.0.0.1:{api.port}/apim")
    assert run("call", "shop.one", cwd=tmp_path, env=env).code == 0
    assert api.seen == [("GET", "/apim/one")]


@pytest.mark.parametrize("host", ["http://127.0.0.1:{port}", "http://localhost:{port}", "http://a.example"])
def test_a_document_cannot_send_calls_where_the_operator_did_not(
    tmp_path: Path, api: Upstream, host: str
) -> None:
    server = host.format(port=api.port)
    write_shop(tmp_path, "", operation("one"), servers=[{"url": server}])
    done = run("call", "shop.one", cwd=tmp_path)
    assert done.code == 3
    assert api.seen == []
    assert (
        f"portbook.toml:1:1: the document of http.shop names the server {server.partition('//')[2]}, which "
        "is not public https; calls of its 1 tools are denied; set base_url, or list it in allowed_domains"
    ) in done.err


def test_a_server_is_held_against_the_allowlist(tmp_path: Path) -> None:
    settings = '[policy]\nallowed_domains = ["b.example"]\n'
    write_shop(tmp_path, settings, operation("one"), servers=[{"url": "https://a.example"}])
    done = run("explain", "shop.one", cwd=tmp_path)
    assert json.loads(done.out)["decision"] == "deny"
    assert "policy.allowed_domains excludes a.example, which the document of http.shop at" in done.err


def test_an_operation_without_a_server_is_left_out_and_the_rest_is_served(tmp_path: Path) -> None:
    write_shop(tmp_path, "", operation("one", servers=[{"url": "https://a.example"}]), operation("two"))
    assert [tool["name"] for tool in json.loads(run("tools", cwd=tmp_path).out)["tools"]] == ["shop.one"]
    [left] = json.loads(run("tools", "--left-out", cwd=tmp_path).out)["left_out"]
    assert (left["tool"], left["cause"]) == ("shop.two", "server")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("", ":1:1: http.shop.base_url is not given, and the document names no server; set base_url"),
        (
            'server_variables = { regoin = "eu" }\n',
            ":3:22: http.shop.server_variables.regoin is not a variable of the document's servers",
        ),
    ],
)
def test_settings_that_name_no_server_stop_the_start_with_their_line(
    tmp_path: Path, settings: str, words: str
) -> None:
    servers: list[Any] = [{"url": "https://{region}.example", "variables": {}}] if settings else []
    write_shop(tmp_path, settings, operation("one"), servers=servers)
    done = run("serve", "--stdio", cwd=tmp_path)
    assert done.code == 2
    assert words in done.err


def test_two_documents_of_one_gateway_share_no_name_by_accident(tmp_path: Path, api: Upstream) -> None:
    write_shop(tmp_path, "", operation("same"), operation("first"))
    (tmp_path / "more.json").write_text((tmp_path / "shop.json").read_text().replace("first", "second"))
    (tmp_path / "portbook.toml").write_text(
        f'[http.shop]\nbase_url = "http://127.0.0.1:{api.port}"\nopenapi = ["shop.json", "more.json"]\n'
    )
    names = [tool["name"] for tool in json.loads(run("tools", cwd=tmp_path).out)["tools"]]
    assert [name for name in names if "same" not in name] == ["shop.first", "shop.second"]
    same = [name for name in names if "same" in name]
    assert len(set(same)) == 2
    assert "shop.same" not in same
    for name in same:
        assert run("call", name, cwd=tmp_path).code == 0
    assert api.seen == [("GET", "/same")] * 2


def test_the_server_of_a_single_operation_gets_no_call_unless_the_operator_lists_it(tmp_path: Path) -> None:
    write_shop(
        tmp_path,
        'bearer = { env = "TOKEN" }\n',
        operation("one"),
        operation("two", servers=[{"url": "https://elsewhere.example"}]),
        servers=[{"url": "https://shop.example"}],
    )
    env = environment(TOKEN="a-token-of-the-shop")
    denied = run("explain", "shop.two", cwd=tmp_path, env=env)
    assert b'"decision":"deny"' in denied.out
    assert b'"rule":"allowed_domains"' in denied.out
    assert (
        "names the server elsewhere.example, which it has for single operations only; calls of its 1 tools "
        "are denied; set base_url, or list it in allowed_domains"
    ) in denied.err
    assert b'"decision":"allow"' in run("explain", "shop.one", cwd=tmp_path, env=env).out


@pytest.mark.parametrize(
    ("server", "why"),
    [
        ({"url": "/v1"}, "it is relative, and this document was not fetched from an address"),
        ({"url": "ftp://a.example"}, "a URL starts with http:// or https:// and a host"),
        ({"url": "https://ada:word@a.example"}, "a URL has no user name or password in it"),
        ({"url": "https://[bad"}, "a host is an ASCII name or an IP address"),
        ({"url": "https://{region}.example"}, "its variable region has no value; set it in server_variables"),
        ({"description": "here"}, "a server needs a url"),
    ],
)
def test_a_server_that_cannot_be_called_is_told_with_its_place(
    tmp_path: Path, server: dict[str, str], why: str
) -> None:
    write_shop(tmp_path, "", operation("one"), servers=[server])
    done = run("serve", "--stdio", cwd=tmp_path)
    assert done.code == 2
    assert "portbook.toml:1:1: http.shop.base_url is not given, and the document names none" in done.err
    assert f"shop.json#/servers/0/url: {why}" in done.err
    assert "; set base_url to the API's address\n" in done.err
    assert "word@" not in done.err
