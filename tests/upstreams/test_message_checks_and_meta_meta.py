"""The `_meta` of requests to servers: ours, in the form of each era."""

from __future__ import annotations

from portbook.protocol.revisions_and_methods import REVISIONS
from portbook.upstreams.message_checks_and_meta import (
    client_capabilities,
    meta_for,
    related_task,
    without_reserved,
)

META = "io.modelcontextprotocol/"


def test_a_server_with_a_handshake_learns_nothing_twice() -> None:
    revision = REVISIONS["2025-11-25"]
    assert meta_for(revision, capabilities={"roots": {}}, level="info") == {}
    told = meta_for(revision, traceparent="00-a-b-01", progress_token=7)
    assert told == {"traceparent": "00-a-b-01", "progressToken": 7}


def test_a_server_without_one_learns_it_with_each_request() -> None:
    told = meta_for(REVISIONS["2026-07-28"], capabilities={"roots": {}}, level="info")
    assert told[META + "protocolVersion"] == "2026-07-28"
    assert told[META + "clientCapabilities"] == {"roots": {}}
    assert told[META + "logLevel"] == "info"
    assert META + "clientInfo" in told


def test_only_what_may_be_asked_is_declared() -> None:
    assert client_capabilities(frozenset({"roots"})) == {"roots": {}}
    assert client_capabilities(frozenset()) == {}


def test_reserved_members_stay_between_the_server_and_us() -> None:
    assert without_reserved({META + "x": 1, "portbook/refusal": {}, "own/y": 2}) == {"own/y": 2}
    assert without_reserved(None) == {}


def test_a_message_names_its_task_or_none() -> None:
    assert related_task({"_meta": {META + "related-task": {"taskId": "t"}}}) == "t"
    for none in (None, [], {}, {"_meta": 1}, {"_meta": {META + "related-task": 5}}):
        assert related_task(none) is None  # type: ignore[arg-type]
