"""A caller's controls of the envelope around its result, read from `_meta` of the params. Pure: no I/O.

    capture_provenance   true: attach a provenance record
    capture_artifacts    true: with digests of the inputs and outputs
    provenance_mode      "minimal", or "full": also with digests of the tool, its schemas and the policy
    parents              the ids of the runs whose results this run uses

An invalid value does not fail the call: the default is used, and the envelope has a warning. Other members of
`_meta` are ignored.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, cast

from portbook.model import JSON, JSONObject
from portbook.provenance.require_length import require_length

if TYPE_CHECKING:
    from portbook.envelope.errors_and_warnings import Problem

__all__ = [
    "CONTROLS",
    "RECORD_ALONE",
    "Controls",
    "Default",
    "Mode",
    "are_plain",
    "read_controls",
    "take_meta",
]

Mode = Literal["minimal", "full"]

# For callers that ask for nothing: the bare result, an envelope, or an envelope with provenance.
Default = Literal["off", "wrap", "provenance"]

CONTROLS: Final = frozenset({"capture_provenance", "capture_artifacts", "provenance_mode", "parents"})

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
_FURTHER: Final = CONTROLS - {"capture_provenance"}


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
