"""Redirects are followed to the same destination, and nowhere else."""

from __future__ import annotations

import pytest

from portbook.net.destinations import Destination
from portbook.net.http_client import target_of_redirect
from portbook.net.http_connection import Response

HERE = Destination("https", "a.example", 8443)


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/b?c=d", "/b?c=d"),
        ("https://a.example:8443/b", "/b"),
        ("https://A.EXAMPLE:8443", "/"),
        ("https://a.example/b", None),
        ("http://a.example:8443/b", None),
        ("https://b.example:8443/b", None),
        ("//b.example/c", None),
        ("//a.example:8443/c", None),
        ("", None),
        ("https://user@a.example:8443/", None),
        ("8", "/v1/items/8"),
        ("../other/8?a=b", "/v1/other/8?a=b"),
        ("../../../../etc", "/etc"),
        ("?page=2", "/v1/items/7?page=2"),
        ("./", "/v1/items/"),
        ("#here", "/v1/items/7?page=1"),
        ("https:8", None),
        ("http:8", None),
        ("javascript:alert(1)", None),
        ("a b", None),
        ("\\\\b.example", None),
    ],
)
def test_a_redirect_leads_to_the_same_destination_or_nowhere(location: str, target: str | None) -> None:
    response = Response(302, {b"location": location.encode("latin-1")}, b"")
    assert target_of_redirect(response, HERE, "/v1/items/7?page=1") == target


def test_a_redirect_without_a_location_leads_nowhere() -> None:
    assert target_of_redirect(Response(301, {}, b""), HERE, "/") is None
