"""What is missing, wrong or unknown in a table is named by its place."""

from __future__ import annotations

import pytest

from support.http_tables import BASE, TOOL, complaint

COMPLAINTS = [
    ("[http]\norders = 1", "http.orders must be a table"),
    ('[http."a b"]\nbase_url = "x"', "http.a b is not a valid name"),
    ('[http."a.b"]\nbase_url = "x"', "http.a.b is not a valid name"),
    ("[http.orders]", "http.orders.base_url is not given, and the environment variable APIM_BASE_URL is"),
    (
        '[http.orders]\nbase_url = { env = "X" }',
        "http.orders.base_url is not given, and the environment variable X",
    ),
    ("[http.orders]\nbase_url = 5", "http.orders.base_url must be a URL"),
    ("[http.orders]\nbase_url = { }", "http.orders.base_url must be a URL"),
    (
        '[http.orders]\nbase_url = { evn = "X" }',
        "http.orders.base_url.evn is not a valid key; did you mean env?",
    ),
    (BASE + "retrys = 1", "http.orders.retrys is not a valid key; did you mean retries?"),
    (BASE + "zzz = 1", "http.orders.zzz is not a valid key; valid keys are base_url, bearer, "),
    (BASE + "retries = 11", "http.orders.retries must be a whole number from 0 to 10"),
    (BASE + "retries = true", "http.orders.retries must be a whole number"),
    (BASE + "max_response_bytes = 0", "http.orders.max_response_bytes must be a whole number"),
    (BASE + "timeout_ms = 0", "http.orders.timeout_ms must be a whole number"),
    (BASE + 'subscription_key = "abc"', "http.orders.subscription_key must be { env = "),
    (BASE + "subscription_key = { }", "http.orders.subscription_key must be { env = "),
    (BASE + 'subscription_key = { env = "A", file = "b" }', "http.orders.subscription_key must be { env = "),
    (BASE + 'bearer = { vault = "x" }', "http.orders.bearer.vault is not a valid key"),
    (BASE + "bearer = { env = 5 }", "http.orders.bearer.env must be a string"),
    (
        BASE + 'bearer = { env = "A" }\nmanaged_identity = { resource = "r" }',
        "http.orders.bearer cannot be combined with managed_identity",
    ),
    (
        BASE + 'bearer = { env = "A" }\nheaders = { authorization = { env = "B" } }',
        "http.orders.bearer cannot be combined with managed_identity",
    ),
    (BASE + "managed_identity = { }", "http.orders.managed_identity needs resource"),
    (BASE + "managed_identity = true", "http.orders.managed_identity must be a table"),
    (BASE + 'headers = { "a b" = "c" }', "http.orders.headers.a b is not the name of a header"),
    (BASE + 'headers = { Host = "c" }', "http.orders.headers.Host is a header that Portbook writes itself"),
    (
        BASE + 'headers = { X-Request-ID = "c" }',
        "http.orders.headers.X-Request-ID is a header that Portbook writes",
    ),
    (BASE + 'headers = { X-A = "a\\r\\nb" }', "http.orders.headers.X-A must be printable ASCII"),
    (BASE + "headers = { X-A = 5 }", "http.orders.headers.X-A must be { env = "),
    (
        BASE + 'subscription_key_header = "a b"',
        "http.orders.subscription_key_header is not the name of a header",
    ),
    (BASE + 'proxy = "proxy:3128"', "http.orders.proxy cannot be used: a URL starts with"),
    (BASE + 'proxy = "https://proxy"', "http.orders.proxy must be http://host:port"),
    (BASE + 'include = ["x"]', "http.orders.include applies to imported tools"),
    (BASE + "tools = 5", "http.orders.tools must be a table"),
    (BASE + "[http.orders.tools]\nit = 5", "http.orders.tools.it must be a table"),
    (BASE + "[http.orders.tools.'a b']\n", "http.orders.tools.a b is not a valid name for a tool"),
    (BASE + "[http.orders.tools.it]\n", "http.orders.tools.it.method must be one of GET, "),
    (BASE + '[http.orders.tools.it]\nmethod = "TRACE"\n', "http.orders.tools.it.method must be one of GET, "),
    (BASE + '[http.orders.tools.it]\nmethod = "GET"\n', "http.orders.tools.it.path must start with /"),
    (TOOL + "pth = 1", "http.orders.tools.it.pth is not a valid key; did you mean path?"),
    (TOOL + 'effect = "none"', "http.orders.tools.it.effect must be one of read, write, destructive"),
    (TOOL + "effect = []", "http.orders.tools.it.effect must be one of read, write, destructive"),
    (TOOL + "timeout_ms = 1.5", "http.orders.tools.it.timeout_ms must be a whole number"),
    (TOOL + "input = true", "http.orders.tools.it.input must be a table"),
    (
        TOOL + "input = { default = 1979-05-27 }",
        "http.orders.tools.it.input has a value that JSON cannot",
    ),
    (TOOL + "output = 5", "http.orders.tools.it.output must be a JSON Schema"),
    (TOOL + 'query = "x"', "http.orders.tools.it.query must be a list of strings"),
    (TOOL + 'idempotent = "yes"', "http.orders.tools.it.idempotent must be true or false"),
    (TOOL + 'response = "JSON"', "http.orders.tools.it.response must be a content type"),
    (TOOL + 'header = { x = "Authorization" }', "http.orders.tools.it.header.x must be the name of a header"),
    (TOOL + 'header = { x = "cookie" }', "http.orders.tools.it.header.x must be the name of a header"),
    (TOOL + 'header = { x = "X-Trace-ID" }', "http.orders.tools.it.header.x must be the name of a header"),
    (TOOL + 'header = { x = "Ocp-Apim-Subscription-Key" }', "http.orders.tools.it.header.x must be the name"),
]


@pytest.mark.parametrize(("text", "expected"), COMPLAINTS, ids=[row[1][:60] for row in COMPLAINTS])
def test_what_cannot_be_used_is_named_with_its_place(text: str, expected: str) -> None:
    assert complaint(text).startswith(expected)
