"""Results of resources/read, prompts/get and completion/complete, as each revision has them. Pure: no I/O."""

from __future__ import annotations

from typing import Any, Final, cast

from portbook.model import JSON, JSONObject
from portbook.protocol.revisions import Revision
from portbook.tools.catalog import Tool

__all__ = ["completion_result", "fitted", "prompt_result", "resource_result"]

# The most values in one completion, as MCP has it.
_MAX_VALUES: Final = 100


def fitted(block: JSONObject, revision: Revision) -> JSONObject:
    """Return a content block in a form that the revision has; as text, if it has none."""
    kind = block.get("type")
    if kind == "audio" and not revision.has_audio:
        return {"type": "text", "text": f"[audio, {block['mimeType']}]"}
    if kind == "resource_link" and not revision.has_resource_links:
        return {"type": "text", "text": str(block["uri"])}
    return block


def resource_result(uri: str, parts: Any) -> JSONObject:
    """Return the contents of a resource; a part without a URI of its own gets the requested one."""
    return {"contents": [{"uri": uri, **part} for part in cast("list[JSONObject]", parts)]}


def prompt_result(tool: Tool, messages: Any, revision: Revision) -> JSONObject:
    """Return a prompt's messages."""
    result: JSONObject = {
        "messages": [
            {**message, "content": fitted(cast("JSONObject", message["content"]), revision)}
            for message in cast("list[JSONObject]", messages)
        ]
    }
    if tool.spec.description:
        result["description"] = tool.spec.description
    return result


def completion_result(suggested: Any) -> JSONObject:
    """Return suggested values, at most the first 100; a server behind us says itself how many there are."""
    if isinstance(suggested, dict):
        said = cast("JSONObject", suggested)
        values = cast("list[JSON]", said["values"])
        total, has_more = said.get("total"), said.get("hasMore") is True
    else:
        values = cast("list[JSON]", suggested)
        total, has_more = len(values), False
    completion: JSONObject = {
        "values": values[:_MAX_VALUES],
        "hasMore": has_more or len(values) > _MAX_VALUES,
    }
    if type(total) is int:
        completion["total"] = total
    return {"completion": completion}
