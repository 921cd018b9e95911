"""Ids of calls and runs: random ones, or derived from the content.

`Ids` are passed as an argument, so that with fixed ones the same input gives the same bytes.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from typing import Any, Protocol

from portbook.model import Identity

__all__ = ["ContentIds", "Ids", "RandomIds", "run_id"]


class Ids(Protocol):
    """Generates the ids of calls."""

    deterministic: bool

    def name(self, content: bytes) -> Identity:
        """Return the ids of the call with this canonical content."""
        ...


class RandomIds:
    """Ids that never repeat: random UUIDs (version 4)."""

    __slots__ = ("_pool",)
    deterministic = False

    # One system call serves this many identities of 48 random bytes each.
    _BATCH = 64

    def __init__(self) -> None:
        self._pool: list[str] = []
        # A forked child must not issue its parent's ids again.
        os.register_at_fork(after_in_child=self._pool.clear)

    def name(self, content: bytes) -> Identity:
        """Return new ids; the content is ignored."""
        del content
        pool = self._pool
        if not pool:
            pool += _drawn(self._BATCH)
        digits = pool.pop()
        request = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:32]}"
        return _identity(Identity, (request, digits[32:64], digits[64:]))


# Makes a named tuple in a third of the time that its own constructor takes.
_identity: Any = tuple.__new__  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

# The bytes of a UUID that hold its version (4) and its variant.
_VERSION = bytes(0x40 | byte & 0x0F for byte in range(256))
_VARIANT = bytes(0xA0 | byte & 0x0F for byte in range(256))


def _drawn(count: int) -> list[str]:
    """Return the digits of `count` identities: three random UUIDs each."""
    drawn = bytearray(os.urandom(48 * count))
    drawn[6::16] = drawn[6::16].translate(_VERSION)
    drawn[8::16] = drawn[8::16].translate(_VARIANT)
    digits = drawn.hex()
    return [digits[start : start + 96] for start in range(0, len(digits), 96)]


# The namespace of every deterministic id. Never change it: every id ever issued would change.
_NAMESPACE = uuid.UUID("6f0c0a9e-5d0b-5f7e-9a53-3f6f1a5f2b10")


class ContentIds:
    """Ids derived from the content alone (UUID version 5): the same message has the same ids.

    They repeat by design, so they must not be used as keys.
    """

    __slots__ = ()
    deterministic = True

    def name(self, content: bytes) -> Identity:
        """Return the ids derived from this content."""
        digest = hashlib.sha256(content).hexdigest()
        return Identity(
            str(uuid.uuid5(_NAMESPACE, f"request:{digest}")),
            uuid.uuid5(_NAMESPACE, f"trace:{digest}").hex,
            uuid.uuid5(_NAMESPACE, f"span:{digest}").hex,
        )


def run_id(content: bytes) -> str:
    """Return the id of a run in provenance, derived from its content."""
    return str(uuid.uuid5(_NAMESPACE, f"run:{hashlib.sha256(content).hexdigest()}"))
