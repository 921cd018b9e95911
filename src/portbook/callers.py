"""Whose call is it: keys, hashed at rest, compared in constant time. Pure: no I/O."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass

from portbook.errors import Reason, Refused
from portbook.model import Caller

__all__ = ["ANONYMOUS", "AllowedKey", "Callers"]

ANONYMOUS = Caller("anonymous")


@dataclass(frozen=True, slots=True)
class AllowedKey:
    """A key that opens the boundary: its owner's name and the sha256 of it, in hexadecimal."""

    name: str
    sha256: str


class Callers:
    """Tells who a presented key belongs to."""

    __slots__ = ("_allowed", "_required")

    def __init__(self, allowed: Iterable[AllowedKey] = (), *, required: bool = False) -> None:
        self._allowed = tuple((key.sha256.lower(), Caller(key.name)) for key in allowed)
        self._required = required

    def identify(self, key: str | None) -> Caller:
        """Return whose `key` it is.

        1. No key, and none required: anonymous.
        2. No keys configured, and none required: whatever was presented is not looked at.
        3. A configured key: its owner.

        Raises `Refused` in every other case: a wrong key is never the same as no key.
        """
        if not self._required and (key is None or not self._allowed):
            return ANONYMOUS
        digest = hashlib.sha256((key or "").encode("utf-8", "surrogatepass")).hexdigest()
        owner = None
        for allowed, caller in self._allowed:  # all of them, so that timing does not tell which came close
            if hmac.compare_digest(allowed, digest):
                owner = caller
        if key is None or owner is None:
            raise Refused(Reason.UNAUTHORIZED)
        return owner
