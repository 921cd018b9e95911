"""Names of tools, and what a tool raises to say why it failed."""

from __future__ import annotations

import pytest

from portbook import NotFound, ToolError
from portbook.tools.spec import BadTool, require_slug
from portbook.tools.tool_names import slug_of


def test_in_a_tool_it_is_an_error_like_any() -> None:
    assert issubclass(NotFound, ToolError)


def test_a_long_name_is_not_repeated_in_full() -> None:
    with pytest.raises(BadTool) as raised:
        require_slug("A" * 5000)
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize(
    ("identifier", "slug"),
    [
        ("docs.search", "docs.search"),
        ("mcp.tool:docs.search", "docs.search"),
        ("mcp.tool:", ""),
        ("mcp.tool:mcp.tool:a", "mcp.tool:a"),
        ("MCP.TOOL:a", "MCP.TOOL:a"),
    ],
)
def test_a_slug_is_an_identifier_without_its_prefix(identifier: str, slug: str) -> None:
    assert slug_of(identifier) == slug
