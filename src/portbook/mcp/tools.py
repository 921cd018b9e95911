"""`tools/list`: tools in the form of each revision. Pure: no I/O."""

from __future__ import annotations

from portbook.canonical import json_bytes
from portbook.model import JSON, JSONObject
from portbook.protocol.revisions import Revision
from portbook.tools.annotations import hints_by_effect
from portbook.tools.catalog import Tool

__all__ = ["described_tool", "has_tasks", "is_object_schema", "shown_in"]


def described_tool(tool: Tool, revision: Revision) -> JSONObject:
    """Return a tool as a listing has it."""
    spec = tool.spec
    described: JSONObject = {"name": tool.listed, "inputSchema": _input_schema(spec.input_schema)}
    if spec.description:
        described["description"] = spec.description
    if revision.has_annotations:
        described["annotations"] = {**hints_by_effect(spec), **spec.hints}
    if revision.has_structured_content and isinstance(spec.listed_output, dict):
        wrapped = revision.wants_objects and not is_object_schema(spec.listed_output)
        described["outputSchema"] = _wrapped(spec.listed_output) if wrapped else _explicit(spec.listed_output)
    if revision.has_task_requests and has_tasks(tool):
        described["execution"] = {"taskSupport": "optional"}
    return {**described, **shown_in(spec.shown, revision)} if spec.shown else described


def has_tasks(tool: Tool) -> bool:
    """Return whether a call may run as a task: by the tool's author, or by the server that offers it."""
    spec = tool.spec
    if spec.upstream is None:
        return spec.task != "never"
    execution = spec.upstream.definition.get("execution")
    return isinstance(execution, dict) and execution.get("taskSupport") in ("optional", "required")


def shown_in(shown: JSONObject, revision: Revision) -> JSONObject:
    """Return the descriptive members of a listing's entry (title, icons, _meta) that a revision has."""
    unknown: set[str] = set()
    if not revision.has_titles:
        unknown.add("title")
    if not revision.has_icons:
        unknown.add("icons")
    if not revision.has_listing_meta:
        unknown.add("_meta")
    return {name: value for name, value in shown.items() if name not in unknown}


def _input_schema(schema: JSONObject) -> JSONObject:
    # The official schema requires a type, and a schema object for every property.
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {**schema, "type": "object"}
    spelled: JSONObject = {name: _spelled(value) for name, value in properties.items()}
    return {**schema, "type": "object", "properties": spelled}


def _spelled(schema: JSON) -> JSON:
    if isinstance(schema, bool):
        return {} if schema else {"not": {}}
    return schema


def _explicit(schema: JSONObject) -> JSONObject:
    return _input_schema(schema) if is_object_schema(schema) else schema


def is_object_schema(schema: JSONObject) -> bool:
    """Return whether every value that `schema` allows is an object."""
    reference = schema.get("$ref")
    definitions = schema.get("$defs")
    if isinstance(reference, str) and reference.startswith("#/$defs/") and isinstance(definitions, dict):
        target = definitions.get(reference.removeprefix("#/$defs/"))
        return isinstance(target, dict) and target.get("type") == "object"
    return schema.get("type") == "object"


def _wrapped(schema: JSONObject) -> JSONObject:
    """Return the schema of `{"result": value}`, with the value's own schema inside."""
    inner = {name: value for name, value in schema.items() if name != "$schema"}
    if "$ref" in json_bytes(inner).decode():  # a resource of its own, so that its references still resolve
        inner = {"$id": "urn:portbook:result", **inner}
    dialect: JSONObject = {"$schema": schema["$schema"]} if "$schema" in schema else {}
    return {**dialect, "type": "object", "properties": {"result": inner}, "required": ["result"]}
