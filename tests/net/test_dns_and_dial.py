"""New connections: which address is dialled, which certificate is believed, what goes through a proxy."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from pathlib import Path

import pytest

from portbook.net.destinations import Destination, Destinations, parse_destination
from portbook.net.dns_and_dial import Dialler, NotPermitted, Unreachable, Untrusted
from portbook.net.http_connection import HttpConnection
from support.scripted_api import HANG, Certificates, Conversation, Upstream, answer, forwarder

API = Destination("https", "api.example.com", 443)
REQUEST = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"


class Names:
    """A resolver whose answers change: one for each question, the last one again and again."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Dialled:
    """Notes the addresses that are dialled; only those that are `open` take a connection."""

    def __init__(self, *open: str) -> None:
        self.open = open
        self.addresses: list[tuple[str, int]] = []
        self.names: list[str] = []

    async def __call__(self, ip: str, port: int, tls: ssl.SSLContext | None, name: str) -> HttpConnection:
        self.addresses.append((ip, port))
        self.names.append(name)
        if ip not in self.open:
            raise ConnectionRefusedError
        return HttpConnection()


def connect(
    dialler: Dialler, destination: Destination = API, listed: Destinations | None = None
) -> HttpConnection:
    listed = listed or Destinations([destination.authority])
    return asyncio.run(dialler.connect(destination, listed))


@pytest.mark.covers("002.execution.dials-what-was-checked")
def test_the_address_that_was_checked_is_the_one_dialled() -> None:
    """The name's second answer is loopback: whoever asks again at connect time would go there."""
    dialled = Dialled("203.0.113.10")
    connect(Dialler(Names(["203.0.113.10"], ["127.0.0.1"]), dialled))
    assert dialled.addresses == [("203.0.113.10", 443)]
    assert dialled.names == ["api.example.com"]


def test_a_name_that_turned_bad_is_not_dialled_the_next_time() -> None:
    dialled = Dialled("203.0.113.10")
    dialler = Dialler(Names(["203.0.113.10"], ["127.0.0.1"]), dialled)
    connect(dialler)
    with pytest.raises(NotPermitted):
        connect(dialler)
    assert dialled.addresses == [("203.0.113.10", 443)]


@pytest.mark.parametrize("answer", [["127.0.0.1"], ["203.0.113.10", "127.0.0.1"], ["169.254.169.254"]])
def test_a_name_with_a_bad_address_is_never_dialled(answer: list[str]) -> None:
    dialled = Dialled(*answer)
    with pytest.raises(NotPermitted):
        connect(Dialler(Names(answer), dialled))
    assert dialled.addresses == []


def test_the_next_address_is_dialled_where_one_does_not_answer() -> None:
    dialled = Dialled("203.0.113.12")
    connect(Dialler(Names(["203.0.113.10", "203.0.113.11", "203.0.113.12"]), dialled))
    assert [ip for ip, _ in dialled.addresses] == ["203.0.113.10", "203.0.113.11", "203.0.113.12"]


def test_nothing_is_reachable_where_no_address_answers() -> None:
    with pytest.raises(Unreachable, match="refused"):
        connect(Dialler(Names(["203.0.113.10", "203.0.113.11"]), Dialled()))


def test_a_name_that_cannot_be_resolved_is_unreachable() -> None:
    class Nothing:
        async def resolve(self, host: str, port: int) -> Sequence[str]:
            raise OSError("no such name")

    with pytest.raises(Unreachable, match="resolved"):
        connect(Dialler(Nothing(), Dialled()))


# --- TLS


def secured(certificates: Certificates, host: str, ca_file: Path | None, *, tls: bool = True) -> None:
    async def main() -> None:
        context = certificates.server if tls else None
        async with Upstream(answer(), tls=context, greeting=b"" if tls else b"220 ready\r\n") as upstream:
            destination = Destination("https", host, upstream.port)
            listed = Destinations([destination.authority], ["127.0.0.0/8"])
            dialler = Dialler(Names(["127.0.0.1"]))
            connection = await dialler.connect(destination, listed, ca_file=ca_file)
            assert (await connection.exchange(REQUEST, max_body=9)).status == 200
            connection.abort()
            await asyncio.sleep(0)

    asyncio.run(main())


@pytest.mark.parametrize("host", ["api.example.com", "127.0.0.1"])
def test_a_server_proves_the_name_that_was_asked_for(certificates: Certificates, host: str) -> None:
    secured(certificates, host, certificates.ca_file)


def test_a_server_with_the_certificate_of_another_is_not_trusted(certificates: Certificates) -> None:
    with pytest.raises(Untrusted):
        secured(certificates, "other.example.com", certificates.ca_file)


def test_a_certificate_that_nobody_vouches_for_is_not_trusted(certificates: Certificates) -> None:
    with pytest.raises(Untrusted):
        secured(certificates, "api.example.com", None)


def test_a_server_without_tls_is_not_trusted(certificates: Certificates) -> None:
    with pytest.raises(Untrusted):
        secured(certificates, "api.example.com", certificates.ca_file, tls=False)


def test_a_missing_file_of_certificates_trusts_nobody(tmp_path: Path) -> None:
    with pytest.raises(Untrusted):
        asyncio.run(Dialler().connect(API, Destinations(["*"]), ca_file=tmp_path / "none.pem"))


# --- proxies


async def tunnel(conversation: Conversation) -> None:
    """Do what a proxy does, for one answer that needs no connection to anywhere."""
    conversation.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")


def test_a_proxy_is_asked_for_a_tunnel_to_the_name() -> None:
    async def main() -> None:
        async with Upstream(tunnel, answer(b"through")) as proxy:
            destination = parse_destination("http://orders.contoso.net:8080")
            connection = await Dialler(Names(["127.0.0.1"])).connect(
                destination, Destinations(["orders.contoso.net:8080"]), proxy=parse_destination(proxy.url)
            )
            asked = proxy.asked[0]
            assert (asked.method, asked.target) == ("CONNECT", "orders.contoso.net:8080")
            assert set(asked.headers) == {"host"}
            assert (await connection.exchange(REQUEST, max_body=9)).body == b"through"
            connection.abort()

    asyncio.run(main())


def test_the_allowlist_holds_through_a_proxy() -> None:
    async def main() -> None:
        async with Upstream(tunnel) as proxy:
            with pytest.raises(NotPermitted):
                await Dialler().connect(API, Destinations(["b.example"]), proxy=parse_destination(proxy.url))
            assert proxy.connections == 0

    asyncio.run(main())


@pytest.mark.parametrize("said", [answer(b"", 403), answer(b"", 407), b"garbage\r\n\r\n", b""])
def test_a_proxy_that_refuses_is_unreachable(said: bytes) -> None:
    async def main() -> None:
        async with Upstream(said) as proxy:
            with pytest.raises(Unreachable):
                await Dialler().connect(API, Destinations(["*"]), proxy=parse_destination(proxy.url))
            await asyncio.sleep(0)

    asyncio.run(main())


def test_a_proxy_whose_name_has_no_address_is_unreachable() -> None:
    proxy = Destination("http", "proxy.example", 3128)
    with pytest.raises(Unreachable, match="proxy"):
        asyncio.run(Dialler(Names([]), Dialled()).connect(API, Destinations(["*"]), proxy=proxy))


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_says_more_than_its_answer_is_not_believed(scheme: str) -> None:
    """What it adds would be read as the server's own words."""
    said = b"HTTP/1.1 200 Connection established\r\n\r\n" + answer(b"forged")

    async def main() -> None:
        async with Upstream(said) as proxy:
            destination = Destination(scheme, "api.example.com", 8080)
            listed = Destinations(["api.example.com:8080"])
            with pytest.raises(Unreachable, match="more than it was asked for"):
                await Dialler().connect(destination, listed, proxy=parse_destination(proxy.url))
            await asyncio.wait_for(proxy.left.wait(), 10)

    asyncio.run(main())


def test_a_proxy_that_hangs_is_left_when_the_call_is_cancelled() -> None:
    async def main() -> None:
        async with Upstream(HANG) as proxy:
            connecting = asyncio.ensure_future(
                Dialler().connect(API, Destinations(["*"]), proxy=parse_destination(proxy.url))
            )
            while not proxy.asked:
                await asyncio.sleep(0)
            connecting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await connecting
            await asyncio.wait_for(proxy.left.wait(), 10)

    asyncio.run(main())


def test_what_goes_through_a_proxy_is_encrypted_for_the_server(certificates: Certificates) -> None:
    async def main() -> None:
        async with (
            Upstream(answer(b"secret"), tls=certificates.server) as upstream,
            forwarder(upstream.port) as port,
        ):
            connection = await Dialler().connect(
                API,
                Destinations(["api.example.com"]),
                proxy=Destination("http", "127.0.0.1", port),
                ca_file=certificates.ca_file,
            )
            for _ in range(2):
                assert connection.is_usable
                assert (await connection.exchange(REQUEST, max_body=9)).body == b"secret"
            connection.abort()

    asyncio.run(main())
