"""Who is at the other end of a connection, and behind a proxy."""

from __future__ import annotations

import pytest

from portbook.doors.http.request import RequestHead
from portbook.doors.http.server.peer_address import BadForwarding, BadProxy, PeerAddresses, normal_address

PROXIES = PeerAddresses(["10.0.0.0/8", "::1"])


def forwarded(value: bytes) -> RequestHead:
    return RequestHead("GET", "/", b"", [(b"x-forwarded-for", value)])


@pytest.mark.parametrize(
    ("value", "client"),
    [
        (b"203.0.113.9", "203.0.113.9"),
        (b"1.2.3.4, 203.0.113.9", "203.0.113.9"),
        (b"203.0.113.9 ,\t10.0.0.7", "203.0.113.9"),
        (b"2001:db8::1", "2001:db8::1"),
        (b"::ffff:203.0.113.9", "203.0.113.9"),
        (b"10.0.0.7, 10.0.0.8", "10.0.0.7"),
    ],
)
def test_the_client_is_the_last_address_that_no_proxy_has(value: bytes, client: str) -> None:
    assert PROXIES.client_of(forwarded(value), "10.0.0.1") == client


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"unknown",
        b"1.2.3",
        b"203.0.113.9:80",
        b"_x",
        b"fe80::1%x",
        b"203.0.113.9,,10.0.0.1",
        b"1.2.3.4," * 20,
    ],
)
def test_a_proxy_that_does_not_say_who_its_client_is_is_refused(value: bytes) -> None:
    with pytest.raises(BadForwarding):
        PROXIES.client_of(forwarded(value), "10.0.0.1")


def test_whoever_is_not_trusted_speaks_for_nobody() -> None:
    assert PROXIES.client_of(forwarded(b"1.2.3.4"), "203.0.113.9") is None
    assert PeerAddresses().client_of(forwarded(b"unknown"), "10.0.0.1") is None
    assert PROXIES.client_of(RequestHead("GET", "/", b"", []), "10.0.0.1") is None


def test_an_address_has_one_form() -> None:
    assert normal_address("::FFFF:10.0.0.1") == "10.0.0.1"
    assert normal_address("2001:DB8:0::1") == "2001:db8::1"
    assert normal_address("example.com") is None


@pytest.mark.parametrize("entry", ["", "example.com", "10.0.0.1/8", "10.0.0.0/33"])
def test_a_proxy_is_an_address_or_a_network(entry: str) -> None:
    with pytest.raises(BadProxy):
        PeerAddresses([entry])
