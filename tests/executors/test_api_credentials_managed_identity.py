"""Tokens of the machine's identity: kept, renewed in time, asked for singly, and of this machine alone."""

from __future__ import annotations

import asyncio
import json
import sys
import types
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from portbook.apis.gateway import ManagedIdentity
from portbook.executors.api_credentials import IdentityTokens, NoCredential
from portbook.net.http_client import HttpClient
from support.scripted_api import HANG, Upstream, answer


class Hands:
    """A clock whose hands a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def tick(self) -> float:
        return self.now

    def wall(self) -> float:
        return self.now + 1_700_000_000


def token(value: str, **members: Any) -> bytes:
    return answer(json.dumps({"access_token": value, "token_type": "Bearer", **members}).encode())


def with_endpoint(
    main: Callable[[IdentityTokens, Hands, Upstream], Coroutine[Any, Any, None]],
    *answers: Any,
    identity: ManagedIdentity | None = None,
    seen: list[str] | None = None,
) -> None:
    async def scene() -> None:
        async with Upstream(*answers) as upstream:
            hands, client = Hands(), HttpClient()
            environ = {"IDENTITY_ENDPOINT": f"{upstream.url}/msi/token", "IDENTITY_HEADER": "endpoint-secret"}
            tokens = IdentityTokens(
                "http.orders.managed_identity",
                identity or ManagedIdentity("api://orders"),
                environ,
                client,
                (seen if seen is not None else []).append,
                tick=hands.tick,
                wall=hands.wall,
            )
            try:
                await main(tokens, hands, upstream)
            finally:
                await client.close()

    asyncio.run(scene())


@pytest.mark.covers("002.execution.managed-identity")
def test_a_token_comes_from_the_endpoint_on_this_machine() -> None:
    async def main(tokens: IdentityTokens, hands: Hands, upstream: Upstream) -> None:
        assert await tokens.read() == "token-1"
        asked = upstream.asked[0]
        assert asked.method == "GET"
        assert asked.headers["x-identity-header"] == "endpoint-secret"
        url = urlsplit(asked.target)
        assert url.path == "/msi/token"
        assert dict(parse_qsl(url.query)) == {
            "api-version": "2019-08-01",
            "resource": "api://orders",
            "client_id": "c-1",
        }
        assert tokens.known() == ["token-1", "endpoint-secret"]

    identity = ManagedIdentity("api://orders", "c-1")
    with_endpoint(main, token("token-1", expires_on="1700004600"), identity=identity)


@pytest.mark.parametrize(
    "expiry",
    [{"expires_in": "3600"}, {"expires_in": 3600}, {"expires_on": "1700004600"}, {"expires_on": 1700004600}],
)
def test_a_token_is_kept_and_renewed_before_it_expires(expiry: dict[str, Any]) -> None:
    async def main(tokens: IdentityTokens, hands: Hands, upstream: Upstream) -> None:
        assert await tokens.read() == "token-1"
        hands.now += 3200  # 400 s left
        assert await tokens.read() == "token-1"
        assert len(upstream.asked) == 1
        hands.now += 150  # 250 s left: a new one is asked for, this call does not wait for it
        assert await tokens.read() == "token-1"
        while tokens.known()[-2] != "token-2":
            await asyncio.sleep(0)
        assert await tokens.read() == "token-2"
        assert len(upstream.asked) == 2
        assert tokens.known() == ["token-1", "token-2", "endpoint-secret"]

    seen: list[str] = []
    with_endpoint(main, token("token-1", **expiry), token("token-2", expires_in=3600), seen=seen)
    assert seen == ["token-1", "token-2"]


def test_a_token_that_has_expired_is_waited_for() -> None:
    async def main(tokens: IdentityTokens, hands: Hands, upstream: Upstream) -> None:
        assert await tokens.read() == "token-1"
        hands.now += 4000
        assert await tokens.read() == "token-2"

    with_endpoint(main, token("token-1", expires_in=3600), token("token-2", expires_in=3600))


def test_many_calls_ask_for_one_token() -> None:
    async def main(tokens: IdentityTokens, hands: Hands, upstream: Upstream) -> None:
        found = await asyncio.gather(*(tokens.read() for _ in range(50)))
        assert set(found) == {"token-1"}
        assert len(upstream.asked) == 1

    with_endpoint(main, token("token-1", expires_in=3600))


def test_a_call_that_is_cancelled_does_not_take_the_token_from_the_others() -> None:
    async def main(tokens: IdentityTokens, hands: Hands, upstream: Upstream) -> None:
        first, second = asyncio.ensure_future(tokens.read()), asyncio.ensure_future(tokens.read())
        await asyncio.sleep(0)
        first.cancel()
        assert await second == "token-1"
        assert first.cancelled()

    with_endpoint(main, token("token-1", expires_in=3600))


def test_a_failed_renewal_keeps_the_token_that_is_still_valid() -> None:
    async def main(tokens: IdentityTokens, hands: Hands, upstream: Upstream) -> None:
        assert await tokens.read() == "token-1"
        hands.now += 3400
        for _ in range(3):
            assert await tokens.read() == "token-1"
        while tokens._asking is None or not tokens._asking.done():
            await asyncio.sleep(0)
        assert len(upstream.asked) == 2
        hands.now += 5  # asked a moment ago, and left alone for now
        assert await tokens.read() == "token-1"
        hands.now += 300
        with pytest.raises(NoCredential, match="answered 500"):
            await tokens.read()
        assert len(upstream.asked) == 3

    with_endpoint(main, token("token-1", expires_in=3600), answer(b"", 500))


@pytest.mark.parametrize(
    "said",
    [
        answer(b"{}"),
        answer(b"not json"),
        answer(b"[1]"),
        answer(b'{"access_token":"","expires_in":1}'),
        answer(b'{"access_token":"a\\nb","expires_in":1}'),
        answer(b'{"access_token":"hunter2"}'),
        answer(b'{"access_token":"hunter2","expires_on":"soon"}'),
        answer(b'{"access_token":"hunter2"}', 400),
        answer(b"x" * 100_000),
        b"garbage\r\n\r\n",
        b"",
    ],
)
def test_an_endpoint_without_a_usable_token_is_no_credential(said: bytes) -> None:
    async def main(tokens: IdentityTokens, hands: Hands, upstream: Upstream) -> None:
        with pytest.raises(NoCredential, match=r"^http\.orders\.managed_identity: ") as caught:
            await tokens.read()
        assert "hunter2" not in str(caught.value)

    with_endpoint(main, said)


def test_an_endpoint_that_hangs_is_given_up_with_the_call() -> None:
    async def main(tokens: IdentityTokens, hands: Hands, upstream: Upstream) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await tokens.read()

    with_endpoint(main, HANG)


@pytest.mark.parametrize("endpoint", ["http://evil.test/token", "ftp://x", "", "http://user@localhost/"])
def test_nothing_but_this_machine_is_asked(endpoint: str) -> None:
    """A name that leads elsewhere is not dialled; without an endpoint the metadata service is asked."""
    asked: list[str] = []

    class Dialler:
        async def connect(self, destination: Any, destinations: Any, **_: Any) -> Any:
            asked.append(destination.host)
            raise NoCredential("not in this test")

    client = HttpClient(Dialler())  # type: ignore[arg-type]
    environ = {"IDENTITY_ENDPOINT": endpoint, "IDENTITY_HEADER": "x"}
    tokens = IdentityTokens("place", ManagedIdentity("r"), environ, client, lambda _: None)
    with pytest.raises(NoCredential):
        asyncio.run(tokens.read())
    assert asked == {"": ["169.254.169.254"]}.get(endpoint, [])


def test_the_library_gets_tokens_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, str]] = []

    class Credential:
        def __init__(self, client_id: str | None) -> None:
            self.client_id = client_id

        def get_token(self, scope: str) -> Any:
            asked.append((self.client_id, scope))
            return types.SimpleNamespace(token="library-token", expires_on=1_700_004_600)

    module = types.ModuleType("azure.identity")
    module.ManagedIdentityCredential = Credential  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "azure", types.ModuleType("azure"))
    monkeypatch.setitem(sys.modules, "azure.identity", module)

    async def main(tokens: IdentityTokens, hands: Hands, upstream: Upstream) -> None:
        assert [await tokens.read(), await tokens.read()] == ["library-token", "library-token"]
        assert upstream.asked == []

    with_endpoint(main, identity=ManagedIdentity("api://orders/", "c-1", uses_library=True))
    assert asked == [("c-1", "api://orders/.default")]


def test_a_missing_library_is_no_credential(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "azure.identity", None)
    identity = ManagedIdentity("r", uses_library=True)
    tokens = IdentityTokens("place", identity, {}, HttpClient(), lambda _: None)
    with pytest.raises(NoCredential, match="azure-identity"):
        asyncio.run(tokens.read())
