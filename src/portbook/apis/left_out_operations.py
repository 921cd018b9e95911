"""`LeftOutOperation`: an operation of an API's document that is not served, and why. Pure: no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from portbook.model import JSONObject

__all__ = ["Cause", "LeftOutOperation", "summary_of"]


class Cause(StrEnum):
    """The kind of reason why an operation is left out."""

    REFERENCE = "reference"
    """A reference has no target, is in a cycle, or leads out of the document's folder."""
    INVALID = "invalid"
    """The document breaks a rule of OpenAPI there."""
    UNSUPPORTED = "unsupported"
    """It needs a feature that Portbook does not have."""
    SERVER = "server"
    """Its document names no server that can be called."""
    INPUT_SCHEMA = "input-schema"
    """Its arguments cannot be checked."""
    OUTPUT_SCHEMA = "output-schema"
    """Its result cannot be checked."""


_PHRASES: Final = {
    Cause.REFERENCE: "with a reference that cannot be followed",
    Cause.INVALID: "with a part that is not valid OpenAPI",
    Cause.UNSUPPORTED: "with a feature that is not supported",
    Cause.SERVER: "without a server that can be called",
    Cause.INPUT_SCHEMA: "with an input schema that cannot be used",
    Cause.OUTPUT_SCHEMA: "with an output schema that cannot be used",
}


@dataclass(frozen=True, slots=True)
class LeftOutOperation:
    """One operation, or one path where its operations cannot be read, that is not served."""

    name: str
    """The name that its tool would have, without the gateway's."""
    file: str
    pointer: str
    """The operation's JSON Pointer in `file`."""
    method: str | None
    """None where the whole path cannot be read."""
    cause: Cause
    sentence: str
    """Why it is left out."""
    places: tuple[str, ...] = ()
    """Its method and path; every method where the path cannot be read."""

    def as_data(self) -> JSONObject:
        """Return it as JSON."""
        return {
            "tool": self.name,
            "file": self.file,
            "pointer": self.pointer,
            "method": self.method,
            "cause": self.cause.value,
            "reason": self.sentence,
        }


def summary_of(left_out: Sequence[LeftOutOperation], total: int, file: str) -> str:
    """Return one sentence on what is left out of the `total` operations of `file`."""
    counts = Counter(each.cause for each in left_out)
    reasons = ", ".join(f"{counts[cause]} {_PHRASES[cause]}" for cause in Cause if counts[cause])
    verb = "is" if len(left_out) == 1 else "are"
    return (
        f"{len(left_out)} of {total} operations of {file} {verb} left out: {reasons}; "
        "`portbook tools --left-out` lists them"
    )
