"""Which revision a message is in, and what is said where there is none."""

from __future__ import annotations

import pytest

from support.in_process_connection import META, STATELESS_META, Connection, handshake


@pytest.mark.parametrize("asked", ["2099-01-01", "2026-07-28", "1.0", ""])
def test_initialize_offers_the_newest_handshake_for_a_revision_it_cannot_agree_to(
    connection: Connection, asked: str
) -> None:
    assert connection.request("initialize", handshake(asked))["result"]["protocolVersion"] == "2025-11-25"


def test_an_official_request_before_initialize_is_told_what_to_do(connection: Connection) -> None:
    error = connection.request("tools/list")["error"]
    assert error["code"] == -32602
    assert "initialize" in error["data"]["violations"][0]["message"]
    assert connection.request("ping")["result"] == {}


@pytest.mark.parametrize(
    ("version", "code"), [("2099-01-01", -32022), ("2025-06-18", -32022), (5, -32602), (None, -32602)]
)
def test_a_revision_that_is_not_spoken_is_refused_with_those_that_are(
    connection: Connection, version: object, code: int
) -> None:
    error = connection.request(
        "tools/list", {"_meta": {**STATELESS_META, META + "protocolVersion": version}}
    )["error"]
    assert error["code"] == code
    if code == -32022:
        assert error["data"]["supported"] == ["2026-07-28"]


def test_a_stateless_request_says_its_capabilities(connection: Connection) -> None:
    meta = {META + "protocolVersion": "2026-07-28"}
    assert connection.request("tools/list", {"_meta": meta})["error"]["code"] == -32602
