"""`NothingSent`: a call that was cancelled before its executor did anything that others can notice."""

from __future__ import annotations

import asyncio

__all__ = ["NothingSent"]


class NothingSent(asyncio.CancelledError):
    """The call was cancelled before a request left: it had no effects, and its record says so."""
