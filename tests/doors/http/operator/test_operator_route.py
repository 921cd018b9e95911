"""Every operator route: the key, and what is said about a wrong request."""

from __future__ import annotations

from typing import Any

import pytest

from support.operator_console import Console

NOTHING = {"kind": "tool", "name": "a", "digest": ""}
EVERYTHING: list[tuple[str, Any]] = [
    ("/operator/waiting", None),
    ("/operator/upstreams", None),
    ("/operator/upstreams/box", {"action": "restart"}),
    ("/operator/pins", None),
    (
        "/operator/pins/box",
        {"decision": "keep", "definitions": [{"kind": "tool", "name": "a", "digest": ""}]},
    ),
    ("/operator/policy", None),
    ("/operator/policy/explain", {"tool": "notes.keep"}),
    ("/operator/policy/replay", {"policy": ""}),
]


@pytest.mark.covers("design.operator.acts")
@pytest.mark.parametrize(("path", "body"), EVERYTHING)
@pytest.mark.parametrize("key", [None, "wrong"])
def test_without_the_operators_key_nothing_is_told_or_done(
    console: Console, path: str, body: Any, key: str | None
) -> None:
    status, answer = console.ask(path, body, key)
    assert (status, answer["error"]["code"]) == (401, "UNAUTHORIZED")


WRONG: list[tuple[str, Any, str]] = [
    ("/operator/upstreams/box", {"action": "stop"}, "/action"),
    ("/operator/upstreams/box", [], ""),
    ("/operator/pins/box", {"decision": "approve", "definitions": []}, "/definitions"),
    ("/operator/pins/box", {"decision": "approve", "definitions": [{}]}, "/definitions/0"),
    ("/operator/pins?colour=red", None, "/colour"),
    ("/operator/policy/explain", {"tool": ""}, "/tool"),
    ("/operator/policy/explain", {"tool": "notes.keep", "colour": 1}, ""),
    ("/operator/policy/replay", {"policy": "[policy"}, "/policy"),
    ("/operator/policy/replay", {"policy": "[policy]\ndefalt = 1"}, "/policy"),
    ("/operator/policy/replay", {"policy": "[[policy.rules]]\nname = 'a'"}, "/policy"),
    ("/operator/policy/replay", {"policy": "", "since": "soon"}, "/since"),
]


@pytest.mark.parametrize(("path", "body", "pointer"), WRONG)
def test_a_wrong_request_is_told_where_it_is_wrong(
    console: Console, path: str, body: Any, pointer: str
) -> None:
    status, answer = console.ask(path, body)
    assert status == 400
    assert pointer in [each["pointer"] for each in answer["error"]["details"]["violations"]]
