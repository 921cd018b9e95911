"""The result of `tools/call`: content for the model, `structuredContent` for programs. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from portbook.mcp.tools import is_object_schema
from portbook.model import JSON, JSONObject
from portbook.protocol.revisions import Revision
from portbook.tools.catalog import Tool

__all__ = ["Shape", "fitted", "shape_of_tool", "value_of"]


# Puts a checked result, its JSON and the params of its request into MCP's form.
Shape: TypeAlias = Callable[[Any, bytes, JSONObject], JSONObject]


def fitted(block: JSONObject, revision: Revision) -> JSONObject:
    """Return a content block in a form that the revision has; as text, if it has none."""
    kind = block.get("type")
    if kind == "audio" and not revision.has_audio:
        return {"type": "text", "text": f"[audio, {block['mimeType']}]"}
    if kind == "resource_link" and not revision.has_resource_links:
        return {"type": "text", "text": str(block["uri"])}
    return block


def shape_of_tool(tool: Tool, revision: Revision) -> Shape:
    """Return the shape of a tool's results: text for the model, structure for programs."""
    schema, wants_objects = tool.spec.output_schema, revision.wants_objects
    is_described, is_structured = isinstance(schema, dict), revision.has_structured_content
    is_wrapped = _is_wrapped(tool, revision)
    kind: JSONObject = {"resultType": "complete"} if revision.has_result_type else {}

    def content(result: Any, body: bytes, params: JSONObject) -> JSONObject:
        return {"content": [fitted(block, revision) for block in result], **kind}

    def value(result: Any, body: bytes, params: JSONObject) -> JSONObject:
        text = result if isinstance(result, str) else body.decode()
        answer: JSONObject = {"content": [] if result is None else [{"type": "text", "text": text}]}
        if is_structured:
            if not wants_objects or isinstance(result, dict):
                answer["structuredContent"] = {"result": result} if is_wrapped else result
            elif is_described:
                answer["structuredContent"] = {"result": result}
        if kind:
            answer.update(kind)
        return answer

    if tool.spec.upstream is not None:
        return partial(_relayed, tool, revision)
    return content if tool.spec.gives_content else value


def _is_wrapped(tool: Tool, revision: Revision) -> bool:
    """Return whether the revision wants objects, and the tool may return something else."""
    schema = tool.spec.output_schema
    return revision.wants_objects and isinstance(schema, dict) and not is_object_schema(schema)


def _relayed(tool: Tool, revision: Revision, whole: Any, body: bytes, params: JSONObject) -> JSONObject:
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
        structured, is_wrapped = answer["structuredContent"], _is_wrapped(tool, revision)
        return structured["result"] if is_wrapped and isinstance(structured, dict) else structured
    content = answer["content"]
    if tool.spec.gives_content or not isinstance(content, list):
        return content
    texts = [block["text"] for block in content if isinstance(block, dict)]  # one text, or none
    return texts[0] if texts else None
