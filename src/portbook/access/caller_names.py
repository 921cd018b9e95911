"""Which names a caller may have. Pure: no I/O."""

from __future__ import annotations

import re
from typing import Final

from portbook.access.callers import ANONYMOUS, OPERATOR
from portbook.text.late_pattern import late_pattern

__all__ = ["problem_of_caller_name"]

_NAME: Final = late_pattern(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}", re.ASCII)


def problem_of_caller_name(name: str) -> str | None:
    """Return why a caller cannot have this name, and the fix; None if it can."""
    if not _NAME.fullmatch(name):
        return (
            f"the name {name[:40]!r} cannot be used: take 1 to 64 letters, digits and any of '._@+-', "
            "a letter or a digit first"
        )
    if name in (ANONYMOUS.name, OPERATOR.name):
        return f"{name} is a reserved name; choose a different one"
    return None
