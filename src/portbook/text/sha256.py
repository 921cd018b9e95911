"""`sha256`: Python's own while there is little to hash, and OpenSSL's, which is several times as fast.

To load OpenSSL takes 3 MiB, and as much of a start as Python's own takes to hash a megabyte. A server that is
called now and then never needs it.
"""

from __future__ import annotations

import importlib
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    Sha256 = Callable[[bytes], "Hash"]

__all__ = ["Hash", "hmac_sha256", "is_same_digest", "openssl_sha256", "own_sha256", "sha256"]

# How many bytes Python's own hashes: about as long as it takes to load OpenSSL.
_LITTLE: Final = 1 << 20


class Hash(Protocol):
    """A hash that can go on."""

    def update(self, data: bytes, /) -> None:
        """Hash more."""
        ...

    def digest(self) -> bytes:
        """Return the digest."""
        ...

    def hexdigest(self) -> str:
        """Return the digest in hexadecimal."""
        ...


def _own() -> Sha256:
    for name in ("_sha2", "_sha256"):  # from Python 3.12 on, and before
        with suppress(ImportError):
            return importlib.import_module(name).sha256
    return openssl_sha256()  # this Python was built without hashes of its own


@cache
def openssl_sha256() -> Sha256:
    """Return OpenSSL's, loaded with the first call."""
    import hashlib

    return cast("Any", hashlib.sha256)


own_sha256: Final = _own()

_left: Final = [_LITTLE]
"""How much more Python's own hashes."""


def sha256(data: bytes = b"") -> Hash:
    """Return the hash of `data`, as `hashlib.sha256` does."""
    if _left[0] > 0:
        _left[0] -= len(data)
    return (own_sha256 if _left[0] > 0 else openssl_sha256())(data)


def hmac_sha256(key: bytes, message: bytes) -> Hash:
    """Return the keyed hash of `message`."""
    import hmac  # late: it loads OpenSSL

    return cast("Any", hmac.new(key, message, "sha256"))


# What `hmac` has where there is no OpenSSL.
_compare: Final[Callable[[str | bytes, str | bytes], bool]] = vars(importlib.import_module("_operator"))[
    "_compare_digest"
]


def is_same_digest(one: str | bytes, other: str | bytes) -> bool:
    """Compare two digests in a time that does not tell where they differ."""
    return _compare(one, other)
