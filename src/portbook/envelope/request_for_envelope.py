"""`mcp.request.v0.1`: a request whose answer is an envelope. Pure: no I/O.

Its controls are in the `_meta` of its own `params`, which are the tool's arguments; they are removed before
the arguments are validated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from portbook.envelope.controls_in_meta import Controls, Default, read_controls, take_meta
from portbook.errors import Finding, Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.schema.engine import Validator
from portbook.text.named_tuple import NamedTuple
from portbook.tools.tool_names import slug_of

if TYPE_CHECKING:
    from portbook.provenance.artifacts import Artifact

__all__ = ["REQUEST", "RequestEnvelope", "is_request", "read_request"]

REQUEST: Final = "mcp.request.v0.1"


class RequestEnvelope(NamedTuple):
    """A parsed request."""

    tool: str
    """The tool's name, without `mcp.tool:`."""
    version: str | None
    """The requested version."""
    arguments: JSONObject
    controls: Controls
    artifacts: tuple[Artifact, ...]
    request_id: str | None
    locale: str | None


def is_request(value: object) -> bool:
    """Return whether `value` declares itself a request of this contract, even if it is invalid."""
    return isinstance(value, dict) and cast("JSONObject", value).get("schema_version") == REQUEST


def read_request(
    value: JSON, schema: Validator, *, default: Default = "wrap", at: str = ""
) -> RequestEnvelope:
    """Parse `value` as a request by the `schema` of `mcp.request.v0.1`; `at` is its pointer in the message.

    Raises `Refused` with the findings where it does not match the schema, or its params are not arguments.
    """
    from portbook.provenance.inputs_and_outputs import referred_artifact  # late: only for such requests

    if not schema.allows(value):
        found = (finding._replace(pointer=at + finding.pointer) for finding in schema.findings(value))
        raise Refused(Reason.BAD_PARAMS, tuple(found))
    request = cast("dict[str, Any]", value)
    params: JSON = request["params"]
    if params is not None and not isinstance(params, dict):
        message = "expected object with the tool's arguments by name"
        raise Refused(Reason.BAD_PARAMS, (Finding(f"{at}/params", message, "type", ""),))
    arguments, meta = take_meta(params or {})
    preferences: dict[str, Any] = request.get("preferences", {})
    limit: float | None = preferences.get("max_output_bytes")
    controls = replace(
        read_controls(meta, "wrap" if default == "off" else default),
        deterministic=preferences.get("deterministic", True),
        max_output_bytes=None if limit is None else int(limit),  # 1e3 is an integer to JSON Schema
    )
    return RequestEnvelope(
        slug_of(request["tool"]["name"]),
        request["tool"].get("version"),
        arguments,
        controls,
        tuple(referred_artifact(reference, place) for place, reference in enumerate(request["artifacts"])),
        request.get("request_id"),
        preferences.get("locale"),
    )
