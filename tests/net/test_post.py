"""One POST: once, within its deadline, to wherever the operator said."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from portbook.net.http_connection import Response
from portbook.net.post import post
from portbook.net.resolve import SystemResolver
from support.scripted_api import HANG, Answer, Upstream, answer

HEADERS = {"content-type": "application/json", "authorization": "Basic eA=="}


def posted(*answers: Answer, path: str = "/assets?a=b", timeout_s: float = 30) -> tuple[Upstream, Response]:
    async def scene() -> tuple[Upstream, Response]:
        async with Upstream(*answers) as upstream:
            return upstream, await post(upstream.url + path, b"{}", HEADERS, timeout_s)

    return asyncio.run(scene())


def test_a_body_is_posted_as_it_is_with_the_headers_given() -> None:
    upstream, response = posted(answer(b'{"id":1}', 201))
    assert (response.status, response.body) == (201, b'{"id":1}')
    [asked] = upstream.asked
    assert (asked.method, asked.target, asked.body) == ("POST", "/assets?a=b", b"{}")
    assert asked.headers.items() >= HEADERS.items()


def test_an_address_without_a_path_is_that_of_the_root() -> None:
    assert posted(answer(), path="")[0].targets == ["/"]


def test_a_name_inside_of_a_private_network_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(self: SystemResolver, host: str, port: int) -> Sequence[str]:
        assert host == "backend.internal"
        return ["127.0.0.1"]

    async def scene() -> None:
        async with Upstream(answer()) as upstream:
            url = f"http://backend.internal:{upstream.port}/"
            assert (await post(url, b"{}", HEADERS, 30)).status == 200

    monkeypatch.setattr(SystemResolver, "resolve", resolve)
    asyncio.run(scene())


def test_a_response_that_is_too_long_to_read_counts_as_a_bad_gateways() -> None:
    assert posted(answer(b"x" * 1_048_577))[1] == Response(502, {}, b"")


@pytest.mark.parametrize(
    ("said", "raised"),
    [(b"no HTTP\r\n\r\n", ConnectionError), (b"", ConnectionError), (HANG, TimeoutError)],
)
def test_where_nothing_comes_back_in_time_nothing_is_tried_again(said: Answer, raised: type[OSError]) -> None:
    async def scene() -> None:
        async with Upstream(said) as upstream:
            with pytest.raises(raised):
                await post(upstream.url, b"{}", HEADERS, 0.5)
            assert len(upstream.asked) == 1

    asyncio.run(scene())
