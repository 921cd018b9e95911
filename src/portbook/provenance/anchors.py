"""Evidence and its anchors: the part of an artifact that supports a part of the answer. Pure: no I/O.

artifact:<id>                      the whole artifact
artifact:<id>#json:/fix/0          the value at an RFC 6901 pointer
artifact:<id>#text:line:12-14      lines of a text, counted from 1; `12` alone is one line
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final, cast

from portbook.model import JSON, JSONObject
from portbook.provenance.require_length import require_length

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

# The length limits of its schema.
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
    """The part of an artifact that supports a part of the answer."""

    field: str
    """The part of the answer."""
    source: str
    """The anchor of the part of the artifact."""
    method: str | None = None
    note: str | None = None

    def __post_init__(self) -> None:
        """Raise `ValueError` for a value of invalid length."""
        require_length("field", self.field, 200)
        require_length("source", self.source, MAX_SOURCE)
        require_length("method", self.method, 200)
        require_length("note", self.note, MAX_NOTE, 0)

    def to_json(self) -> JSONObject:
        """Return the form of the evidence schema."""
        optional: dict[str, JSON] = {"method": self.method, "note": self.note}
        return {
            "schema_version": EVIDENCE,
            "field": self.field,
            "source": self.source,
            **{name: value for name, value in optional.items() if value is not None},
        }


@dataclass(frozen=True, slots=True)
class Anchor:
    """A parsed anchor."""

    artifact_id: str
    pointer: str | None = None
    lines: tuple[int, int] | None = None


def anchor_at(artifact_id: str, pointer: str) -> str:
    """Return the anchor of the value at `pointer`; for the root, that of the whole artifact."""
    return f"artifact:{artifact_id}#json:{pointer}" if pointer else f"artifact:{artifact_id}"


def parse_anchor(source: str) -> Anchor | None:
    """Parse an anchor; return None if `source` is not one."""
    match = _ANCHOR.fullmatch(source)
    if match is None:
        return None
    first, last = match["first"], match["last"]
    if first is None:
        return Anchor(match["artifact"], match["pointer"])
    lines = int(first), int(last or first)
    return Anchor(match["artifact"], lines=lines) if lines[0] <= lines[1] else None


def resolves(anchor: Anchor, content: Any) -> bool:
    """Return whether `content`, the JSON value of the artifact, has the part that `anchor` names."""
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
