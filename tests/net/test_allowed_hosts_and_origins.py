from __future__ import annotations

import pytest

from portbook.errors import Reason
from portbook.net.allowed_hosts_and_origins import BadHost, Hosts

NAMES = ("mcp.example.com", "Proxy.example.com:8443", "[2001:DB8::0:1]")
ORIGINS = ("http://localhost:6274", "https://App.example.com:443", "vscode-webview://abc")


def headers(host: str | None, origin: str | None = None, target: str | None = None) -> dict[bytes, bytes]:
    given = {b"host": host, b"origin": origin, b":authority": target}
    return {name: value.encode("latin-1") for name, value in given.items() if value is not None}


def setting_named(hosts: Hosts, given: dict[bytes, bytes]) -> str | None:
    """The setting that a refusal's hint names."""
    refusal = hosts.refuse(given)
    if refusal is None:
        return None
    assert refusal.reason is Reason.FOREIGN_HOST
    hint = str(refusal.details["hint"])
    (named,) = [name for name in ("allowed_hosts", "allowed_origins") if f"server.{name}" in hint]
    return named


@pytest.mark.parametrize(
    ("host", "is_taken"),
    [
        ("localhost", True),
        ("LocalHost:1", True),
        ("127.0.0.9:80", True),
        ("[::1]:8765", True),
        ("mcp.example.com", True),
        ("MCP.EXAMPLE.COM:99", True),
        ("proxy.example.com:8443", True),
        ("[2001:db8:0:0::1]:5", True),
        ("proxy.example.com", False),
        ("proxy.example.com:8444", False),
        ("sub.mcp.example.com", False),
        ("mcp.example.com.evil.test", False),
        ("mcp.example.com@evil.test", False),
        ("evil.test@localhost", False),
        ("localhost, evil.test", False),
        ("localhost:80:80", False),
        ("[::1", False),
        ("[mcp.example.com]", False),
        ("evil.test", False),
        ("", False),
        (None, False),
    ],
)
@pytest.mark.parametrize("is_exposed", [False, True])
def test_a_listed_name_is_taken_exactly_and_loopback_always(
    host: str | None, is_taken: bool, is_exposed: bool
) -> None:
    hosts = Hosts(is_exposed=is_exposed, names=NAMES)
    assert setting_named(hosts, headers(host)) == (None if is_taken else "allowed_hosts")


@pytest.mark.parametrize("host", ["anything.example", "10.0.0.5:8765", "", None])
def test_beyond_loopback_any_name_is_taken_unless_some_are_listed(host: str | None) -> None:
    assert Hosts(is_exposed=True).refuse(headers(host)) is None
    assert Hosts(is_exposed=False).refuse(headers(host)) is not None


@pytest.mark.parametrize(
    ("host", "origin", "is_taken"),
    [
        ("localhost:80", "http://localhost", True),
        ("localhost:8765", "http://LOCALHOST:8765", True),
        ("mcp.example.com", "https://mcp.example.com", True),
        ("mcp.example.com:443", "https://mcp.example.com", True),
        ("localhost:1", "http://localhost:6274", True),
        ("localhost:1", "https://app.example.com", True),
        ("localhost:1", "vscode-webview://abc", True),
        ("localhost:1", "https://localhost:6274", False),
        ("localhost:1", "http://localhost:62740", False),
        ("localhost:1", "http://app.example.com", False),
        ("localhost:1", "https://app.example.com.evil.test", False),
        ("localhost:1", "http://localhost:6274/path", False),
        ("localhost:1", "http://evil@localhost:6274", False),
        ("localhost:1", "http://localhost", False),
        ("localhost:1", "null", False),
        ("localhost:1", "", False),
        ("localhost:1", "http://[::1", False),
    ],
)
def test_an_origin_is_the_host_itself_or_listed(host: str, origin: str, is_taken: bool) -> None:
    hosts = Hosts(is_exposed=False, names=NAMES, origins=ORIGINS)
    assert setting_named(hosts, headers(host, origin)) == (None if is_taken else "allowed_origins")


def test_a_page_that_does_not_say_whose_it_is_is_foreign_even_to_a_host_without_a_name() -> None:
    assert setting_named(Hosts(is_exposed=True), headers("", "null")) == "allowed_origins"


@pytest.mark.parametrize(
    ("target", "origin", "named"),
    [
        ("localhost", None, None),
        ("mcp.example.com:1", None, None),
        ("evil.test", None, "allowed_hosts"),
        ("localhost@evil.test", None, "allowed_hosts"),
        ("", None, "allowed_hosts"),
        ("localhost", "http://localhost", None),
        ("localhost:1", "http://localhost", "allowed_origins"),
    ],
)
def test_the_host_in_a_request_line_counts_like_the_header(
    target: str, origin: str | None, named: str | None
) -> None:
    hosts = Hosts(is_exposed=False, names=NAMES)
    assert setting_named(hosts, headers("localhost", origin, target)) == named


def test_a_long_host_is_judged_like_a_short_one() -> None:
    hosts = Hosts(is_exposed=False, names=("a" * 600,))
    assert hosts.refuse(headers("A" * 600)) is None
    assert hosts.refuse(headers("b" * 600)) is not None


def test_only_listed_origins_are_shared_with() -> None:
    hosts = Hosts(is_exposed=False, origins=ORIGINS)
    assert hosts.allows_origin(b"http://localhost:6274")
    assert not hosts.allows_origin(b"http://localhost:6275")
    assert not hosts.allows_origin(b"null")
    assert not Hosts(is_exposed=True).allows_origin(b"null")


@pytest.mark.parametrize(
    "entry", ["", "*", "*.example.com", "http://a.example", "a b", "a/b", "[::g]", "ä.example"]
)
def test_what_can_be_no_host_is_not_listed(entry: str) -> None:
    with pytest.raises(BadHost, match="can be no Host") as caught:
        Hosts(is_exposed=False, names=("fine", entry))
    assert caught.value.setting == "allowed_hosts"


@pytest.mark.parametrize(
    "entry", ["", "*", "null", "localhost:6274", "http://localhost:6274/", "http://*", "http://a@b", "//a"]
)
def test_what_can_be_no_origin_is_not_listed(entry: str) -> None:
    with pytest.raises(BadHost, match="can be no Origin") as caught:
        Hosts(is_exposed=False, origins=("http://fine", entry))
    assert caught.value.setting == "allowed_origins"
