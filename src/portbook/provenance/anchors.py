"""Evidence and its anchors: which part of which artifact an answer rests on. Pure: no I/O.

artifact:<id>                      the whole artifact
artifact:<id>#json:/fix/0          the value at an RFC 6901 pointer
artifact:<id>#text:line:12-14      lines of a text, counted from 1; one line without the dash
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, cast

from portbook.model import JSON, JSONObject
from portbook.provenance.lengths import require_length

__all__ = [
    "EVIDENCE",
    "MAX_NOTE",
    "MAX_SOURCE",
    "Anchor",
    "Evidence",
    "anchor_at",
    "parse_anchor",
    "resolves",
]

EVIDENCE: Final = "evidence.v0.1"

# The lengths that its schema allows.
MAX_SOURCE: Final = 1000
MAX_NOTE: Final = 400

_ANCHOR: Final = re.compile(
    r"artifact:(?P<artifact>[^#]+)"
    r"(?:#json:(?P<pointer>(?:/(?:[^~/]|~[01])*)*)|#text:line:(?P<first>[1-9]\d{0,8})(?:-(?P<last>[1-9]\d{0,8}))?)?",
    re.ASCII | re.DOTALL,
)
_INDEX: Final = re.compile(r"0|[1-9]\d{0,17}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a part of the answer rests on."""

    field: str
    """The part of the answer."""
    source: str
    """An anchor."""
    method: str | None = None
    note: str | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` for what no schema allows."""
        require_length("field", self.field, 200)
        require_length("source", self.source, MAX_SOURCE)
        require_length("method", self.method, 200)
        require_length("note", self.note, MAX_NOTE, 0)

    def to_json(self) -> JSONObject:
        """Return it as the evidence schema has it."""
        optional: dict[str, JSON] = {"method": self.method, "note": self.note}
        return {
            "schema_version": EVIDENCE,
            "field": self.field,
            "source": self.source,
            **{name: value for name, value in optional.items() if value is not None},
        }


@dataclass(frozen=True, slots=True)
class Anchor:
    """An anchor, read."""

    artifact_id: str
    pointer: str | None = None
    lines: tuple[int, int] | None = None


def anchor_at(artifact_id: str, pointer: str) -> str:
    """Return the anchor of the value at `pointer`; the root's is that of the artifact itself."""
    return f"artifact:{artifact_id}#json:{pointer}" if pointer else f"artifact:{artifact_id}"


def parse_anchor(source: str) -> Anchor | None:
    """Return the anchor that `source` spells, or None."""
    match = _ANCHOR.fullmatch(source)
    if match is None:
        return None
    first, last = match["first"], match["last"]
    if first is None:
        return Anchor(match["artifact"], match["pointer"])
    lines = int(first), int(last or first)
    return Anchor(match["artifact"], lines=lines) if lines[0] <= lines[1] else None


def resolves(anchor: Anchor, content: Any) -> bool:
    """Return whether the artifact with this content, a JSON value, has the part that `anchor` names."""
    if anchor.lines is not None:
        return isinstance(content, str) and anchor.lines[1] <= len(content.removesuffix("\n").split("\n"))
    for part in (anchor.pointer or "").split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(content, dict) and name in content:
            content = cast("dict[str, Any]", content)[name]
        elif (
            isinstance(content, list)
            and _INDEX.fullmatch(name)
            and int(name) < len(cast("list[Any]", content))
        ):
            content = cast("list[Any]", content)[int(name)]
        else:
            return False
    return True
