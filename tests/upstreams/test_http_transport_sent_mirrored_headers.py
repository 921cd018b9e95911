"""Headers that repeat a message: our own server accepts what our client writes."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.protocol.mirrored_headers import VERSION, marked_params, refuse_headers, refuse_params
from portbook.upstreams.http_transport import mirrored_headers

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "deep": {"type": "object", "properties": {"on": {"type": "boolean", "x-mcp-header": "On"}}},
    },
}


@pytest.mark.parametrize("name", ["plain", "größe", " spaced ", "=?base64?eA==?=", "line\nbreak"])
@pytest.mark.parametrize(
    "arguments",
    [{}, {"region": "eu", "count": 5, "deep": {"on": True}}, {"region": "süd", "count": 7.0}],
)
def test_what_is_written_is_accepted(name: str, arguments: dict[str, Any]) -> None:
    marks = marked_params(SCHEMA)
    message = {"method": "tools/call", "params": {"name": name, "arguments": arguments}}
    written = dict(mirrored_headers(message, marks))
    assert all(value.isascii() and value.isprintable() for value in written.values())
    headers = {key.lower(): value for key, value in written.items()} | {VERSION: "2026-07-28"}
    assert refuse_headers(headers, message, "2026-07-28") is None
    assert refuse_params(headers, marks, arguments) is None


def test_a_message_without_params_has_its_method_alone() -> None:
    assert list(mirrored_headers({"method": "server/discover"}, ())) == [("Mcp-Method", "server/discover")]
