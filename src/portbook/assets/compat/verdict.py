"""Decides whether a change of a schema breaks valid documents: yes with an instance, no by proof, or unknown.

In two folders, schemas of the same name are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple

from portbook.assets.compat.counterexample import NOTHING, find_witness
from portbook.assets.compat.proof import prove_inclusion
from portbook.assets.compat.subschemas import Subschemas
from portbook.assets.names import schema_name
from portbook.assets.schema_files import SchemaFolder
from portbook.errors import Finding
from portbook.model import JSON, JSONObject
from portbook.schema.engine import BadSchema, Validator
from portbook.schema.messages import whole_pointer

__all__ = ["Comparison", "Compatibility", "compare", "compare_folders"]

# The user waits for the result, so an explanation may take long.
_EFFORT = 1_000_000


class Compatibility(StrEnum):
    """The verdict on a change."""

    COMPATIBLE = "compatible"
    BREAKS = "breaks"
    UNKNOWN = "unknown"
    ADDED = "added"
    """Only the new folder has a schema of that name."""
    REMOVED = "removed"
    """Only the old folder has a schema of that name."""
    UNUSABLE = "unusable"
    """One of the two cannot be compiled, so there is no verdict."""


class Comparison(NamedTuple):
    """A verdict and, where the change breaks, an instance that proves it."""

    verdict: Compatibility
    instance: JSON = None
    """A value that the old schema allows and the new one refuses; only where the change breaks."""
    findings: tuple[Finding, ...] = ()
    """The violations of the new schema by the instance."""
    undecided: str | None = None
    """The place in the new schema where the proof failed, if known; only for an unknown verdict."""
    problem: str = ""
    """The unusable schema and the reason; only where one is unusable."""


def compare(old: tuple[JSONObject, Validator], new: tuple[JSONObject, Validator]) -> Comparison:
    """Return whether `new` still allows everything that `old` allows; both are bundled and compiled."""
    before, after = Subschemas(*old), Subschemas(*new)
    inclusion = prove_inclusion(after, before)
    if inclusion.is_proved:
        return Comparison(Compatibility.COMPATIBLE)
    instance: Any = find_witness(before, after)
    if instance is NOTHING:
        place = inclusion.undecided
        return Comparison(Compatibility.UNKNOWN, undecided=None if place is None else whole_pointer(place))
    return Comparison(Compatibility.BREAKS, instance, new[1].findings_of_own(instance, _EFFORT))


def compare_folders(old: SchemaFolder, new: SchemaFolder) -> Iterator[tuple[str, Comparison]]:
    """Yield the comparison of every schema of either folder, ordered by name."""
    before, after = _paths(old), _paths(new)
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            yield name, Comparison(Compatibility.ADDED)
        elif name not in after:
            yield name, Comparison(Compatibility.REMOVED)
        else:
            yield name, _compare_two(name, (old, before[name]), (new, after[name]))


def _paths(folder: SchemaFolder) -> dict[str, str]:
    """Return the paths of a folder's schemas by name; an empty path for one that cannot be read."""
    paths = {schema_name(path): path for path in folder.documents}
    return dict.fromkeys(folder.left_out, "") | paths


def _compare_two(name: str, *versions: tuple[SchemaFolder, str]) -> Comparison:
    compiled: list[tuple[JSONObject, Validator]] = []
    for folder, path in versions:
        if not path:
            unread = folder.left_out[name]
            return Comparison(Compatibility.UNUSABLE, problem=f"{unread.path}: {unread.reason}")
        try:
            bundle = folder.bundle(path)
            compiled.append((bundle.document, bundle.compile()))
        except BadSchema as error:
            finding = error.findings[0]
            where = f"{folder.shown(path)}: {finding.pointer or '(root)'}"
            return Comparison(Compatibility.UNUSABLE, problem=f"{where}: {finding.message}")
    return compare(*compiled)
