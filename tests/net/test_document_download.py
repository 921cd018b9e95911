"""A file downloaded whole, under the rules that calls of APIs have."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from portbook.net.document_download import CannotDownload, download
from support.scripted_api import HANG, Certificates, Upstream, answer


def fetched(*answers: Any, path: str = "/api.json", **options: Any) -> tuple[bytes, Upstream]:
    async def run() -> tuple[bytes, Upstream]:
        async with Upstream(*answers) as api:
            given: dict[str, Any] = {
                "accept": "application/json",
                "limit": 1000,
                "timeout_s": 10.0,
                **options,
            }
            return await download(f"{api.url}{path}", **given), api

    return asyncio.run(run())


def problem(*answers: Any, **options: Any) -> str:
    with pytest.raises(CannotDownload) as caught:
        fetched(*answers, **options)
    return str(caught.value)


def test_a_file_is_what_the_server_sent() -> None:
    data, api = fetched(answer(b'{"a": 1}'), path="/v1/api.json?version=2")
    assert data == b'{"a": 1}'
    [asked] = api.asked
    assert (asked.method, asked.target) == ("GET", "/v1/api.json?version=2")
    assert asked.headers["accept"] == "application/json"
    assert "authorization" not in asked.headers


def test_a_redirect_is_followed_on_the_same_host() -> None:
    data, api = fetched(answer(b"", 301, location="/moved"), answer(b"there"))
    assert data == b"there"
    assert api.targets == ["/api.json", "/moved"]


@pytest.mark.parametrize(
    ("answers", "options", "words"),
    [
        ((answer(b"", 302, location="https://b.example/"),), {}, "it redirects to a different host"),
        ((answer(b"", 302, location="/again"),), {}, "it redirects too often"),
        ((answer(b"no", 404),), {}, "the answer has the status 404"),
        ((answer(b"x" * 1001),), {}, "1000 bytes"),
        ((HANG,), {"timeout_s": 0.05}, "not all of it arrived within 0.05 s"),
        ((b"",), {}, "connection"),
    ],
    ids=["a different host", "no end", "a status", "too long", "too late", "nothing"],
)
def test_what_cannot_be_had_is_explained(answers: Any, options: Any, words: str) -> None:
    assert words in problem(*answers, **options)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://a.example/x", "a URL starts with http"),
        ("https://user:word@a.example/x", "no user name or password"),
        ("http://127.1/x", "IPv4"),
    ],
)
def test_an_address_with_two_readings_is_refused(url: str, words: str) -> None:
    with pytest.raises(CannotDownload) as caught:
        asyncio.run(download(url, accept="*/*", limit=1, timeout_s=1))
    assert words in str(caught.value)
    assert "word@" not in str(caught.value)


def test_a_certificate_that_is_not_trusted_is_explained(certificates: Certificates) -> None:
    async def run(ca_file: Path | None) -> bytes:
        async with Upstream(answer(b"{}"), host="localhost", tls=certificates.server) as api:
            options: dict[str, Any] = {"accept": "*/*", "limit": 10, "timeout_s": 10, "ca_file": ca_file}
            return await download(api.url, **options)

    assert asyncio.run(run(certificates.ca_file)) == b"{}"
    with pytest.raises(CannotDownload, match="certificate"):
        asyncio.run(run(None))
