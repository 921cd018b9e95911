"""The client: kept connections, and when a request may be sent again."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from portbook.net import http_client
from portbook.net.destinations import Destinations, parse_destination
from portbook.net.dns_and_dial import Dialler, NotPermitted, Unreachable, dial_system
from portbook.net.http_client import HttpClient, HttpRequest, Sendings
from portbook.net.http_connection import Broken, HttpConnection, TooLarge
from support.scripted_api import HANG, Certificates, Conversation, Upstream, answer


def run(main: Callable[[HttpClient], Coroutine[Any, Any, None]]) -> None:
    async def scene() -> None:
        client = HttpClient()
        try:
            await main(client)
        finally:
            await client.close()

    asyncio.run(scene())


def request(upstream: Upstream, **changed: Any) -> HttpRequest:
    given = {"method": "GET", "target": "/", "headers": b"", **changed}
    return HttpRequest(parse_destination(upstream.url), **given)


def listed(upstream: Upstream) -> Destinations:
    return Destinations.of_base_urls([upstream.url])


async def closed(conversation: Conversation) -> None:
    """Answer nothing, and be gone."""
    conversation.writer.close()


def test_a_request_is_sent_as_it_is_meant() -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream(answer(b"[]")) as upstream:
            response = await client.send(
                request(upstream, method="POST", target="/a?b=c", headers=b"X-A: 1\r\n", body=b'{"d":1}'),
                listed(upstream),
            )
            assert (response.status, response.body) == (200, b"[]")
            asked = upstream.asked[0]
            assert (asked.method, asked.target, asked.body) == ("POST", "/a?b=c", b'{"d":1}')
            assert asked.headers == {
                "host": f"127.0.0.1:{upstream.port}",
                "x-a": "1",
                "content-length": "7",
            }

    run(main)


def test_a_clean_connection_is_used_again() -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream(answer()) as upstream:
            allowed = listed(upstream)
            for _ in range(3):
                await client.send(request(upstream), allowed)
            assert [asked.connection for asked in upstream.asked] == [1, 1, 1]

    run(main)


@pytest.mark.parametrize(
    "said", [answer(Connection="close"), answer() + b"x"], ids=["told to close", "surplus"]
)
def test_a_connection_that_was_not_clean_is_not_used_again(said: bytes) -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream(said) as upstream:
            allowed = listed(upstream)
            for _ in range(2):
                await client.send(request(upstream), allowed)
            assert [asked.connection for asked in upstream.asked] == [1, 2]

    run(main)


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 200 Connection established\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    ],
)
def test_a_connection_through_a_proxy_is_used_again(said: bytes) -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream(said, answer()) as proxy:
            asked = HttpRequest(
                parse_destination("http://api.example.com:8080"),
                "GET",
                "/",
                b"",
                proxy=parse_destination(proxy.url),
            )
            allowed = Destinations(["api.example.com:8080"])
            for _ in range(3):
                assert (await client.send(asked, allowed)).body == b"{}"
            assert [one.method for one in proxy.asked] == ["CONNECT", "GET", "GET", "GET"]
            assert proxy.connections == 1

    run(main)


def test_calls_at_the_same_time_have_connections_of_their_own() -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream(answer()) as upstream:
            allowed = listed(upstream)
            await asyncio.gather(*(client.send(request(upstream), allowed) for _ in range(5)))
            assert sorted(asked.connection for asked in upstream.asked) == [1, 2, 3, 4, 5]

    run(main)


def test_a_destination_has_no_more_connections_than_its_share() -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream(answer()) as upstream:
            allowed = listed(upstream)
            await asyncio.gather(*(client.send(request(upstream), allowed) for _ in range(300)))
            assert upstream.connections <= 128
            assert len(upstream.asked) == 300

    run(main)


def test_a_kept_connection_is_of_no_use_under_another_allowlist() -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream(answer()) as upstream:
            await client.send(request(upstream), listed(upstream))
            with pytest.raises(NotPermitted):
                await client.send(request(upstream), Destinations(["api.example.com"]))
            assert len(upstream.asked) == 1

    run(main)


def test_an_idempotent_request_is_sent_again_where_a_kept_connection_was_gone() -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream(answer(b"1"), closed, answer(b"2")) as upstream:
            allowed = listed(upstream)
            await client.send(request(upstream), allowed)
            response = await client.send(request(upstream, is_idempotent=True), allowed)
            assert response.body == b"2"
            assert [asked.connection for asked in upstream.asked] == [1, 1, 2]

    run(main)


@pytest.mark.parametrize(("left", "times"), [(0, 1), (1, 2), (2, 2)])
def test_a_request_that_is_sent_again_is_counted(left: int, times: int) -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream(answer(b"1"), closed) as upstream:
            allowed, sendings = listed(upstream), Sendings(left)
            await client.send(request(upstream), allowed)
            with pytest.raises(Broken):
                await client.send(request(upstream, is_idempotent=True), allowed, sendings)
            assert (len(upstream.asked) - 1, sendings.left) == (times, left - times + 1)

    run(main)


def test_what_was_sent_is_known_and_what_was_not() -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream(answer()) as upstream:
            sent, unsent = Sendings(0), Sendings(0)
            await client.send(request(upstream), listed(upstream), sent)
            with pytest.raises(NotPermitted):
                await client.send(request(upstream), Destinations([]), unsent)
            assert (sent.has_begun, unsent.has_begun) == (True, False)

    run(main)


def test_what_was_sent_once_is_not_said_to_be_unsent() -> None:
    """The kept connection is gone after the request, and no other can be made."""

    async def main(client: HttpClient) -> None:
        async with Upstream(answer(b"1"), closed) as upstream:
            allowed = listed(upstream)
            await client.send(request(upstream), allowed)
            upstream._server.close()
            with pytest.raises(Broken):
                await client.send(request(upstream, is_idempotent=True), allowed)
            assert len(upstream.asked) == 2

    run(main)


@pytest.mark.covers("002.execution.retries-only-idempotent")
def test_a_request_that_is_not_idempotent_is_never_sent_twice() -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream(answer(b"1"), closed, answer(b"2")) as upstream:
            allowed = listed(upstream)
            await client.send(request(upstream), allowed)
            with pytest.raises(Broken):
                await client.send(request(upstream, method="POST", body=b"{}"), allowed)
            assert len(upstream.asked) == 2

    run(main)


def test_a_request_is_not_sent_again_once_a_byte_of_its_answer_came() -> None:
    async def cut(conversation: Conversation) -> None:
        conversation.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc")
        conversation.writer.close()

    async def main(client: HttpClient) -> None:
        async with Upstream(answer(b"1"), cut, answer(b"2")) as upstream:
            allowed = listed(upstream)
            await client.send(request(upstream), allowed)
            with pytest.raises(Broken):
                await client.send(request(upstream, is_idempotent=True), allowed)
            assert len(upstream.asked) == 2

    run(main)


def test_a_request_is_not_sent_again_on_a_connection_that_was_new() -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream(closed) as upstream:
            with pytest.raises(Broken):
                await client.send(request(upstream, is_idempotent=True), listed(upstream))
            assert len(upstream.asked) == 1

    run(main)


def test_a_connection_that_the_server_closed_while_idle_is_not_tried() -> None:
    async def one(conversation: Conversation) -> None:
        conversation.writer.write(answer(b"1"))
        await conversation.writer.drain()
        conversation.writer.close()

    async def main(client: HttpClient) -> None:
        async with Upstream(one, answer(b"2")) as upstream:
            allowed = listed(upstream)
            await client.send(request(upstream), allowed)
            await asyncio.wait_for(upstream.left.wait(), 10)
            for _ in range(10):  # until the loop has seen it close
                await asyncio.sleep(0)
            response = await client.send(request(upstream, method="POST", body=b""), allowed)
            assert response.body == b"2"

    run(main)


def test_cancelling_closes_the_connection_and_frees_its_place() -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream(HANG, answer(b"2")) as upstream:
            allowed = listed(upstream)
            sending = asyncio.ensure_future(client.send(request(upstream), allowed))
            while not upstream.asked:
                await asyncio.sleep(0)
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            await asyncio.wait_for(upstream.left.wait(), 10)
            assert (await client.send(request(upstream), allowed)).body == b"2"
            assert upstream.connections == 2

    run(main)


def test_a_large_answer_is_cut_off() -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream(answer(b"x" * 11), answer(b"x" * 10)) as upstream:
            with pytest.raises(TooLarge):
                await client.send(request(upstream, max_response_bytes=10), listed(upstream))
            response = await client.send(request(upstream, max_response_bytes=10), listed(upstream))
            assert response.body == b"x" * 10

    run(main)


def test_a_closed_port_is_unreachable() -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream() as upstream:
            pass
        with pytest.raises(Unreachable):
            await client.send(request(upstream), listed(upstream))
        with pytest.raises(Unreachable):
            await client.probe(parse_destination(upstream.url), listed(upstream))

    run(main)


def test_a_probe_connects_and_asks_for_nothing() -> None:
    async def main(client: HttpClient) -> None:
        async with Upstream() as upstream:
            await client.probe(parse_destination(upstream.url), listed(upstream))
            await asyncio.wait_for(upstream.left.wait(), 10)
            assert (upstream.connections, upstream.asked) == (1, [])

    run(main)


def test_closing_the_client_closes_its_connections() -> None:
    async def main() -> None:
        async with Upstream() as upstream:
            client = HttpClient()
            await client.send(request(upstream), listed(upstream))
            await client.close()
            await asyncio.wait_for(upstream.left.wait(), 10)

    asyncio.run(main())


def test_connections_are_dialled_at_the_address_that_was_resolved_and_kept(
    certificates: Certificates,
) -> None:
    """The name moves to another address: a kept connection goes on to the one that was checked."""
    dialled: list[str] = []

    async def dial(ip: str, port: int, tls: ssl.SSLContext | None, name: str) -> HttpConnection:
        dialled.append(ip)
        return await dial_system(ip, port, tls, name)

    answers = [["127.0.0.1"], ["127.0.0.2"]]

    class Moving:
        async def resolve(self, host: str, port: int) -> list[str]:
            return answers.pop(0)

    async def main() -> None:
        async with Upstream(answer(b"1"), tls=certificates.server) as first:
            client = HttpClient(Dialler(Moving(), dial))
            url = f"https://api.example.com:{first.port}"
            allowed = Destinations([f"api.example.com:{first.port}"], ["127.0.0.0/8"])
            asked = HttpRequest(parse_destination(url), "GET", "/", b"", ca_file=certificates.ca_file)
            for _ in range(3):
                assert (await client.send(asked, allowed)).body == b"1"
            assert first.asked[0].headers["host"] == f"api.example.com:{first.port}"
            await client.close()
            for _ in range(5):
                await asyncio.sleep(0)

    asyncio.run(main())
    assert dialled == ["127.0.0.1"]


def test_requests_that_listen_take_no_connection_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "_MAX_CONNECTIONS", 1)

    async def main(client: HttpClient) -> None:
        async with Upstream(HANG, answer(b"[]")) as upstream:
            permitted = listed(upstream)
            listening = asyncio.ensure_future(client.send(request(upstream, is_listening=True), permitted))
            while not upstream.asked:
                await asyncio.sleep(0.01)
            async with asyncio.timeout(20):
                assert (await client.send(request(upstream), permitted)).body == b"[]"
            listening.cancel()
            await asyncio.wait((listening,))

    run(main)
