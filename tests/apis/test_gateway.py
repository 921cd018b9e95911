"""A gateway as declared: its address, how it proves who we are, and which headers are its own."""

from __future__ import annotations

import pytest

from portbook.apis.gateway import Gateway, ManagedIdentity, Secret
from support.http_tables import HERE, TOOL, complaint, operation, read


def gateway(text: str, environ: dict[str, str] | None = None) -> Gateway:
    return read(f"[http.orders]\n{text}", environ).gateways[0]


@pytest.mark.covers("002.execution.base-url-per-environment")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('base_url = "https://a.example"', "https://a.example"),
        ("", "https://apim.example"),
        ('base_url = { env = "ORDERS_URL" }', "https://orders.example"),
    ],
)
def test_a_base_url_is_given_or_comes_from_the_environment(given: str, expected: str) -> None:
    environ = {"APIM_BASE_URL": "https://apim.example", "ORDERS_URL": "https://orders.example"}
    assert gateway(given, environ).base_url == expected


def test_a_gateway_says_how_to_prove_who_we_are() -> None:
    found = gateway(
        """
        base_url = "https://a.example"
        subscription_key = { env = "KEY" }
        subscription_key_header = "X-Key"
        bearer = { file = "secrets/token" }
        headers = { X-Plain = "a b", X-Secret = { env = "OTHER" } }
        proxy = "http://proxy.example:3128"
        ca_file = "ca.pem"
        retries = 0
        max_response_bytes = 1000
        """
    )
    assert found == Gateway(
        "orders",
        "https://a.example",
        headers=(("X-Plain", "a b"), ("X-Secret", Secret(env="OTHER"))),
        subscription_key=Secret(env="KEY"),
        subscription_key_header="X-Key",
        bearer=Secret(file=HERE / "secrets/token"),
        proxy="http://proxy.example:3128",
        ca_file=HERE / "ca.pem",
        retries=0,
        max_response_bytes=1000,
    )


def test_a_gateway_may_use_the_machines_identity() -> None:
    found = gateway(
        'base_url = "https://a.example"\n'
        'managed_identity = { resource = "api://x", client_id = "c", library = true }'
    )
    assert found.managed_identity == ManagedIdentity("api://x", "c", uses_library=True)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "ftp://a.example",
        "https://u:hunter2@a.example",
        "https://a.example?x=1",
        "https://127.1",
    ],
)
def test_a_base_url_that_cannot_be_used_is_a_warning_and_denied_later(url: str) -> None:
    found = read(f'[http.orders]\nbase_url = "{url}"\n[http.orders.tools.it]\nmethod = "GET"\npath = "/"')
    assert operation(found.specs[0]).destination is None
    assert found.specs[0].refuse is None
    assert len(found.warnings) == 1
    assert found.warnings[0].startswith("http.orders.base_url cannot be used: ")
    assert "hunter2" not in found.warnings[0]
    assert "hunter2" not in operation(found.specs[0]).endpoint


def test_no_argument_goes_into_a_header_of_the_operators() -> None:
    text = TOOL.replace("[http.orders.tools", 'headers = { X-Tenant = "a" }\n[http.orders.tools', 1)
    assert "header.x must be" in complaint(text + 'header = { x = "x-tenant" }')


def test_a_gateway_says_which_files_it_sends_and_whether_it_tells_errors() -> None:
    found = gateway(
        'base_url = "https://a.example"\nfiles = "uploads"\nmax_file_bytes = 10\nerror_bodies = "off"'
    )
    assert (found.files, found.max_file_bytes, found.gives_error_bodies) == (HERE / "uploads", 10, False)
    plain = gateway('base_url = "https://a.example"\nerror_bodies = "on"')
    assert (plain.files, plain.max_file_bytes, plain.gives_error_bodies) == (None, 16_777_216, True)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('error_bodies = "no"', "http.orders.error_bodies must be one of on, off"),
        ("max_file_bytes = 0", "http.orders.max_file_bytes must be a whole number from 1"),
        ('files = ""', "http.orders.files must be a string that is not empty"),
    ],
)
def test_a_setting_of_files_and_errors_that_is_none_is_told(given: str, expected: str) -> None:
    assert complaint(f'[http.orders]\nbase_url = "https://a.example"\n{given}').startswith(expected)
