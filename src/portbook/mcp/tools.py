"""Tools in MCP: listings by revision, pagination, and results as content. Pure: no I/O."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Any, Final

from portbook.canonical import json_bytes
from portbook.errors import Finding, Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.protocol.revisions import Revision
from portbook.tools.catalog import Tool
from portbook.tools.spec import Effect, ToolSpec

__all__ = [
    "PAGE_SIZE",
    "Listing",
    "described_tool",
    "fitted",
    "page_of",
    "shown_in",
    "tool_result",
    "value_of",
]

PAGE_SIZE: Final = 100


# Makes one entry of a listing, in one revision.
Describe = Callable[[Tool, Revision], JSONObject]


class Listing:
    """The listing of one kind, in the form of each revision; each entry is made once.

    An entry that is invalid in a revision is left out there; the rest is listed.
    """

    def __init__(
        self,
        tools: Callable[[], list[Tool]],
        describe: Describe,
        is_allowed: Callable[[JSONObject, Revision], bool],
    ) -> None:
        self._tools = tools
        self._describe = describe
        self._is_allowed = is_allowed
        self._made: dict[tuple[str, str], JSONObject | None] = {}

    def of(self, revision: Revision, may_see: Callable[[str], bool]) -> list[tuple[str, JSONObject]]:
        """Return names and entries of what a caller may see, ordered by name: a tool's canonical one."""
        seen = [tool for tool in self._tools() if may_see(tool.spec.name)]
        made = [(tool.spec.name, self._made_for(tool, revision)) for tool in seen]
        return [(name, described) for name, described in made if described is not None]

    def _made_for(self, tool: Tool, revision: Revision) -> JSONObject | None:
        key = (revision.name, tool.spec.name)
        if key not in self._made:
            described = self._describe(tool, revision)
            self._made[key] = described if self._is_allowed(described, revision) else None
        return self._made[key]


def page_of(items: list[tuple[str, JSONObject]], cursor: str | None) -> tuple[list[JSONObject], str | None]:
    """Return the page at `cursor`, the first without one, and the cursor of the next page.

    Raises `Refused` for a cursor that is not of this list.
    """
    start = 0
    if cursor is not None:
        names = [name for name, _ in items]
        last = _decoded(cursor)
        if last not in names:
            finding = Finding(
                "/params/cursor", "not a cursor of this list; start again without one", "cursor", ""
            )
            raise Refused(Reason.BAD_PARAMS, (finding,))
        start = names.index(last) + 1
    page = items[start : start + PAGE_SIZE]
    has_more = start + PAGE_SIZE < len(items)
    return [described for _, described in page], _encoded(page[-1][0]) if has_more else None


def _encoded(name: str) -> str:
    return base64.urlsafe_b64encode(f"after:{name}".encode()).decode()


def _decoded(cursor: str) -> str | None:
    try:
        text = base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None
    return text.removeprefix("after:") if text.startswith("after:") else None


def described_tool(tool: Tool, revision: Revision) -> JSONObject:
    """Return a tool as a listing has it."""
    spec = tool.spec
    described: JSONObject = {"name": tool.listed, "inputSchema": _input_schema(spec.input_schema)}
    if spec.description:
        described["description"] = spec.description
    if revision.has_annotations:
        described["annotations"] = {**_annotations(spec), **spec.hints}
    if revision.has_structured_content and isinstance(spec.output_schema, dict):
        wrapped = revision.wants_objects and not _is_object(spec.output_schema)
        described["outputSchema"] = _wrapped(spec.output_schema) if wrapped else _explicit(spec.output_schema)
    return {**described, **shown_in(spec.shown, revision)} if spec.shown else described


def shown_in(shown: JSONObject, revision: Revision) -> JSONObject:
    """Return the descriptive members of a listing's entry (title, icons) that a revision has."""
    unknown: set[str] = set()
    if not revision.has_titles:
        unknown.add("title")
    if not revision.has_icons:
        unknown.add("icons")
    return {name: value for name, value in shown.items() if name not in unknown}


def fitted(block: JSONObject, revision: Revision) -> JSONObject:
    """Return a content block in a form that the revision has; as text, if it has none."""
    kind = block.get("type")
    if kind == "audio" and not revision.has_audio:
        return {"type": "text", "text": f"[audio, {block['mimeType']}]"}
    if kind == "resource_link" and not revision.has_resource_links:
        return {"type": "text", "text": str(block["uri"])}
    return block


def _annotations(spec: ToolSpec) -> JSONObject:
    if not spec.is_effect_declared:
        return {"readOnlyHint": False}  # undeclared: MCP then assumes that it may be destructive
    return {
        "readOnlyHint": spec.effect is Effect.READ,
        "destructiveHint": spec.effect is Effect.DESTRUCTIVE,
    }


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
    return _input_schema(schema) if _is_object(schema) else schema


def _is_object(schema: JSONObject) -> bool:
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


def tool_result(tool: Tool, result: Any, body: bytes, revision: Revision) -> JSONObject:
    """Return a tool's checked result in MCP's form: text for the model, structure for programs."""
    if tool.spec.gives_content:
        content: JSONObject = {"content": [fitted(block, revision) for block in result]}
        return {**content, "resultType": "complete"} if revision.has_result_type else content
    text = result if isinstance(result, str) else body.decode()
    answer: JSONObject = {"content": [] if result is None else [{"type": "text", "text": text}]}
    if revision.has_structured_content:
        schema = tool.spec.output_schema
        if not revision.wants_objects or isinstance(result, dict):
            is_wrapped = revision.wants_objects and isinstance(schema, dict) and not _is_object(schema)
            answer["structuredContent"] = {"result": result} if is_wrapped else result
        elif isinstance(schema, dict):
            answer["structuredContent"] = {"result": result}
    if revision.has_result_type:
        answer["resultType"] = "complete"
    return answer


def value_of(tool: Tool, answer: JSONObject, revision: Revision) -> JSON:
    """Return what a tool returned, as far as its call's result tells in this revision."""
    if "structuredContent" in answer:
        structured, schema = answer["structuredContent"], tool.spec.output_schema
        is_wrapped = revision.wants_objects and isinstance(schema, dict) and not _is_object(schema)
        return structured["result"] if is_wrapped and isinstance(structured, dict) else structured
    content = answer["content"]
    if tool.spec.gives_content or not isinstance(content, list):
        return content
    texts = [block["text"] for block in content if isinstance(block, dict)]  # one text, or none
    return texts[0] if texts else None
