"""Which route a request is for, and whether it may be here at all."""

from __future__ import annotations

import pytest

from support.portbook_process import HttpServer, invoke


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content_type": "application/json"}, 200),
        ({"content_type": "Application/JSON; charset=utf-8"}, 200),
        ({"content_type": "text/plain"}, 415),
        ({"content_type": "application/jsonp"}, 415),
        ({"content_type": "application/x-www-form-urlencoded"}, 415),
        ({"host": "localhost"}, 200),
        ({"host": "LOCALHOST:1234"}, 200),
        ({"host": "[::1]:80"}, 200),
        ({"host": "evil.test"}, 403),
        ({"host": "127.0.0.1.evil.test"}, 403),
        ({"host": "localhost@evil.test"}, 403),
        ({"host": ""}, 403),
        ({"host": "[::1"}, 403),
        ({"host": "localhost:80", "origin": "http://localhost:80"}, 200),
        ({"host": "localhost:80", "origin": "http://localhost:81"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "https://evil.test"}, 403),
        ({"origin": "http://[::1"}, 403),
    ],
)
def test_only_json_for_this_host_from_this_origin_is_read(
    server: HttpServer, headers: dict[str, str], status: int
) -> None:
    response = server.rpc(invoke("echo", {"text": "x"}), **headers)
    assert response.status == status
    assert ("result" in response.json) == (status == 200)
    assert response.json["jsonrpc"] == "2.0"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/rpc", 405), ("POST", "/", 405), ("GET", "/nothing", 404), ("PUT", "/rpc", 405)],
)
def test_other_methods_and_paths_are_turned_away(
    server: HttpServer, method: str, path: str, status: int
) -> None:
    assert server.request(path, b"{}" if method != "GET" else None, method=method).status == status


def test_the_page_is_for_this_host_alone(server: HttpServer) -> None:
    assert server.request("/", host="evil.test").status == 403
    assert server.request("/", method="HEAD").body == b""
