"""How a caller asks for an envelope: `mcp.request.v0.1`, or controls in `_meta`. Pure: no I/O.

    capture_provenance   true: attach a provenance record
    capture_artifacts    true: with digests of the inputs and outputs
    provenance_mode      "minimal", or "full": also with digests of the tool, its schemas and the policy
    parents              the ids of the runs whose results this run uses

An invalid value does not fail the call: the default is used, and the envelope has a warning. Other members
of `_meta` are ignored.

The answer to a request of `mcp.request.v0.1` is an envelope. Its controls are in the `_meta` of its own
`params`, which are the tool's arguments; they are removed before the arguments are validated.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from portbook.errors import Finding, Reason, Refused
from portbook.model import ENVELOPE_CONTROLS, JSON, JSONObject
from portbook.provenance.require_length import require_length
from portbook.schema.engine import Validator
from portbook.text.named_tuple import NamedTuple
from portbook.tools.tool_names import slug_of

if TYPE_CHECKING:
    from portbook.envelope.errors_and_warnings import Problem
    from portbook.provenance.artifacts import Artifact

__all__ = [
    "REQUEST",
    "Controls",
    "Default",
    "Mode",
    "are_plain",
    "is_request",
    "read_controls",
    "read_request",
    "take_meta",
]

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
    from portbook.provenance.record_inputs_and_outputs import (
        referred_artifact,  # late: only for such requests
    )

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


# Controls, as a caller asks for them.

Mode = Literal["minimal", "full"]

# For callers that ask for nothing: the bare result, an envelope, or an envelope with provenance.
Default = Literal["off", "wrap", "provenance"]

# The parents that one record may name.
_MAX_PARENTS: Final = 100
_MAX_RUN_ID: Final = 200


@dataclass(frozen=True, slots=True, repr=False)
class Controls:
    """The controls of an envelope."""

    capture_provenance: bool = False
    capture_artifacts: bool = False
    provenance_mode: Mode = "minimal"
    parents: tuple[str, ...] = ()
    deterministic: bool = True
    """Whether the same request must give the same bytes, without times, durations and random ids."""
    max_output_bytes: int | None = None
    """The envelope has a warning where the result is larger than this."""
    warnings: tuple[Problem, ...] = ()
    """Warnings about invalid controls."""
    is_wanted: bool = True
    """Whether the result is wrapped in an envelope."""

    def __post_init__(self) -> None:
        """Raise `ValueError` for a parent's id of invalid length."""
        for parent in self.parents:
            require_length("parents", parent, _MAX_RUN_ID)


# What most callers with controls ask for.
RECORD_ALONE: Final = Controls(capture_provenance=True)
_FURTHER: Final = ENVELOPE_CONTROLS - {"capture_provenance"}


def are_plain(controls: Controls) -> bool:
    """Return whether controls want a record, and nothing that depends on the result or the occasion."""
    return controls is RECORD_ALONE or (
        controls.capture_provenance
        and controls.deterministic
        and controls.max_output_bytes is None
        and not (controls.capture_artifacts or controls.parents or controls.warnings)
    )


def read_controls(
    meta: JSON,
    default: Default = "off",
    *,
    deterministic: bool = True,
    max_output_bytes: int | None = None,
    is_required: bool = False,
) -> Controls:
    """Return the controls in `meta`; an envelope is wanted where it has any, even invalid ones.

    Controls equal to the defaults, such as `"capture_provenance": false`, do not ask for an envelope.
    """
    given: JSONObject = meta if isinstance(meta, dict) else {}
    is_record_alone = given.get("capture_provenance") is True and _FURTHER.isdisjoint(given)
    if is_record_alone and deterministic and max_output_bytes is None:
        return RECORD_ALONE
    warnings: list[Problem] = []

    def switch(name: str, otherwise: bool) -> bool:
        value = given.get(name, otherwise)
        if isinstance(value, bool):
            return value
        warnings.append(_ignored(name, f"must be true or false; {str(otherwise).lower()} is used"))
        return otherwise

    capture_provenance = switch("capture_provenance", default == "provenance")
    capture_artifacts = switch("capture_artifacts", False)
    mode = given.get("provenance_mode", "minimal")
    if mode not in ("minimal", "full"):
        warnings.append(_ignored("provenance_mode", 'must be "minimal" or "full"; "minimal" is used'))
        mode = "minimal"
    parents = given.get("parents", [])
    if not _are_run_ids(parents):
        warnings.append(
            _ignored("parents", f"must be at most {_MAX_PARENTS} strings of 1 to {_MAX_RUN_ID} characters")
        )
        parents = []
    if not capture_provenance:
        asked = {
            "capture_artifacts": capture_artifacts,
            "provenance_mode": mode == "full",
            "parents": parents,
        }
        warnings.extend(
            _ignored(name, "has no effect without capture_provenance")
            for name, is_set in asked.items()
            if is_set
        )
    return Controls(
        capture_provenance,
        capture_artifacts,
        mode,
        tuple(dict.fromkeys(cast("list[str]", parents))),
        deterministic,
        max_output_bytes,
        tuple(warnings),
        is_required
        or default != "off"
        or capture_provenance
        or bool(warnings)
        or mode == "full"
        or bool(parents),
    )


def take_meta(params: JSONObject) -> tuple[JSONObject, JSON]:
    """Split params into arguments and `_meta`, which no tool's schema has."""
    if "_meta" not in params:
        return params, None
    return {name: value for name, value in params.items() if name != "_meta"}, params["_meta"]


def _are_run_ids(value: JSON) -> bool:
    return (
        isinstance(value, list)
        and len(value) <= _MAX_PARENTS
        and all(isinstance(item, str) and 0 < len(item) <= _MAX_RUN_ID for item in value)
    )


def _ignored(name: str, problem: str) -> Problem:
    from portbook.envelope.errors_and_warnings import BAD_CONTROL, Problem  # late: only for a mistake

    return Problem(BAD_CONTROL, f"_meta/{name}: {problem}.", {"control": name})
