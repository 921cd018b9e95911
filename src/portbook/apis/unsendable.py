"""The refusal of an argument that cannot be sent in its place. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterable

from portbook.errors import Finding, Reason, Refused
from portbook.schema.messages import escape_pointer

__all__ = ["unsendable"]


def unsendable(place: Iterable[str], sentence: str) -> Refused:
    """Return the refusal of the value at `place` among the arguments; `sentence` follows its pointer."""
    return Refused(Reason.BAD_ARGUMENTS, (Finding(escape_pointer(tuple(place)), sentence, "http", ""),))
