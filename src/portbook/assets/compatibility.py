"""Whether a change of a schema breaks what was valid: yes with an instance, no with a proof, or unknown."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from portbook.assets.inclusion import includes
from portbook.assets.places import Schema
from portbook.assets.witnesses import NOTHING, find_witness
from portbook.errors import Finding
from portbook.model import JSON, JSONObject
from portbook.schema.engine import Validator

__all__ = ["Comparison", "Verdict", "compare"]

# Whoever asks waits for the answer.
_EFFORT = 1_000_000


class Verdict(StrEnum):
    """What can be said of a change."""

    COMPATIBLE = "compatible"
    BREAKS = "breaks"
    UNKNOWN = "unknown"


class Comparison(NamedTuple):
    """A verdict and, where it breaks, the proof of that."""

    verdict: Verdict
    instance: JSON = None
    """Allowed by the old schema, and refused by the new; only where it breaks."""
    findings: tuple[Finding, ...] = ()
    """Why the new schema refuses it."""


def compare(old: tuple[JSONObject, Validator], new: tuple[JSONObject, Validator]) -> Comparison:
    """Return whether everything that `old` allows is still allowed by `new`; both bundled and compiled."""
    before, after = Schema(*old), Schema(*new)
    if includes(after, before):
        return Comparison(Verdict.COMPATIBLE)
    instance: Any = find_witness(before, after)
    if instance is NOTHING:
        return Comparison(Verdict.UNKNOWN)
    return Comparison(Verdict.BREAKS, instance, new[1].findings_of_own(instance, _EFFORT))
