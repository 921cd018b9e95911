"""Results of tools, resources, prompts and completions, as each revision has them. Pure: no I/O.

Each is put into the form of its revision, and checked against the official schema.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar, cast

from portbook.canonical import as_written, rewritten_bytes
from portbook.errors import Failed, Reason
from portbook.mcp.error_results_and_http_status import META_ENVELOPE, META_LINKS, META_REDACTED
from portbook.mcp.listings_and_cache_lifetime import as_page, is_object_schema, kept_for
from portbook.mcp.method_handlers import LISTEN
from portbook.model import JSON, JSONObject, Sealed
from portbook.protocol.extensions import EXTENSIONS
from portbook.protocol.message_validation import INPUT_REQUIRED, RESULT, Mode, SchemaValidator, first_of
from portbook.protocol.revisions_and_methods import Revision
from portbook.text.slotted import slotted
from portbook.tools.catalog import Tool

__all__ = [
    "LARGE",
    "AroundObject",
    "Results",
    "Sealing",
    "Shape",
    "around_of",
    "is_wrapped",
    "shape_of",
    "value_of",
    "with_meta",
    "writable",
]

# The most values in one completion, as MCP has it.
_MAX_VALUES: Final = 100

# From here on, copying the bytes of a result takes less time than writing it again.
LARGE: Final = 4096


# Puts a checked result, its JSON and the params of its request into MCP's form.
Shape: TypeAlias = Callable[[Any, bytes, JSONObject], JSONObject]


@slotted
class AroundObject:
    """What MCP's form has around the JSON of a tool's object: it is there as a text, and as it is."""

    before: bytes
    between: bytes
    after: bytes
    wraps: bool
    """Whether it is a member of the structured content, and not all of it."""
    kind: str | None
    """The type of the result, where the revision has one."""

    def pieces_of_large(self, text: str, body: bytes) -> tuple[bytes, ...]:
        """Return the form of a large object, whose JSON is `text`: quoted in one pass instead of two."""
        return self.before[:-1], rewritten_bytes(text), self.between[1:], body, self.after


@slotted
class Sealing:
    """How the results of one tool are sealed in one revision."""

    tool: Tool
    shape: Shape
    allows: Callable[[Any], bool]
    """Returns whether the official schema allows a result; always, where results are not checked."""
    around: AroundObject | None = None
    """What is written around the JSON of an object; None where the shape is a different one."""


_Body = TypeVar("_Body", bound=Sealed)


class Results:
    """Turns what tools, resources and prompts return into MCP results."""

    def __init__(self, validator: SchemaValidator, mode: Mode, warn: Callable[[str], None]) -> None:
        self._validator = validator
        self._checks: dict[tuple[str, str], Callable[[Any], bool]] = {}
        self.sealings: defaultdict[str, dict[str, Sealing]] = defaultdict(dict)
        """How results were sealed before, by revision and name; each is good for its own tool alone."""
        self._mode: Mode = mode
        self._warn = warn

    def sealing_of(
        self,
        method: str,
        tool: Tool,
        revision: Revision,
        shape: Shape,
        around: AroundObject | None = None,
    ) -> Sealing:
        """Return how the results of a tool, in this `shape`, are sealed in a revision from now on."""
        allows = self._check_of(method, revision) if self._mode != "off" else _anything
        sealing = Sealing(tool, shape, allows, around)
        self.sealings[revision.name][tool.spec.name] = sealing
        return sealing

    def _check_of(self, method: str, revision: Revision) -> Callable[[Any], bool]:
        allows = self._checks.get((revision.name, method))
        if allows is None:
            allows = self._validator.check_of(method + RESULT, revision.name)
            self._checks[revision.name, method] = allows
        return allows

    def seal_answer(self, method: str, result: JSON, body: bytes, revision: Revision) -> bytes:
        """Return the result of a method that runs no tool, checked.

        Raises `Failed` where the official schema does not allow it.
        """
        if method == LISTEN:  # not sent: the result of a subscription is made and checked at its end
            return body
        return self.checked(method, result, body, revision)

    def checked(self, method: str, result: JSON, body: bytes, revision: Revision) -> bytes:
        """Return `body`, after a check of its result.

        Raises `Failed` where the official schema does not allow it.
        """
        if self._mode == "off" or (not revision.has_handshake and method in EXTENSIONS):
            return body
        asks = isinstance(result, dict) and result.get("resultType") == INPUT_REQUIRED
        if not asks and self._check_of(method, revision)(result):
            return body
        return self.settle_invalid(method, result, body, revision)

    def settle_invalid(self, method: str, result: JSON, body: _Body, revision: Revision) -> _Body:
        """Return `body` where its result is valid after all, or is not enforced to be.

        Raises `Failed` otherwise.
        """
        findings = self._validator.findings(method + RESULT, result, revision.name)
        if findings:
            if self._mode == "enforce":
                raise Failed(Reason.BAD_RESULT, findings)
            self._warn(f"outgoing {method} breaks {revision.name}: {first_of(findings)}")
        return body

    def is_listable(self, member: str, item: JSONObject, revision: Revision) -> bool:
        """Return whether a listing of the revision may hold a description; warn if it may not."""
        if self._mode != "enforce":
            return True
        method = "resources/templates/list" if member == "resourceTemplates" else f"{member}/list"
        page = as_page({member: [item]}, revision)
        findings = self._validator.findings(method + RESULT, page, revision.name)
        if findings:
            name = item.get("name", item.get("uri"))
            kind = method.partition("/")[0].removesuffix("s")
            self._warn(f"{kind} {name!r} is not listed in {revision.name}: {first_of(findings)}")
        return not findings


def writable(shaped: JSONObject, result: Any, body: bytes) -> dict[str, Any]:
    """Return what to write for `shaped`: where a large `result` is in it, its bytes are there already."""
    if shaped.get("structuredContent") is not result:
        return shaped
    return {**shaped, "structuredContent": as_written(body)}


def _anything(_: Any) -> bool:
    return True


def with_meta(
    shaped: JSONObject, envelope: JSONObject | None, is_redacted: bool, links: list[JSON] | None
) -> JSONObject:
    """Return a result with what is told beside it, outside of what the outputSchema describes."""
    meta: JSONObject = {META_REDACTED: True} if is_redacted else {}
    if envelope is not None:
        meta[META_ENVELOPE] = envelope
    if links:
        meta[META_LINKS] = links
    said = shaped.get("_meta")  # by a server behind us
    if isinstance(said, dict):
        meta = {**said, **meta}
    return {**shaped, "_meta": meta} if meta else shaped


def is_wrapped(tool: Tool, revision: Revision) -> bool:
    """Return whether the revision wants objects, and the tool may return something else."""
    schema = tool.spec.output_schema
    return revision.wants_objects and isinstance(schema, dict) and not is_object_schema(schema)


def value_of(tool: Tool, answer: JSONObject, revision: Revision) -> JSON:
    """Return what a tool returned, as far as its call's result tells in this revision."""
    if "structuredContent" in answer:
        structured, was_wrapped = answer["structuredContent"], is_wrapped(tool, revision)
        return structured["result"] if was_wrapped and isinstance(structured, dict) else structured
    content = answer["content"]
    if tool.spec.gives_content or not isinstance(content, list):
        return content
    texts = [block["text"] for block in content if isinstance(block, dict)]  # one text, or none
    return texts[0] if texts else None


def around_of(tool: Tool, revision: Revision) -> AroundObject | None:
    """Return what is written around the JSON of an object; None where a result has a different shape."""
    spec = tool.spec
    if spec.kind != "tool" or spec.upstream is not None or spec.gives_content:
        return None
    if not revision.has_structured_content:
        return None
    wraps = is_wrapped(tool, revision)
    kind = "complete" if revision.has_result_type else None
    told = b"" if kind is None else b',"resultType":"complete"'
    return AroundObject(
        b'{"content":[{"type":"text","text":"',
        b'"}],"structuredContent":' + (b'{"result":' if wraps else b""),
        (b"}" if wraps else b"") + told + b"}",
        wraps,
        kind,
    )


def shape_of(found: Tool, revision: Revision) -> Shape:
    """Return what puts the results of a tool, a resource, a prompt or a completion into MCP's form."""
    kind, cache_ms = found.spec.kind, found.spec.cache_ms
    extra: JSONObject = {"resultType": "complete"} if revision.has_result_type else {}

    def contents(result: Any, body: bytes, params: JSONObject) -> JSONObject:
        return kept_for(cache_ms, _resource_result(cast("str", params["uri"]), result), revision)

    def messages(result: Any, body: bytes, params: JSONObject) -> JSONObject:
        return {**_prompt_result(found, result, revision), **extra}

    def suggestions(result: Any, body: bytes, params: JSONObject) -> JSONObject:
        return {**_completion_result(result), **extra}

    if kind == "tool":
        return _shape_of_tool(found, revision)
    return {"resource": contents, "prompt": messages, "completion": suggestions}[kind]


def _shape_of_tool(tool: Tool, revision: Revision) -> Shape:
    """Return the shape of a tool's results: text for the model, structure for programs."""
    schema, wants_objects = tool.spec.output_schema, revision.wants_objects
    is_described, is_structured = isinstance(schema, dict), revision.has_structured_content
    wraps = is_wrapped(tool, revision)
    kind: JSONObject = {"resultType": "complete"} if revision.has_result_type else {}

    def content(result: Any, body: bytes, params: JSONObject) -> JSONObject:
        return {"content": [_fitted(block, revision) for block in result], **kind}

    def value(result: Any, body: bytes, params: JSONObject) -> JSONObject:
        text = result if isinstance(result, str) else body.decode()
        answer: JSONObject = {"content": [] if result is None else [{"type": "text", "text": text}]}
        if is_structured:
            if not wants_objects or isinstance(result, dict):
                answer["structuredContent"] = {"result": result} if wraps else result
            elif is_described:
                answer["structuredContent"] = {"result": result}
        if kind:
            answer.update(kind)
        return answer

    if tool.spec.upstream is not None:
        return partial(_relayed, tool, revision)
    return content if tool.spec.gives_content else value


def _relayed(tool: Tool, revision: Revision, whole: Any, body: bytes, params: JSONObject) -> JSONObject:
    """Return the result of an MCP server's tool in the form of the client's revision."""
    answer: JSONObject = {"content": [_fitted(block, revision) for block in whole["content"]]}
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


def _fitted(block: JSONObject, revision: Revision) -> JSONObject:
    """Return a content block in a form that the revision has; as text, if it has none."""
    kind = block.get("type")
    if kind == "audio" and not revision.has_audio:
        return {"type": "text", "text": f"[audio, {block['mimeType']}]"}
    if kind == "resource_link" and not revision.has_resource_links:
        return {"type": "text", "text": str(block["uri"])}
    return block


def _resource_result(uri: str, parts: Any) -> JSONObject:
    """Return the contents of a resource; a part without a URI of its own gets the requested one."""
    return {"contents": [{"uri": uri, **part} for part in cast("list[JSONObject]", parts)]}


def _prompt_result(tool: Tool, messages: Any, revision: Revision) -> JSONObject:
    """Return a prompt's messages."""
    result: JSONObject = {
        "messages": [
            {**message, "content": _fitted(cast("JSONObject", message["content"]), revision)}
            for message in cast("list[JSONObject]", messages)
        ]
    }
    if tool.spec.description:
        result["description"] = tool.spec.description
    return result


def _completion_result(suggested: Any) -> JSONObject:
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
