"""What all requests of an operation have in common, and what each call adds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from portbook.apis.arguments_put_into_request import Composed
from portbook.apis.gateway import Gateway
from portbook.executors.api_credentials import Credentials, SentCredentials
from portbook.executors.http_request_threads_and_uploads import RequestForm, proxy_of
from portbook.model import Identity, Run
from portbook.net.http_client import HttpClient
from portbook.tools.http_operation import HttpOperation

RUN = Run(1000, Identity("r-1", "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331b7ad6b7169203331"))


def form(gateway: dict[str, Any] | None = None, **options: Any) -> RequestForm:
    api = Gateway("api", "https://a.example", **(gateway or {}))
    operation = HttpOperation("api", "https://a.example", "GET", "/", **options)
    assert operation.destination is not None
    return RequestForm("api.root", operation, operation.destination, api, Credentials(api, {}, HttpClient()))


@pytest.mark.parametrize(
    ("gateway", "options", "retries", "max_bytes"),
    [
        ({}, {}, 0, 1_000),
        ({}, {"is_idempotent": True}, 5, 1_000),
        ({}, {"is_idempotent": True, "retries": 0}, 0, 1_000),
        ({}, {"is_idempotent": False, "retries": 3}, 0, 1_000),
        ({}, {"max_response_bytes": 7}, 0, 7),
    ],
)
def test_what_an_operation_says_goes_before_what_its_gateway_says(
    gateway: dict[str, Any], options: dict[str, Any], retries: int, max_bytes: int
) -> None:
    made = form({"retries": 5, "max_response_bytes": 1_000, **gateway}, **options)
    assert (made.retries, made.max_response_bytes) == (retries, max_bytes)


@pytest.mark.parametrize(
    ("target", "pairs", "sent"),
    [("/a", "", "/a"), ("/a", "key=x", "/a?key=x"), ("/a?b=c", "key=x", "/a?b=c&key=x")],
)
def test_credentials_of_a_query_come_last(target: str, pairs: str, sent: str) -> None:
    request = form().filled(Composed(target), SentCredentials("", pairs), RUN)
    assert request.target == sent


def test_a_request_has_the_lines_of_gateway_call_arguments_and_credentials() -> None:
    made = form({"headers": (("X-Env", "test"),)}, response="text/csv")
    composed = Composed("/", (("X-Argument", "a"),), b"{}", "application/json", "seen=1")
    run = RUN._replace(session="s\r\n1", correlation="c")
    request = made.filled(composed, SentCredentials("Authorization: Bearer t\r\n", "", "key=2"), run)
    first, *lines = request.headers.decode().splitlines()
    assert first.startswith("User-Agent: portbook/")
    assert lines == [
        "Accept-Encoding: identity",
        "X-Env: test",
        "Accept: text/csv",
        "Content-Type: application/json",
        "X-Request-ID: r-1",
        "X-Trace-ID: 0af7651916cd43dd8448eb211c80319c",
        "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "X-Correlation-ID: c",
        "X-Session-ID: s1",
        "X-Argument: a",
        "Cookie: seen=1; key=2",
        "Authorization: Bearer t",
    ]


def test_a_gateway_may_be_behind_a_proxy_and_trust_its_own_certificates() -> None:
    made = form({"proxy": "http://proxy.example:3128", "ca_file": Path("ca.pem")})
    request = made.filled(Composed("/"), SentCredentials(""), RUN)
    assert request.proxy is not None
    assert (request.proxy.authority, request.ca_file) == ("proxy.example:3128", Path("ca.pem"))
    assert proxy_of(Gateway("api", "https://a.example")) is None
