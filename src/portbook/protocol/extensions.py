"""The extensions of MCP that are served: their methods, who may call them, and the shape of their params.

Extensions belong to the revisions without a handshake: there each request says what its client knows.
Pure: no I/O.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from portbook.errors import Finding
from portbook.model import JSON, JSONObject
from portbook.schema.cache import validator_for

__all__ = ["EXTENSIONS", "SKILLS", "TASKS", "ExtensionMethod", "findings_of"]

TASKS: Final = "io.modelcontextprotocol/tasks"
SKILLS: Final = "io.modelcontextprotocol/skills"


class ExtensionMethod(NamedTuple):
    """A request that an extension adds."""

    extension: str
    needs_client: bool
    """Whether the client must have declared the extension too."""
    params: JSONObject
    """A schema of its params, beside `_meta`."""


_TASK: Final[JSONObject] = {"taskId": {"type": "string", "minLength": 1, "maxLength": 256}}
_URI: Final[JSONObject] = {"uri": {"type": "string", "minLength": 1, "maxLength": 2048}}
_CURSOR: Final[JSONObject] = {"cursor": {"type": "string"}}
_ANSWERS: Final[JSONObject] = {
    "inputResponses": {"type": "object", "additionalProperties": {"type": "object"}}
}


def _params(properties: JSONObject, *required: str) -> JSONObject:
    return {"type": "object", "properties": properties, "required": list(required)}


EXTENSIONS: Final[dict[str, ExtensionMethod]] = {
    "tasks/get": ExtensionMethod(TASKS, True, _params(_TASK, "taskId")),
    "tasks/update": ExtensionMethod(TASKS, True, _params({**_TASK, **_ANSWERS}, "taskId", "inputResponses")),
    "tasks/cancel": ExtensionMethod(TASKS, True, _params(_TASK, "taskId")),
    "skills/list": ExtensionMethod(SKILLS, False, _params(_CURSOR)),
    "skills/get": ExtensionMethod(SKILLS, False, _params(_URI, "uri")),
    "resources/directory/read": ExtensionMethod(SKILLS, False, _params({**_URI, **_CURSOR}, "uri")),
}

_META: Final = (
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientCapabilities",
)


def findings_of(method: ExtensionMethod, message: JSONObject) -> tuple[Finding, ...]:
    """Return what is wrong with a request of an extension."""
    params: JSON = message.get("params", {})
    meta = params.get("_meta") if isinstance(params, dict) else None
    for name in _META:
        if not isinstance(meta, dict) or name not in meta:
            return (Finding("/params/_meta", f"{name} is missing", "required", ""),)
    found = validator_for(method.params)
    if found.is_valid(params):
        return ()
    return tuple(
        Finding(f"/params{each.pointer}", each.message, each.keyword, each.schema_pointer)
        for each in found.findings(params)
    )
