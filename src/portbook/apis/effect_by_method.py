"""The effect of an HTTP operation where nothing declares it: by its method. Pure: no I/O."""

from __future__ import annotations

from typing import Final

from portbook.tools.spec import Effect

__all__ = ["READING_METHODS", "default_effect"]

# Safe methods (RFC 9110, 9.2.1).
READING_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def default_effect(method: str) -> Effect:
    """Return the effect of an operation with this `method`."""
    if method in READING_METHODS:
        return Effect.READ
    return Effect.DESTRUCTIVE if method == "DELETE" else Effect.WRITE
