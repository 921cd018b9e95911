"""Decides whether a change of a schema breaks valid documents: yes with an instance, no by proof, or unknown.

In two folders, schemas of the same name are compared.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from portbook.assets.compat.compatibility_proof import Inclusion
from portbook.assets.compat.counterexample import (
    EVERY_BREAK,
    FIRST_BREAK,
    SearchLimits,
    Witness,
    find_witnesses,
)
from portbook.assets.compat.pattern_comparison import TextLanguages
from portbook.assets.compat.subschemas import Subschemas
from portbook.assets.schema_files import SchemaBundle, SchemaFolder, schema_name
from portbook.errors import Finding
from portbook.model import JSON, JSONObject
from portbook.schema.engine import BadSchema, Validator
from portbook.schema.violation_wording import UNEXPECTED, whole_pointer

__all__ = ["ComparedSchema", "Comparison", "Compatibility", "SchemaBreak", "compare", "compare_folders"]


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


class SchemaBreak(NamedTuple):
    """A keyword of the new schema that refuses what was valid, and an instance that proves it."""

    place: str
    """The JSON Pointer of the keyword in the new schema."""
    keyword: str
    instance: JSON
    """A value that the old schema allows and the new one refuses."""
    findings: tuple[Finding, ...]
    """The violations of the new schema by the instance."""


class Comparison(NamedTuple):
    """A verdict and, where the change breaks, the breaks that were found."""

    verdict: Compatibility
    breaks: tuple[SchemaBreak, ...] = ()
    undecided: tuple[str, ...] = ()
    """The places in the new schema that are neither proved nor shown to break, as far as they are known."""
    problem: str = ""
    """The unusable schema and the reason; only where one is unusable."""


def compare(
    old: tuple[JSONObject, Validator],
    new: tuple[JSONObject, Validator],
    limits: SearchLimits = FIRST_BREAK,
    texts: TextLanguages | None = None,
) -> Comparison:
    """Return whether `new` still allows everything that `old` allows; both are bundled and compiled.

    `limits` says whether one break is enough, and `texts` what may be spent on patterns.
    """
    inclusion = Inclusion(Subschemas(*new), Subschemas(*old), texts or TextLanguages())
    if inclusion.prove():
        return Comparison(Compatibility.COMPATIBLE)
    breaks = _breaks(inclusion.new, find_witnesses(inclusion, limits), limits.witnesses)
    undecided = tuple(
        place
        for place in map(whole_pointer, inclusion.undecided)
        if not any(_is_within(place, each.place) or _is_within(each.place, place) for each in breaks)
    )
    return Comparison(Compatibility.BREAKS if breaks else Compatibility.UNKNOWN, breaks, undecided)


def _breaks(schema: Subschemas, witnesses: Iterator[Witness], most: int) -> tuple[SchemaBreak, ...]:
    """Return a break for each keyword and message, with the witness that shows the least beside it."""
    found: dict[tuple[str, str], SchemaBreak] = {}
    for value, findings in witnesses:
        for finding in findings:
            cause = (schema.place_of(finding), finding.message)
            best = found.get(cause)
            if len(found) < most if best is None else len(findings) < len(best.findings):
                found[cause] = SchemaBreak(cause[0], finding.keyword, value, findings)
    return tuple(each for cause, each in found.items() if not _is_several(cause, found))


def _is_several(cause: tuple[str, str], found: dict[tuple[str, str], SchemaBreak]) -> bool:
    """Return whether a message names several properties, and others name each of them alone."""
    place, message = cause
    return any(
        place == other and message.startswith(f"{alone}, ") and alone.startswith(UNEXPECTED)
        for other, alone in found
    )


def _is_within(place: str, other: str) -> bool:
    return place == other or place.startswith(f"{other}/")


class ComparedSchema(NamedTuple):
    """A schema of two folders, and how it changed."""

    name: str
    path: str
    """The file of the new version; of the old one where there is no new one."""
    comparison: Comparison
    bundle: SchemaBundle | None = None
    """The new version; None where it is not compared."""


def compare_folders(old: SchemaFolder, new: SchemaFolder) -> Iterator[ComparedSchema]:
    """Yield the comparison of every schema of either folder, ordered by name."""
    before, after = _paths(old), _paths(new)
    for name in sorted(before.keys() | after.keys()):
        if name not in before:
            yield ComparedSchema(name, new.shown(after[name]), Comparison(Compatibility.ADDED))
        elif name not in after:
            yield ComparedSchema(name, old.shown(before[name]), Comparison(Compatibility.REMOVED))
        else:
            yield _compare_two(name, (old, before[name]), (new, after[name]))


def _paths(folder: SchemaFolder) -> dict[str, str]:
    """Return the paths of a folder's schemas by name; an empty path for one that cannot be read."""
    paths = {schema_name(path): path for path in folder.documents}
    return dict.fromkeys(folder.left_out, "") | paths


def _compare_two(name: str, *versions: tuple[SchemaFolder, str]) -> ComparedSchema:
    compiled: list[tuple[JSONObject, Validator]] = []
    bundle: SchemaBundle | None = None
    shown = ""
    for folder, path in versions:
        if not path:
            unread = folder.left_out[name]
            problem = Comparison(Compatibility.UNUSABLE, problem=f"{unread.path}: {unread.reason}")
            return ComparedSchema(name, unread.path, problem)
        shown = folder.shown(path)
        try:
            bundle = folder.bundle(path)
            compiled.append((bundle.document, bundle.compile()))
        except BadSchema as error:
            finding = error.findings[0]
            said = f"{shown}: {finding.pointer or '(root)'}: {finding.message}"
            return ComparedSchema(name, shown, Comparison(Compatibility.UNUSABLE, problem=said))
    return ComparedSchema(name, shown, compare(compiled[0], compiled[1], EVERY_BREAK), bundle)
