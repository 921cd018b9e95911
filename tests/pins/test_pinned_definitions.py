"""All that is pinned of one server."""

from __future__ import annotations

import json

from portbook.pins.pinned_definitions import SERVER, ServerDefinitions

SEEN = ServerDefinitions.observed(
    [{"name": "b", "inputSchema": {}}, {"name": "a", "inputSchema": {}, "title": "A"}],
    [{"name": "a", "description": "A prompt"}],
    "Be kind.",
)


def test_definitions_are_found_by_kind_and_name() -> None:
    assert SEEN.of("tool", "a") == {"inputSchema": {}, "title": "A"}
    assert SEEN.of("prompt", "a") == {"description": "A prompt"}
    assert SEEN.of("prompt", "b") is None
    assert SEEN.of("server", SERVER) == {"instructions": "Be kind."}
    assert ServerDefinitions().of("server", SERVER) is None
    assert list(SEEN.names()) == [("server", SERVER), ("tool", "b"), ("tool", "a"), ("prompt", "a")]
    assert list(ServerDefinitions().names()) == []


def test_as_data_they_read_back() -> None:
    for each in (SEEN, ServerDefinitions()):
        assert ServerDefinitions.of_data(json.loads(json.dumps(each.as_data()))) == each


def test_one_definition_is_replaced_or_removed() -> None:
    changed = SEEN.merged("tool", "a", {"inputSchema": {}}).merged("prompt", "a", None)
    assert changed.of("tool", "a") == {"inputSchema": {}}
    assert changed.of("prompt", "a") is None
    assert changed.merged("server", SERVER, None).instructions is None
    assert changed.merged("server", SERVER, {"instructions": "Hi"}).instructions == "Hi"
    assert changed.merged("tool", "unknown", None) == changed
    assert SEEN.of("prompt", "a") is not None
