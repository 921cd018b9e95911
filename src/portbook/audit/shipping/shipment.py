"""A record on its way to a receiver, and what a receiver does with it.

Shipping is at least once: a batch whose answer is lost is sent again. A record has its file, its number there
and its hash, so that the receiver can drop what it has, find what is missing, and check the chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from portbook.model import JSONObject
from portbook.text.named_tuple import NamedTuple

__all__ = ["CannotShip", "RecordReceiver", "ShippedRecord"]


class ShippedRecord(NamedTuple):
    """A record as its file has it."""

    stream: str
    file: str
    seq: int
    hash: str
    line: bytes
    """Its bytes, without the line break: what the hash is of."""
    fields: JSONObject


class CannotShip(Exception):
    """Records that did not arrive, and why; the message quotes nothing of them, and no secret."""

    def __init__(self, problem: str, retry_after_s: float = 0.0) -> None:
        super().__init__(problem)
        self.retry_after_s = retry_after_s
        """How long the receiver asks to wait, at least."""


class RecordReceiver(Protocol):
    """Takes records. A receiver that hangs is given up by the one who sends."""

    async def send(self, records: Sequence[ShippedRecord]) -> int:
        """Send records, in order; return how many of them the receiver refused for good.

        Raises `CannotShip` where it is not known that all arrived.
        """
        ...

    async def close(self) -> None:
        """Close what was opened."""
        ...
