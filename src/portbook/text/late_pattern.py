"""Regular expressions that are compiled with their first use.

There are a hundred of them, a tenth of a millisecond each, and most processes need few. Those built from the
operator's settings are compiled at once, to find mistakes. Pure: no I/O.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast

__all__ = ["late_pattern"]


class _LatePattern:
    """Stands for a compiled pattern: a method is looked up there once, and found here from then on."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)
        return found


def late_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a regular expression; a mistake in it is found with its first use."""
    return cast("re.Pattern[AnyStr]", _LatePattern(text, flags))
