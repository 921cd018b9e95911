"""From an MCP server's answer to a result or a failure. Pure: no I/O.

A tool's result is kept whole: content, structured content, and what the server says in `_meta` beside the
protocol. One that `isError` is the tool's own error, whatever its output schema says.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from portbook.errors import REASONS, Ending, Failed, Finding, Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.protocol.revisions_and_methods import Revision
from portbook.tools.catalog import Tool
from portbook.tools.client_capabilities import known_capabilities
from portbook.upstreams.answer_checks import UNREADABLE, BadAnswer, RpcError
from portbook.upstreams.message_meta import without_reserved
from portbook.upstreams.transport import ConnectionLost, NotSent

__all__ = ["ending_by", "require_own_addresses", "result_in"]

# As much of a server's words as explains an error.
_MAX_WORDS: Final = 2000
# For a resource that does not exist, in each era.
_NOT_FOUND: Final = frozenset(
    REASONS[Reason.UNKNOWN_RESOURCE].mcp.code_in(revision) for revision in ("2025-11-25", "2026-07-28")
)
# What the client lacks is the same to the server and to us: only the client can change it.
_MISSING: Final = REASONS[Reason.MISSING_CAPABILITY].mcp.code_in("")


def result_in(result: JSONObject, tool: Tool) -> Any:
    """Return what the pipeline takes as the result of `tool`.

    Raises `Failed` where the tool reports an error, the content is none although nothing was checked, or the
    file of a skill is not the one that was listed.
    """
    kind = tool.spec.kind
    if kind == "resource":
        return _contents(_objects(result, "contents"), tool)
    if kind == "prompt":
        return _objects(result, "messages")
    if kind == "completion":
        return result.get("completion")
    content = _objects({"content": [], **result}, "content")
    if result.get("isError") is True:
        raise _tool_error(content)
    whole: JSONObject = {"content": cast("JSON", content)}
    if "structuredContent" in result:
        whole["structuredContent"] = result["structuredContent"]
    meta = without_reserved(result.get("_meta"))
    return {**whole, "_meta": meta} if meta else whole


def _objects(result: JSONObject, member: str) -> list[JSONObject]:
    found = result.get(member)
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Failed(Reason.BAD_RESULT, (Finding(f"/{member}", "must be a list of objects", "type", ""),))
    return cast("list[JSONObject]", found)


def _contents(contents: list[JSONObject], tool: Tool) -> list[JSONObject]:
    """Return what was read; of a file of a skill, only what the skill's entry promises."""
    entry = tool.spec.upstream
    problem = None if entry is None or entry.file is None else entry.file.problem_in(contents)
    if problem is not None:
        raise Failed(Reason.BAD_RESULT, (Finding("/contents", problem, "digest", ""),))
    return contents


def require_own_addresses(contents: list[JSONObject], is_of_others: Callable[[str], bool]) -> None:
    """Check that no content of a resource claims to be at an address of others. Raises `Failed`."""
    for at, part in enumerate(contents):
        if is_of_others(str(part.get("uri"))):
            finding = Finding(f"/contents/{at}/uri", "is an address of others", "uri", "")
            raise Failed(Reason.BAD_RESULT, (finding,))


def ending_by(
    error: RpcError | BadAnswer | NotSent | ConnectionLost, tool: Tool, revision: Revision
) -> Ending:
    """Return the ending of a call without a usable answer: `Refused` only if nothing of it was sent."""
    if isinstance(error, RpcError):
        return _rpc_failure(error, tool, revision)
    if isinstance(error, BadAnswer):
        first = error.findings[0]
        unread = first.message if first.keyword == UNREADABLE else None
        return Failed(Reason.BAD_RESULT, error.findings, happened=unread)
    if isinstance(error, NotSent):
        return Refused(Reason.UPSTREAM_ERROR, happened=str(error), is_retryable=True)
    return Failed(Reason.UPSTREAM_ERROR, happened=str(error))


def _rpc_failure(error: RpcError, tool: Tool, revision: Revision) -> Failed:
    """Return the failure of a call that its server answered with a JSON-RPC error.

    To our client it is no error of the protocol: that one is between the server and us. What the client
    lacks is said in our words: an error of ours has none of the server's.
    """
    if tool.spec.kind == "resource" and error.code in _NOT_FOUND:
        return Failed(Reason.UNKNOWN_RESOURCE, note=f"the server answered with the error {error.code}")
    if error.code == _MISSING and not revision.has_handshake and isinstance(error.data, dict):
        lacking = known_capabilities(error.data.get("requiredCapabilities"))
        if lacking:
            return Failed(Reason.MISSING_CAPABILITY, details={"requiredCapabilities": lacking})
    details = {"upstream_code": error.code, "detail": error.words[:_MAX_WORDS]}
    happened = f"it answered with the error {error.code}"
    return Failed(Reason.UPSTREAM_ERROR, happened=happened, details=details)


def _tool_error(content: list[JSONObject]) -> Failed:
    texts = [str(block["text"]) for block in content if block.get("type") == "text" and "text" in block]
    details: dict[str, object] = {"upstream_content": content}
    if texts:
        details["error"] = "\n".join(texts)[:_MAX_WORDS]
    return Failed(Reason.TOOL_ERROR, note="the server says isError", details=details)
