"""The allowlist: which URLs have one reading, which destinations are listed, which addresses are dialled."""

from __future__ import annotations

import contextlib
import ipaddress
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portbook.net.destinations import BadDestination, Destination, Destinations, parse_destination, parse_url

CORPUS: dict[str, Any] = json.loads(
    (Path(__file__).parent.parent / "corpora" / "ssrf_urls.json").read_text("utf-8")
)
PUBLIC = "203.0.113.10"

# What the names of the corpus resolve to, at worst.
ANSWERS = {
    "127.0.0.1.nip.io": ["127.0.0.1"],
    "rebind.test": ["127.0.0.1"],
    "multi.test": [PUBLIC, "127.0.0.1"],
    "cname-loop.test": ["::1"],
    "metadata.google.internal": ["169.254.169.254"],
    "localhost": ["127.0.0.1"],
    "localhost.localdomain": ["127.0.0.1"],
    "foo.localhost": ["127.0.0.1"],
}


def may_be_called(destinations: Destinations, url: str) -> bool:
    try:
        destination = parse_destination(url)
    except BadDestination:
        return False
    found = [destination.host] if destination.is_address else ANSWERS.get(destination.host, [PUBLIC])
    return destinations.permits(destination) and all(
        destinations.permits_address(destination, ip) for ip in found
    )


@pytest.mark.parametrize("case", CORPUS["urls"], ids=lambda case: ascii(case["url"]))
def test_every_url_of_the_corpus_gets_its_verdict(case: dict[str, str]) -> None:
    listed = Destinations(["api.example.com"])
    expected = {"allow": True, "allow_or_deny_consistently": True}.get(case["expect"], False)
    assert may_be_called(listed, case["url"]) is expected


@pytest.mark.parametrize("wildcard", ["*", "*.test", "*.io", "*.localhost", "*.internal", "*.localdomain"])
@pytest.mark.parametrize(
    "case",
    [case for case in CORPUS["urls"] if case["expect"] == "deny_even_if_host_wildcard_allowed"],
    ids=lambda case: ascii(case["url"]),
)
def test_no_wildcard_leads_to_an_address_that_is_not_public(wildcard: str, case: dict[str, str]) -> None:
    assert not may_be_called(Destinations([wildcard]), case["url"])


@pytest.mark.parametrize("case", CORPUS["redirects"], ids=lambda case: case["why"])
def test_no_redirect_of_the_corpus_stays_where_it_started(case: dict[str, Any]) -> None:
    start = parse_destination(case["start"])
    for step in case["chain"]:
        location = step.partition(" ")[2]
        if location == "/loop":  # stays, and is only counted
            continue
        with contextlib.suppress(BadDestination):
            assert parse_destination(location) != start


# --- URLs


@pytest.mark.parametrize(
    ("url", "destination"),
    [
        ("https://api.example.com", ("https", "api.example.com", 443)),
        ("http://api.example.com", ("http", "api.example.com", 80)),
        ("HTTPS://API.Example.COM./x", ("https", "api.example.com", 443)),
        ("https://api.example.com:8443/x?y#z", ("https", "api.example.com", 8443)),
        ("http://127.0.0.1:9000", ("http", "127.0.0.1", 9000)),
        ("http://[::1]:9000/", ("http", "::1", 9000)),
        ("http://[0:0:0:0:0:0:0:1]", ("http", "::1", 80)),
        ("https://a_b.example", ("https", "a_b.example", 443)),
        ("https://host1", ("https", "host1", 443)),
        ("https://xn--bcher-kva.example", ("https", "xn--bcher-kva.example", 443)),
    ],
)
def test_a_url_has_one_destination(url: str, destination: tuple[str, str, int]) -> None:
    assert parse_destination(url) == Destination(*destination)


@pytest.mark.parametrize(
    "url",
    [
        "", "https://", "https:///x", "https://:443", "https://a:", "https://a:00", "https://a:0443",
        "https://a:65536", "https://a:-1", "https://a:8x", "https://a..b", "https://.a",
        "https://-a.example", "https://a-.example", "https://" + "a" * 64 + ".example",
        "https://" + "a." * 127 + "example", "https://[::1", "https://::1", "https://[127.0.0.1]",
        "https://[::1%eth0]", "https://1.2.3", "https://1.2.3.4.5", "https://256.1.1.1",
        "https://01.2.3.4", "https://0x7f.1", "https://1.2.3.0x4", "https://a.0x", "https://a.1",
        "https://u@a", "https://u:p@a", "https://a%2e", "https://a b", "https://a\\b",
        "https://a\x00", "https://a\x7f", "https://é.example", "https://a/é", "ws://a", "//a",
        "https:a", "https:/a", " https://a", "https://a\n", "https://a,b", "https://*",
    ],
)  # fmt: skip
def test_what_can_be_read_in_two_ways_is_not_read_at_all(url: str) -> None:
    with pytest.raises(BadDestination):
        parse_url(url)


def test_what_is_wrong_with_a_url_is_said_without_the_url() -> None:
    with pytest.raises(BadDestination) as caught:
        parse_url("https://ada:hunter2@api.example.com/")
    assert "hunter2" not in str(caught.value)
    assert "ada" not in str(caught.value)


def test_path_and_query_of_a_url_stay_as_they_are() -> None:
    parsed = parse_url("https://a.example/x%2Fy/../z?q=1&r=%20#part")
    assert (parsed.path, parsed.query) == ("/x%2Fy/../z", "q=1&r=%20")


@given(st.text(max_size=30))
def test_a_host_that_was_read_is_read_again_as_the_same(text: str) -> None:
    try:
        first = parse_destination(f"https://{text}")
    except BadDestination:
        return
    assert parse_destination(f"https://{first.authority}/") == first


@pytest.mark.parametrize(
    ("destination", "authority"),
    [
        (Destination("https", "a.example", 443), "a.example"),
        (Destination("http", "a.example", 80), "a.example"),
        (Destination("http", "a.example", 443), "a.example:443"),
        (Destination("http", "::1", 9000), "[::1]:9000"),
    ],
)
def test_an_authority_has_a_port_where_it_is_not_the_schemes_own(
    destination: Destination, authority: str
) -> None:
    assert destination.authority == authority


# --- entries

LISTED = [
    # entry, URL, whether it is listed
    ("api.example.com", "https://api.example.com/v1", True),
    ("API.Example.com.", "https://api.example.com/v1", True),
    ("api.example.com", "http://api.example.com/", False),
    ("api.example.com", "https://api.example.com:8443/", False),
    ("api.example.com", "https://sub.api.example.com/", False),
    ("api.example.com", "https://example.com/", False),
    ("api.example.com:8080", "http://api.example.com:8080/", True),
    ("api.example.com:8080", "https://api.example.com:8080/", True),
    ("api.example.com:8080", "https://api.example.com/", False),
    ("api.example.com:443", "https://api.example.com/", True),
    ("api.example.com:443", "http://api.example.com:443/", False),
    ("api.example.com:80", "http://api.example.com/", True),
    ("*.contoso.net", "https://api.contoso.net/", True),
    ("*.contoso.net", "https://eu.api.contoso.net/", True),
    ("*.contoso.net", "https://contoso.net/", False),
    ("*.contoso.net", "https://evilcontoso.net/", False),
    ("*.contoso.net", "https://contoso.net.evil.test/", False),
    ("*.contoso.net", "http://api.contoso.net/", False),
    ("*.contoso.net", "https://api.contoso.net:8443/", False),
    ("*.contoso.net:8443", "https://api.contoso.net:8443/", True),
    ("*.contoso.net:8443", "https://api.contoso.net/", False),
    ("*", "https://anything.example/", True),
    ("*", "http://anything.example/", False),
    ("*", "https://anything.example:8443/", False),
    ("*:8443", "https://anything.example:8443/", True),
    ("*", "https://intranet/", False),
    ("*", "https://localhost/", False),
    ("*", "https://8.8.8.8/", False),
    ("*.8", "https://8.8.8.8/", None),
    ("127.0.0.1", "http://127.0.0.1:9000/", True),
    ("127.0.0.1", "https://127.0.0.1/", True),
    ("127.0.0.1", "http://127.0.0.2:9000/", False),
    ("127.0.0.1", "http://localhost:9000/", False),
    ("127.0.0.1:9000", "http://127.0.0.1:9000/", True),
    ("127.0.0.1:9000", "http://127.0.0.1:9001/", False),
    ("localhost", "http://localhost:9000/", True),
    ("localhost", "http://127.0.0.1:9000/", False),
    ("localhost:9000", "http://localhost:9001/", False),
    ("[::1]:9000", "http://[::1]:9000/", True),
    ("[::1]", "http://[0:0::1]:9000/", True),
    ("[::1]:9000", "http://[::1]:9001/", False),
]


@pytest.mark.covers("002.policy.domain-allowlist")
@pytest.mark.parametrize(("entry", "url", "verdict"), LISTED)
def test_an_entry_lists_what_it_says_and_nothing_else(entry: str, url: str, verdict: bool | None) -> None:
    if verdict is None:
        with pytest.raises(BadDestination):
            Destinations([entry])
        return
    assert Destinations([entry]).permits(parse_destination(url)) is verdict


@pytest.mark.parametrize(
    "entry",
    [
        "", " ", "https://api.example.com", "api.example.com/", "user@host", "a b", "*example.com",
        "a.*.example", "**", "*.", "*.*.example", "*.127.0.0.1", "host:", "host:0", "host:70000",
        "host:80:80", "::1", "[::1", "é.example", "127.1", "0x7f000001",
    ],
)  # fmt: skip
def test_what_cannot_be_an_entry_is_refused(entry: str) -> None:
    with pytest.raises(BadDestination):
        Destinations([entry])


@pytest.mark.parametrize("network", ["", "10.0.0.1/8", "10.0.0.0/33", "localhost", "10.*"])
def test_what_cannot_be_a_network_is_refused(network: str) -> None:
    with pytest.raises(BadDestination):
        Destinations([], [network])


def test_nothing_is_listed_where_there_are_no_entries() -> None:
    assert not Destinations().permits(parse_destination("https://api.example.com"))


@pytest.mark.covers("002.policy.base-urls-without-policy")
def test_base_urls_list_their_scheme_host_and_port_exactly() -> None:
    listed = Destinations.of_base_urls(
        ["http://127.0.0.1:9000/api", "https://api.example.com", "not a url", "https://u:p@b.example"]
    )
    for url, verdict in [
        ("http://127.0.0.1:9000/other", True),
        ("https://127.0.0.1:9000/", False),
        ("http://127.0.0.1:9001/", False),
        ("https://api.example.com/v2", True),
        ("http://api.example.com/", False),
        ("https://sub.api.example.com/", False),
        ("https://b.example/", False),
    ]:
        assert listed.permits(parse_destination(url)) is verdict, url
    assert listed.entries == ("127.0.0.1:9000", "api.example.com")


# --- addresses

NOT_PUBLIC = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1",
    "127.255.255.254", "169.254.169.254", "169.254.170.2", "168.63.129.16", "172.16.0.1",
    "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.88.99.1", "192.168.1.1", "198.18.0.1",
    "198.19.255.255", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1",
    "::127.0.0.1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1",
    "64:ff9b::a00:1", "64:ff9b:1::808:808", "100::1", "2001::1", "2001:0:7f00:1::", "2001:2::1",
    "2001:10::1", "2002:7f00:1::", "2002:808:808::", "fc00::1", "fd00:ec2::254", "fe80::1",
    "fec0::1", "ff02::1", "4000::1", "5f00::1", "fe80::1%eth0", "8.8.8.8%eth0", "not an address",
    "", "127.1", "0x7f000001", "8.8.8.8 ",
]  # fmt: skip
PUBLIC_ONES = [
    "8.8.8.8", "1.1.1.1", PUBLIC, "172.15.0.1", "172.32.0.1", "100.128.0.1", "169.253.0.1", "168.63.129.17",
    "223.255.255.255", "2606:4700::1111", "2620:fe::fe", "64:ff9b::808:808", "::ffff:8.8.8.8",
]  # fmt: skip


@pytest.mark.covers("002.execution.no-private-addresses")
@pytest.mark.parametrize("ip", NOT_PUBLIC)
def test_a_name_never_leads_to_an_address_that_is_not_public(ip: str) -> None:
    for entry in ("api.example.com", "*.example.com", "*"):
        assert not Destinations([entry]).permits_address(Destination("https", "api.example.com", 443), ip)


@pytest.mark.parametrize("ip", PUBLIC_ONES)
def test_a_listed_name_may_lead_to_any_public_address(ip: str) -> None:
    listed = Destinations(["api.example.com"])
    assert listed.permits_address(Destination("https", "api.example.com", 443), ip)
    assert not listed.permits_address(Destination("https", "other.example.com", 443), ip)


@pytest.mark.parametrize("ip", ["10.1.2.3", "::ffff:10.1.2.3", "fd00::7"])
def test_a_name_may_lead_into_a_network_that_is_listed(ip: str) -> None:
    destination = Destination("https", "orders.contoso.net", 443)
    listed = Destinations(["*.contoso.net"], ["10.0.0.0/8", "fd00::/8"])
    assert listed.permits_address(destination, ip)
    assert not listed.permits_address(destination, "192.168.0.1")
    assert not Destinations([], ["10.0.0.0/8", "fd00::/8"]).permits_address(destination, ip)


@pytest.mark.parametrize("ip", ["127.0.0.1", "10.0.0.5", "169.254.169.254", "8.8.8.8"])
def test_a_listed_address_is_dialled_at_itself_alone(ip: str) -> None:
    listed = Destinations([ip])
    destination = Destination("http", ip, 9000)
    assert listed.permits_address(destination, ip)
    assert not listed.permits_address(destination, "127.0.0.9")
    assert not Destinations(["*"], ["0.0.0.0/0"]).permits_address(destination, ip)


def test_localhost_is_dialled_at_loopback_where_it_is_listed_by_name() -> None:
    destination = Destination("http", "localhost", 9000)
    listed = Destinations(["localhost:9000"])
    assert listed.permits_address(destination, "127.0.0.1")
    assert listed.permits_address(destination, "::1")
    assert not listed.permits_address(destination, "10.0.0.1")
    assert not listed.permits_address(destination, "8.8.8.8")
    assert not Destinations(["127.0.0.1:9000"]).permits_address(destination, "127.0.0.1")


def test_a_listed_loopback_address_does_not_open_loopback_to_names() -> None:
    listed = Destinations(["127.0.0.1", "localhost", "api.example.com"])
    assert not listed.permits_address(Destination("https", "api.example.com", 443), "127.0.0.1")


@given(st.ip_addresses(v=4))
def test_what_python_calls_private_or_special_is_never_public(address: ipaddress.IPv4Address) -> None:
    documentation = [ipaddress.ip_network(n) for n in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")]
    if address.is_global or any(address in network for network in documentation):
        return
    assert not Destinations(["a.example"]).permits_address(
        Destination("https", "a.example", 443), str(address)
    )


@given(st.ip_addresses(v=4))
def test_no_form_of_an_address_that_is_not_public_is_public(address: ipaddress.IPv4Address) -> None:
    listed, destination = Destinations(["a.example"]), Destination("https", "a.example", 443)
    if listed.permits_address(destination, str(address)):
        return
    value = int(address)
    forms = [
        ipaddress.IPv6Address(0xFFFF << 32 | value),  # mapped
        ipaddress.IPv6Address(value),  # compatible
        ipaddress.IPv6Address(0x64FF9B << 96 | value),  # NAT64
        ipaddress.IPv6Address(0x2002 << 112 | value << 80),  # 6to4
        ipaddress.IPv6Address(0x20010000 << 96 | value << 64),  # Teredo's server
        ipaddress.IPv6Address(0x20010000 << 96 | (value ^ 0xFFFFFFFF)),  # Teredo's client
    ]
    assert [form for form in forms if listed.permits_address(destination, str(form))] == []
