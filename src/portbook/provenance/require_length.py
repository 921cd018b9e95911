"""`require_length`: checks the length limits of the schemas when values are created. Pure: no I/O."""

from __future__ import annotations

__all__ = ["require_length"]


def require_length(name: str, text: str | None, longest: int, shortest: int = 1) -> None:
    """Require that `text` has an allowed length, or is None.

    Raises `ValueError` where it is too short or too long.
    """
    if text is not None and not shortest <= len(text) <= longest:
        raise ValueError(f"{name}: must have {shortest} to {longest} characters")
