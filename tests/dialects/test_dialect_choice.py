"""Each message is in one dialect, and the first that claims it has it."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.dialects.dialect_choice import DialectName, choose_dialect

ENCLOSED = {"id": 1, "method": "mcp.tool.invoke"}
NAMED = {"id": 1, "method": "validate_asset"}
OTHER = {"id": 1, "method": "other"}
REVISION = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}


@pytest.mark.parametrize(
    ("message", "is_initialised", "expected"),
    [
        pytest.param(ENCLOSED, False, DialectName.ENVELOPE, id="an envelope"),
        pytest.param(ENCLOSED, True, DialectName.ENVELOPE, id="an envelope after initialize"),
        pytest.param(
            {"id": 1, "params": {"tool": "mcp.tool:echo"}}, True, DialectName.ENVELOPE, id="by its tool alone"
        ),
        pytest.param(NAMED, False, DialectName.BARE, id="the name of a tool"),
        pytest.param(NAMED, True, DialectName.BARE, id="a tool after initialize"),
        pytest.param(OTHER, True, DialectName.MCP, id="anything after initialize"),
        pytest.param({"method": "other"}, True, DialectName.MCP, id="a notification after initialize"),
        pytest.param({"id": 1, "method": "tools/call"}, False, DialectName.MCP, id="a method with a slash"),
        pytest.param({"id": 1, "method": "initialize"}, False, DialectName.MCP, id="initialize"),
        pytest.param({"id": 1, "method": "ping"}, False, DialectName.MCP, id="ping"),
        pytest.param({**OTHER, "params": {"_meta": REVISION}}, False, DialectName.MCP, id="by its _meta"),
        pytest.param({**OTHER, "params": [REVISION]}, False, DialectName.BARE, id="params of a wrong type"),
        pytest.param({"id": 1}, False, DialectName.MCP, id="no method"),
        pytest.param({"id": 1, "method": ["ping"]}, False, DialectName.MCP, id="a method of a wrong type"),
        pytest.param(OTHER, False, DialectName.BARE, id="a request without a claim"),
        pytest.param({"method": "other"}, False, None, id="a notification without a claim"),
    ],
)
def test_the_first_dialect_that_claims_a_message_has_it(
    message: dict[str, Any], is_initialised: bool, expected: DialectName | None
) -> None:
    chosen = choose_dialect(message, frozenset({"validate_asset"}), is_initialised=is_initialised)
    assert chosen is expected
