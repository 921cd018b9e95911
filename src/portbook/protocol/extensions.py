"""The supported extensions of MCP: their methods, the clients that may call them, and their params.

Extensions exist in the revisions without a handshake, where each request has its client's capabilities.
Pure: no I/O.
"""

from __future__ import annotations

from typing import Final, cast

from portbook.errors import Finding, Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.protocol.negotiation import META_REVISION
from portbook.schema.engine import validator_for
from portbook.text.named_tuple import NamedTuple

__all__ = [
    "EXTENSIONS",
    "META_CAPABILITIES",
    "SKILLS",
    "TASKS",
    "ExtensionMethod",
    "declares",
    "findings_of",
    "missing_extension",
    "task_ids_of",
]

TASKS: Final = "io.modelcontextprotocol/tasks"
SKILLS: Final = "io.modelcontextprotocol/skills"


class ExtensionMethod(NamedTuple):
    """A request that an extension adds."""

    extension: str
    needs_client: bool
    """Whether the client must have declared the extension."""
    params: JSONObject
    """The schema of its params, without `_meta`."""


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

META_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
_META: Final = (META_REVISION, META_CAPABILITIES)

# The notifications that the tasks extension adds to `subscriptions/listen`; the official schema does not
# have them, and accepts any value there.
_LISTEN: Final[JSONObject] = _params(
    {
        "notifications": _params(
            {"taskIds": {"type": "array", "items": _TASK["taskId"], "maxItems": 1000, "uniqueItems": True}}
        )
    }
)


def declares(meta: JSONObject, extension: str) -> bool:
    """Return whether the client of a request declared an extension in its `_meta`."""
    capabilities = meta.get(META_CAPABILITIES)
    extensions = capabilities.get("extensions") if isinstance(capabilities, dict) else None
    return isinstance(extensions, dict) and extension in extensions


def missing_extension(extension: str) -> Refused:
    """Return the refusal of a request whose client has not declared the extension it needs."""
    required: JSONObject = {"extensions": {extension: {}}}
    return Refused(Reason.MISSING_CAPABILITY, details={"requiredCapabilities": required})


def task_ids_of(params: JSONObject) -> list[str] | None:
    """Return the task ids that the params of `subscriptions/listen` subscribe to; None where they have none.

    Raises `Refused` where they are not a list of ids, or the client has not declared tasks.
    """
    wanted = cast("JSONObject", params["notifications"]).get("taskIds")
    if wanted is None:
        return None
    if findings := _findings(_LISTEN, params):
        raise Refused(Reason.BAD_PARAMS, findings)
    if not declares(cast("JSONObject", params["_meta"]), TASKS):
        raise missing_extension(TASKS)
    return cast("list[str]", wanted)


def findings_of(method: ExtensionMethod, message: JSONObject) -> tuple[Finding, ...]:
    """Return the violations in a request of an extension."""
    params: JSON = message.get("params", {})
    meta = params.get("_meta") if isinstance(params, dict) else None
    for name in _META:
        if not isinstance(meta, dict) or name not in meta:
            return (Finding("/params/_meta", f"{name} is missing", "required", ""),)
    return _findings(method.params, params)


def _findings(schema: JSONObject, params: JSON) -> tuple[Finding, ...]:
    found = validator_for(schema)
    if found.is_valid(params):
        return ()
    return tuple(
        Finding(f"/params{each.pointer}", each.message, each.keyword, each.schema_pointer)
        for each in found.findings(params)
    )
