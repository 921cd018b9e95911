"""Ids of calls and runs: random ones, or derived from the content.

`Ids` are passed as an argument, so that with fixed ones the same input gives the same bytes.
"""

from __future__ import annotations

import os
import struct
import uuid
from binascii import hexlify
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any, Protocol

from portbook.model import IdBytes
from portbook.text.sha256 import sha256

__all__ = ["ContentIds", "Ids", "RandomIds", "run_id"]


class Ids(Protocol):
    """Generates the ids of calls."""

    deterministic: bool

    @property
    def drawn(self) -> Iterator[IdBytes]:
        """Return the ids of all further calls whose content does not matter."""
        ...

    def name(self, content: bytes) -> IdBytes:
        """Return the ids of the call with this canonical content."""
        ...


class RandomIds:
    """Ids that never repeat: random UUIDs (version 4)."""

    __slots__ = ("drawn",)
    deterministic = False

    def __init__(self) -> None:
        self._forget()
        # A forked child must not issue its parent's ids again.
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        # One step of native code for each call.
        self.drawn: Iterator[IdBytes] = chain.from_iterable(map(_random_ids, repeat(_BATCH)))

    def name(self, content: bytes) -> IdBytes:
        """Return new ids; the content is ignored."""
        ids = next(self.drawn, None)
        if ids is None:  # an exception, of memory for example, has ended the iterator
            self._forget()
            ids = next(self.drawn)
        return ids


# One system call serves this many identities of 48 random bytes each.
_BATCH = 64

# The bytes of a UUID that hold its version (4) and its variant.
_VERSION = bytes(0x40 | byte & 0x0F for byte in range(256))
_VARIANT = bytes(0xA0 | byte & 0x0F for byte in range(256))

# The digits of three UUIDs, cut where the first has its dashes; and the three of them, with these dashes.
_DIGITS = "8s4s4s4s76s"
_UUIDS = "36s32s32sx"


def _random_ids(count: int) -> Iterator[Any]:
    """Return the ids of `count` calls. No step is taken for each of them: that would cost twice as much."""
    drawn = bytearray(os.urandom(48 * count))
    drawn[6::16] = drawn[6::16].translate(_VERSION)
    drawn[8::16] = drawn[8::16].translate(_VARIANT)
    pieces = struct.unpack(_DIGITS * count, hexlify(drawn))
    return struct.iter_unpack(_UUIDS, b"-".join((*pieces, b"")))


# The namespace of every deterministic id. Never change it: every id ever issued would change.
_NAMESPACE = uuid.UUID("6f0c0a9e-5d0b-5f7e-9a53-3f6f1a5f2b10")


class ContentIds:
    """Ids derived from the content alone (UUID version 5): the same message has the same ids.

    They repeat by design, so they must not be used as keys.
    """

    __slots__ = ()
    deterministic = True

    @property
    def drawn(self) -> Iterator[IdBytes]:
        """Return the ids of no content."""
        return repeat(self.name(b""))

    def name(self, content: bytes) -> IdBytes:
        """Return the ids derived from this content."""
        digest = sha256(content).hexdigest()
        request, trace, span = (uuid.uuid5(_NAMESPACE, f"{name}:{digest}") for name in _NAMES)
        return str(request).encode(), trace.hex.encode(), span.hex.encode()


# What each id of a call is named after, with its content.
_NAMES = ("request", "trace", "span")


# What the id of every run begins to be hashed from.
_RUN = _NAMESPACE.bytes + b"run:"

# The first digit of a UUID's variant, by the digit of the hash in its place.
_VARIANT_DIGITS = dict(zip("0123456789abcdef", "89ab" * 4, strict=True))


def run_id(content_digest: str) -> str:
    """Return the id of a run in provenance (UUID version 5), derived from the SHA-256 of its content."""
    import hashlib  # late: it loads OpenSSL, and few servers have provenance

    hashed = hashlib.sha1(_RUN + content_digest.encode(), usedforsecurity=False).hexdigest()
    variant = _VARIANT_DIGITS[hashed[16]]
    # As `uuid.uuid5` has it, in a third of the time.
    return f"{hashed[:8]}-{hashed[8:12]}-5{hashed[13:16]}-{variant}{hashed[17:20]}-{hashed[20:32]}"
