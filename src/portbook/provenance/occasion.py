"""`Occasion`: when a run took place, and under which id. Light: no record is needed to know it."""

from __future__ import annotations

from portbook.text.named_tuple import NamedTuple

__all__ = ["Occasion"]


class Occasion(NamedTuple):
    """Values that differ between runs of the same request."""

    request_id: str | None = None
    """The id that Portbook gave the call."""
    time: str | None = None
    """When it ran, in the form of RFC 3339."""
    duration_ms: float | None = None
