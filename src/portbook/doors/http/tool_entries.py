"""Tools as pages need them: many in short, and one with a schema that a form is made of. Pure: no I/O."""

from __future__ import annotations

from portbook.dialects.rest_bodies import described
from portbook.model import JSON, JSONObject
from portbook.policy import Policy
from portbook.tools.catalog import Tool

__all__ = ["brief_entry", "whole_entry"]


def brief_entry(tool: Tool) -> JSONObject:
    """Return the entry of a tool in `GET /tools?brief=1`: without schemas, with the group it belongs to."""
    spec = tool.spec
    return {
        "tool_id": spec.identifier,
        "name": spec.name,
        "description": spec.description.partition("\n")[0],
        "effect": spec.effect.value,
        "timeout_ms": spec.timeout_ms,
        **_place(tool),
    }


def whole_entry(tool: Tool, policy: Policy) -> JSONObject:
    """Return the answer of `GET /tools/NAME`: the entry of `GET /tools`, and what a form is made of."""
    from portbook.schema.inlined_references import inlined_references  # late: only for forms

    return {
        **described(tool, policy),
        **_place(tool),
        "listed": tool.listed,
        "args_form": inlined_references(tool.spec.input_schema),
    }


def _place(tool: Tool) -> JSONObject:
    """Return what people find a tool by."""
    spec = tool.spec
    source, group = "python", spec.name.rpartition(".")[0]
    if spec.operation is not None:
        source, group = "http", spec.operation.gateway
    elif spec.upstream is not None:
        source, group = "mcp", spec.upstream.server
    tags: list[JSON] = [*spec.tags]
    return {"title": spec.shown.get("title"), "source": source, "group": group, "tags": tags}
