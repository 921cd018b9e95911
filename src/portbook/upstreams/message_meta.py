"""The `_meta` of requests to a server: ours alone, whatever the caller sent. Pure: no I/O."""

from __future__ import annotations

from typing import Final

from portbook.model import JSON, JSONObject
from portbook.protocol.extensions import META_CAPABILITIES
from portbook.protocol.negotiation import META_REVISION
from portbook.protocol.revisions_and_methods import Revision
from portbook.version import __version__

__all__ = ["CLIENT_INFO", "client_capabilities", "meta_for", "related_task", "without_reserved"]

CLIENT_INFO: Final[JSONObject] = {"name": "portbook", "version": __version__}

_RESERVED: Final = "io.modelcontextprotocol/"
# What we say of a call ourselves: refusals, envelopes.
_OURS: Final = "portbook/"
_META_CLIENT: Final = "io.modelcontextprotocol/clientInfo"
_META_TASK: Final = "io.modelcontextprotocol/related-task"
_META_LEVEL: Final = "io.modelcontextprotocol/logLevel"

# What we can pass on to a caller's client, as a client declares it.
_CAPABILITIES: Final[dict[str, JSONObject]] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {},
}


def client_capabilities(may_ask: frozenset[str]) -> JSONObject:
    """Return the capabilities that we declare to a server that keeps a connection."""
    return {name: traits for name, traits in _CAPABILITIES.items() if name in may_ask}


def meta_for(
    revision: Revision,
    *,
    capabilities: JSONObject | None = None,
    traceparent: str | None = None,
    progress_token: int | None = None,
    level: str | None = None,
) -> JSONObject:
    """Return the `_meta` of a request; `capabilities` and `level` where each request declares them."""
    meta: JSONObject = {}
    if not revision.has_handshake:
        meta[META_REVISION] = revision.name
        meta[_META_CLIENT] = CLIENT_INFO
        meta[META_CAPABILITIES] = capabilities or {}
        if level is not None:
            meta[_META_LEVEL] = level
    if traceparent is not None:
        meta["traceparent"] = traceparent
    if progress_token is not None:
        meta["progressToken"] = progress_token
    return meta


def related_task(params: JSON) -> str | None:
    """Return the task that a message of a server belongs to, None where it names none."""
    meta = params.get("_meta") if isinstance(params, dict) else None
    related = meta.get(_META_TASK) if isinstance(meta, dict) else None
    task = related.get("taskId") if isinstance(related, dict) else None
    return task if isinstance(task, str) else None


def without_reserved(meta: JSON) -> JSONObject:
    """Return what a server's `_meta` says that is not part of the protocol between it and us, or ours."""
    if not isinstance(meta, dict):
        return {}
    return {name: value for name, value in meta.items() if not name.startswith((_RESERVED, _OURS))}
