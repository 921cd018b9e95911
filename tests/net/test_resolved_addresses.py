"""Names to addresses: resolved once, all checked, one bad one is enough."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from portbook.net.destinations import Destination, Destinations
from portbook.net.dns_and_dial import NotPermitted, SystemResolver, addresses_of

API = Destination("https", "api.example.com", 443)
LISTED = Destinations(["api.example.com", "127.0.0.1", "localhost"])


class Answers:
    """A resolver with prepared answers, one for each question."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, int]] = []

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        self.asked.append((host, port))
        return self.answers.pop(0)


def resolve(destination: Destination, resolver: Answers) -> tuple[str, ...]:
    return asyncio.run(addresses_of(destination, LISTED, resolver))


def test_a_name_is_resolved_once_and_each_address_comes_once() -> None:
    resolver = Answers(["203.0.113.10", "2606:4700::1111", "203.0.113.10"])
    assert resolve(API, resolver) == ("203.0.113.10", "2606:4700::1111")
    assert resolver.asked == [("api.example.com", 443)]


@pytest.mark.parametrize("bad", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fe80::1%eth0", "x"])
def test_one_bad_address_among_good_ones_refuses_them_all(bad: str) -> None:
    for answer in (["203.0.113.10", bad], [bad, "203.0.113.10"]):
        with pytest.raises(NotPermitted):
            resolve(API, Answers(answer))


def test_an_address_is_not_resolved() -> None:
    assert resolve(Destination("http", "127.0.0.1", 9000), Answers()) == ("127.0.0.1",)


def test_what_is_not_listed_is_not_even_resolved() -> None:
    resolver = Answers()
    with pytest.raises(NotPermitted):
        resolve(Destination("https", "evil.test", 443), resolver)
    assert resolver.asked == []


def test_a_name_without_an_address_is_an_error_of_the_system() -> None:
    with pytest.raises(OSError, match="no address"):
        resolve(API, Answers([]))


def test_the_system_knows_where_localhost_is() -> None:
    destination = Destination("http", "localhost", 9000)
    found = asyncio.run(addresses_of(destination, LISTED, SystemResolver()))
    assert set(found) <= {"127.0.0.1", "::1"}
    assert found
