"""Results in the form of a revision, checked against its official schema. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from portbook.canonical import rewritten_bytes
from portbook.errors import Failed, Reason
from portbook.mcp.cache_lifetime import as_page, kept_for
from portbook.mcp.errors import META_ENVELOPE, META_REDACTED
from portbook.mcp.handlers import LISTEN
from portbook.mcp.notifications import Mode, first_of
from portbook.mcp.resources_and_prompts import completion_result, prompt_result, resource_result
from portbook.mcp.tool_results import tool_result
from portbook.model import JSON, JSONObject
from portbook.protocol.conformance import INPUT_REQUIRED, RESULT, SchemaValidator
from portbook.protocol.extensions import EXTENSIONS
from portbook.protocol.revisions import Revision
from portbook.tools.catalog import Tool

__all__ = ["Results"]


class Results:
    """Turns what tools, resources and prompts return into MCP results."""

    def __init__(self, validator: SchemaValidator, mode: Mode, warn: Callable[[str], None]) -> None:
        self._validator = validator
        self._checks: dict[tuple[str, str], Callable[[Any], bool]] = {}
        self._mode: Mode = mode
        self._warn = warn

    def seal(
        self,
        method: str,
        tool: Tool,
        uri: JSON,
        revision: Revision,
        result: Any,
        body: bytes,
        envelope: JSONObject | None,
        is_redacted: bool,
    ) -> bytes:
        """Return what `tool` returned in the form of this revision, checked.

        Raises `Failed` where the official schema does not allow it.
        """
        if tool.spec.is_gone:  # switched off while it ran
            raise Failed(Reason.BAD_RESULT, note="no longer served")
        result = _shaped(tool, uri, revision, result, body)
        meta: JSONObject = {META_REDACTED: True} if is_redacted else {}
        if envelope is not None and tool.spec.kind == "tool":
            meta[META_ENVELOPE] = envelope
        if meta:  # outside of what the tool's outputSchema describes
            said = result.get("_meta")  # by a server behind us
            result["_meta"] = {**said, **meta} if isinstance(said, dict) else meta
        return self.checked(method, result, rewritten_bytes(result), revision)

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
        allows = self._checks.get((revision.name, method))
        if allows is None:
            allows = self._checks[revision.name, method] = self._validator.check_of(
                method + RESULT, revision.name
            )
        asks = isinstance(result, dict) and result.get("resultType") == INPUT_REQUIRED
        if not asks and allows(result):
            return body
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


def _shaped(found: Tool, uri: JSON, revision: Revision, result: Any, body: bytes) -> JSONObject:
    kind = found.spec.kind
    if kind == "tool":
        return tool_result(found, result, body, revision)
    if kind == "resource":
        return kept_for(found.spec.cache_ms, resource_result(cast("str", uri), result), revision)
    shaped = prompt_result(found, result, revision) if kind == "prompt" else completion_result(result)
    return {**shaped, "resultType": "complete"} if revision.has_result_type else shaped
