"""Ids of calls and runs: random ones, or derived from the content.

`Ids` are passed as an argument, so that with fixed ones the same input gives the same bytes.
"""

from __future__ import annotations

import hashlib
import os
import uuid
from typing import Protocol

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
            drawn = os.urandom(48 * self._BATCH).hex()
            pool += [drawn[start : start + 96] for start in range(0, len(drawn), 96)]
        digits = pool.pop()
        return Identity(
            f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:32]}",
            f"{digits[32:44]}4{digits[45:48]}a{digits[49:64]}",
            f"{digits[64:76]}4{digits[77:80]}a{digits[81:96]}",
        )


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
