"""Each message is in one dialect, and the first that claims it has it."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.dialects.choice import DialectName, choose_dialect


class Claims:
    """A dialect that recognises one method."""

    def __init__(self, method: str) -> None:
        self.method = method

    def recognises(self, message: dict[str, Any]) -> bool:
        return message.get("method") == self.method


@pytest.mark.parametrize(
    ("message", "is_mcp", "expected"),
    [
        pytest.param({"id": 1, "method": "enclosed"}, False, DialectName.ENVELOPE, id="an envelope"),
        pytest.param(
            {"id": 1, "method": "enclosed"}, True, DialectName.ENVELOPE, id="an envelope after initialize"
        ),
        pytest.param({"id": 1, "method": "tool"}, False, DialectName.BARE, id="the name of a tool"),
        pytest.param({"id": 1, "method": "tool"}, True, DialectName.BARE, id="a tool after initialize"),
        pytest.param({"id": 1, "method": "other"}, True, DialectName.MCP, id="MCP"),
        pytest.param({"method": "other"}, True, DialectName.MCP, id="a notification of MCP"),
        pytest.param({"id": 1, "method": "other"}, False, DialectName.BARE, id="a request without a claim"),
        pytest.param({"method": "other"}, False, None, id="a notification without a claim"),
    ],
)
def test_the_first_dialect_that_claims_a_message_has_it(
    message: dict[str, Any], is_mcp: bool, expected: DialectName | None
) -> None:
    assert choose_dialect(message, Claims("enclosed"), Claims("tool"), lambda _: is_mcp) is expected
