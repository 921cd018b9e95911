"""The lengths that the schemas allow, kept where values are made. Pure: no I/O."""

from __future__ import annotations

__all__ = ["require_length"]


def require_length(name: str, text: str | None, longest: int, shortest: int = 1) -> None:
    """Return if `text` has a length that the schemas allow, or is not there at all.

    Raises `ValueError` where it has another.
    """
    if text is not None and not shortest <= len(text) <= longest:
        raise ValueError(f"{name}: must have {shortest} to {longest} characters")
