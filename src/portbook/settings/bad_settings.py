"""`BadSettings`: settings that cannot be used. Pure: no I/O."""

from __future__ import annotations

__all__ = ["BadSettings"]


class BadSettings(ValueError):
    """Settings that cannot be used; the message names the place and says what to do."""
