"""Security schemes of a document, as an operator and an API see them: what is sent, and what is said."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.portbook_process import environment, run
from support.shop_api import operation, write_shop
from support.threaded_api import Upstream, upstream

BASIC = base64.b64encode(b"ada:s-login").decode()
SECRETS = {
    "KEY": "s-key-123456",
    "QUERY": "s-query&1234",
    "SID": "s-session-12",
    "LOGIN": "s-login",
    "TOKEN": "s-token-1234",
}
CREDENTIALS = """
[http.shop.credentials]
key = { env = "KEY" }
query_key = { env = "QUERY" }
session = { env = "SID" }
login = { username = "ada", password = { env = "LOGIN" } }
token = { env = "TOKEN" }
"""


@pytest.fixture
def api() -> Iterator[Upstream]:
    with upstream() as started:
        yield started


def call(folder: Path, tool: str, *arguments: str, **secrets: str) -> Any:
    done = run("call", f"shop.{tool}", *arguments, "--json", cwd=folder, env=environment(**secrets))
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.mark.parametrize(
    ("requirement", "header", "before", "secret"),
    [
        ([{"key": []}], "x-key", "", "s-key-123456"),
        ([{"login": []}], "authorization", "Basic ", BASIC),
        ([{"token": ["read"]}], "authorization", "Bearer ", "s-token-1234"),
        ([{"session": []}], "cookie", "sid=", "s-session-12"),
    ],
    ids=str,
)
def test_an_operation_is_called_with_the_credential_of_its_scheme(
    tmp_path: Path, api: Upstream, requirement: Any, header: str, before: str, secret: str
) -> None:
    settings = f'base_url = "http://127.0.0.1:{api.port}"\n{CREDENTIALS}'
    write_shop(tmp_path, settings, operation("it", security=requirement))
    result = call(tmp_path, "it", **SECRETS)
    [sent] = api.headers
    assert sent[header] == before + secret
    others = {"x-key", "authorization", "cookie"} - {header}
    assert others.isdisjoint(sent)
    # The API echoes its headers: what it heard is redacted before the caller sees it.
    assert before + secret in api.headers[0].values()
    assert secret not in json.dumps(result)


def test_a_credential_in_the_query_is_encoded_and_no_argument_can_replace_it(
    tmp_path: Path, api: Upstream
) -> None:
    parameters = [
        {"name": "api_key", "in": "query", "required": True, "schema": {"type": "string"}},
        {"name": "q", "in": "query", "schema": {"type": "string"}},
    ]
    write_shop(
        tmp_path,
        f'base_url = "http://127.0.0.1:{api.port}"\n{CREDENTIALS}',
        operation("it", security=[{"query_key": []}], parameters=parameters),
    )
    call(tmp_path, "it", "q=x", **SECRETS)
    assert api.seen == [("GET", "/it?q=x&api_key=s-query%261234")]
    refused = run("call", "shop.it", "api_key=mine", cwd=tmp_path, env=environment(**SECRETS))
    assert refused.code == 2
    assert len(api.seen) == 1
    assert "s-query" not in "".join(path.read_text() for path in tmp_path.rglob("*.jsonl"))


def test_alternatives_are_tried_in_the_documents_order_and_all_of_one_are_sent(
    tmp_path: Path, api: Upstream
) -> None:
    write_shop(
        tmp_path,
        f'base_url = "http://127.0.0.1:{api.port}"\n[http.shop.credentials]\n'
        'key = { env = "KEY" }\nsession = { env = "SID" }\n',
        operation("both", security=[{"login": []}, {"key": [], "session": []}]),
        operation("open", security=[]),
        operation("document"),
        operation("optional", security=[{}, {"login": []}]),
        security=[{"key": []}],
    )
    for tool in ("both", "open", "document", "optional"):
        call(tmp_path, tool, **SECRETS)
    names = [sorted({"x-key", "cookie", "authorization"} & set(sent)) for sent in api.headers]
    assert names == [["cookie", "x-key"], [], ["x-key"], []]


def test_a_missing_credential_is_told_at_start_and_the_tool_is_served(tmp_path: Path, api: Upstream) -> None:
    write_shop(
        tmp_path,
        f'base_url = "http://127.0.0.1:{api.port}"\n',
        operation("a", security=[{"key": []}]),
        operation("b", security=[{"key": []}]),
        operation("c"),
    )
    listed = run("tools", cwd=tmp_path)
    assert [tool["name"] for tool in json.loads(listed.out)["tools"]] == ["shop.a", "shop.b", "shop.c"]
    assert listed.err == (
        "portbook: warning: portbook.toml:1:1: http.shop.credentials has nothing for key "
        "(apiKey in the header X-Key), which 2 of 3 operations require; they are called without it until "
        'you add key = { env = "VARIABLE" }\n'
    )
    assert call(tmp_path, "a")["path"] == "/a"


def test_a_credential_for_all_requests_still_works_and_counts_for_its_scheme(
    tmp_path: Path, api: Upstream
) -> None:
    write_shop(
        tmp_path,
        f'base_url = "http://127.0.0.1:{api.port}"\nbearer = {{ env = "TOKEN" }}\n',
        operation("it", security=[{"token": []}]),
    )
    done = run("call", "shop.it", cwd=tmp_path, env=environment(**SECRETS))
    assert (done.code, done.err) == (0, "portbook: note: secrets were redacted\n")
    assert api.headers[0]["authorization"] == "Bearer s-token-1234"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            '[http.shop.credentials]\nkei = { env = "KEY" }',
            ":5:1: http.shop.credentials.kei is not a",
        ),
        ('[http.shop.credentials]\nkey = "s-key"', ":5:1: http.shop.credentials.key must be { env"),
        (
            'bearer = { env = "T" }\n[http.shop.credentials]\nlogin = { env = "LOGIN" }',
            ":6:1: http.shop.credentials.login sets the header Authorization",
        ),
    ],
    ids=lambda value: value[:40],
)
def test_a_credential_that_fits_nothing_stops_the_start_with_its_line(
    tmp_path: Path, settings: str, words: str
) -> None:
    write_shop(tmp_path, f'base_url = "https://a.example"\n{settings}\n', operation("it"))
    done = run("serve", "--stdio", cwd=tmp_path)
    assert done.code == 2
    assert words in done.err
    assert "s-key" not in done.err
