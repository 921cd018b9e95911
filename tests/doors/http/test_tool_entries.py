"""Tools in short, and one tool with a schema for a form."""

from __future__ import annotations

from typing import Any

import pytest

from portbook.doors.http.rest_and_rpc_routes import brief_entry, whole_entry
from portbook.policy import Policy
from portbook.tools.catalog import Catalog, Tool
from portbook.tools.http_operation import HttpOperation
from portbook.tools.spec import Effect, ToolSpec
from portbook.tools.upstream_entries import UpstreamEntry

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"to": {"$ref": "#/$defs/address"}},
    "$defs": {"address": {"type": "string", "format": "email"}},
}
GET = HttpOperation(gateway="shop", base_url="http://127.0.0.1:1", method="GET", path="/a")


def tool_of(name: str, **more: Any) -> Tool:
    spec = ToolSpec(name, "Sends it.\n\nAt once.", SCHEMA, True, Effect.WRITE, tags=("mail",), **more)
    (found,) = Catalog([spec])
    return found


@pytest.mark.parametrize(
    ("name", "more", "source", "group"),
    [
        ("mail.out.send", {}, "python", "mail.out"),
        ("send", {}, "python", ""),
        ("shop.send", {"operation": GET}, "http", "shop"),
        ("box.send", {"upstream": UpstreamEntry("box", "send", {})}, "mcp", "box"),
    ],
)
def test_a_tool_in_short_has_its_group_and_no_schema(
    name: str, more: dict[str, Any], source: str, group: str
) -> None:
    entry = brief_entry(tool_of(name, shown={"title": "Send"}, **more))
    assert entry == {
        "tool_id": f"mcp.tool:{name}", "name": name, "title": "Send", "description": "Sends it.",
        "effect": "write", "timeout_ms": None, "source": source, "group": group, "tags": ["mail"],
    }  # fmt: skip


def test_a_whole_tool_has_a_schema_without_references_for_forms() -> None:
    entry: dict[str, Any] = whole_entry(tool_of("mail.send"), Policy())
    assert entry["args_schema"] == SCHEMA
    assert entry["args_form"]["properties"] == {"to": {"type": "string", "format": "email"}}
    assert (entry["description"], entry["listed"]) == ("Sends it.\n\nAt once.", "mail__send")
