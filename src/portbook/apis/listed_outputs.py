"""Whether an imported tool's output schema is small enough for lists. Pure: no I/O.

A document's schemas refer to each other, and a schema in a list has to hold all that it refers to: every
tool of a large API would repeat half of its document. The schema is left out of lists then, and still checks
every result.
"""

from __future__ import annotations

from typing import Final

from portbook.model import JSON

__all__ = ["is_small_enough_to_list"]

# A page of 100 tools then holds less than a megabyte of output schemas.
_MAX_CHARACTERS: Final = 8_192

# What a member or an item takes beside its text: quotes, a colon, a comma.
_PUNCTUATION: Final = 4


def is_small_enough_to_list(schema: JSON) -> bool:
    """Return whether a schema has at most about 8 KiB as JSON; looks at no more of it than that."""
    left = _MAX_CHARACTERS
    waiting: list[JSON] = [schema]
    while waiting and left >= 0:
        value = waiting.pop()
        left -= _PUNCTUATION
        if isinstance(value, dict):
            left -= sum(map(len, value)) + _PUNCTUATION * len(value)
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, str):
            left -= len(value)
    return left >= 0
