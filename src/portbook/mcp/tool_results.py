"""The result of `tools/call`: content for the model, `structuredContent` for programs. Pure: no I/O."""

from __future__ import annotations

from typing import Any

from portbook.mcp.tools import is_object_schema
from portbook.model import JSON, JSONObject
from portbook.protocol.revisions import Revision
from portbook.tools.catalog import Tool

__all__ = ["fitted", "tool_result", "value_of"]


def fitted(block: JSONObject, revision: Revision) -> JSONObject:
    """Return a content block in a form that the revision has; as text, if it has none."""
    kind = block.get("type")
    if kind == "audio" and not revision.has_audio:
        return {"type": "text", "text": f"[audio, {block['mimeType']}]"}
    if kind == "resource_link" and not revision.has_resource_links:
        return {"type": "text", "text": str(block["uri"])}
    return block


def tool_result(tool: Tool, result: Any, body: bytes, revision: Revision) -> JSONObject:
    """Return a tool's checked result in MCP's form: text for the model, structure for programs."""
    if tool.spec.upstream is not None:
        return _relayed(tool, result, revision)
    if tool.spec.gives_content:
        content: JSONObject = {"content": [fitted(block, revision) for block in result]}
        return {**content, "resultType": "complete"} if revision.has_result_type else content
    text = result if isinstance(result, str) else body.decode()
    answer: JSONObject = {"content": [] if result is None else [{"type": "text", "text": text}]}
    if revision.has_structured_content:
        schema = tool.spec.output_schema
        if not revision.wants_objects or isinstance(result, dict):
            is_wrapped = revision.wants_objects and isinstance(schema, dict) and not is_object_schema(schema)
            answer["structuredContent"] = {"result": result} if is_wrapped else result
        elif isinstance(schema, dict):
            answer["structuredContent"] = {"result": result}
    if revision.has_result_type:
        answer["resultType"] = "complete"
    return answer


def _relayed(tool: Tool, whole: Any, revision: Revision) -> JSONObject:
    """Return the result of an MCP server's tool in the form of the client's revision."""
    answer: JSONObject = {"content": [fitted(block, revision) for block in whole["content"]]}
    if "structuredContent" in whole and revision.has_structured_content:
        structured, schema = whole["structuredContent"], tool.spec.output_schema
        is_object = isinstance(structured, dict) and (
            not isinstance(schema, dict) or is_object_schema(schema)
        )
        answer["structuredContent"] = (
            {"result": structured} if revision.wants_objects and not is_object else structured
        )
    if "_meta" in whole:
        answer["_meta"] = whole["_meta"]
    return {**answer, "resultType": "complete"} if revision.has_result_type else answer


def value_of(tool: Tool, answer: JSONObject, revision: Revision) -> JSON:
    """Return what a tool returned, as far as its call's result tells in this revision."""
    if "structuredContent" in answer:
        structured, schema = answer["structuredContent"], tool.spec.output_schema
        is_wrapped = revision.wants_objects and isinstance(schema, dict) and not is_object_schema(schema)
        return structured["result"] if is_wrapped and isinstance(structured, dict) else structured
    content = answer["content"]
    if tool.spec.gives_content or not isinstance(content, list):
        return content
    texts = [block["text"] for block in content if isinstance(block, dict)]  # one text, or none
    return texts[0] if texts else None
