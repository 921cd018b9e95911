"""Whose call is it: keys, hashed at rest, compared in constant time. Pure: no I/O."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from portbook.errors import Reason, Refused
from portbook.model import Caller

__all__ = ["ANONYMOUS", "OPERATOR", "AllowedKey", "Callers", "digest_of_key"]

ANONYMOUS = Caller("anonymous")
OPERATOR = Caller("operator", ())

# Over HTTP alone: elsewhere whoever may write the store decides.
_OPERATORS_KEY = (
    "The operator's key is needed, as a bearer token: what PORTBOOK_OPERATOR_KEY was when the server started."
)


@dataclass(frozen=True, slots=True)
class AllowedKey:
    """A key that opens the boundary: its owner's name and the sha256 of it, in hexadecimal."""

    name: str
    sha256: str
    tools: tuple[str, ...] = ("*",)
    """Patterns of the tools that it is for."""


def digest_of_key(key: str) -> str:
    """Return the sha256 of a key, in hexadecimal: all that is ever kept of one."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class Callers:
    """Tells who a presented key belongs to."""

    __slots__ = ("_allowed", "_operator", "_required", "_stored")

    def __init__(
        self,
        allowed: Iterable[AllowedKey] = (),
        *,
        required: bool = False,
        stored: Callable[[], tuple[AllowedKey, ...] | None] = lambda: None,
        operator_key: str | None = None,
    ) -> None:
        """Accept the `allowed` keys and those that `stored` returns, which may change at any time.

        Where no key was ever stored it returns None; where all were revoked, none of them.
        """
        self._allowed = tuple(allowed)
        self._stored = stored
        self._required = required
        self._operator = digest_of_key(operator_key) if operator_key else None

    @property
    def is_key_required(self) -> bool:
        """Return whether a call without a key is refused."""
        return self._required

    def identify(self, key: str | None) -> Caller:
        """Return whose `key` it is.

        1. No key, and none required: anonymous.
        2. The operator's key: refused, for it decides on calls and makes none.
        3. No key was ever configured, and none is required: whatever was presented is not looked at.
        4. A configured key: its owner.

        Raises `Refused` in every other case: a wrong key is never the same as no key.
        """
        if key is None:
            if self._required:
                raise Refused(Reason.UNAUTHORIZED)
            return ANONYMOUS
        digest = digest_of_key(key)
        if self.is_operator(key):
            raise Refused(Reason.UNAUTHORIZED)
        stored = self._stored()
        allowed = (*self._allowed, *(stored or ()))
        if not allowed and stored is None and not self._required:
            return ANONYMOUS
        owner = None
        for each in allowed:  # all of them, so that timing does not tell which came close
            if hmac.compare_digest(each.sha256.lower(), digest):
                owner = Caller(each.name, each.tools)
        if owner is None:
            raise Refused(Reason.UNAUTHORIZED)
        return owner

    def identify_operator(self, key: str | None) -> Caller:
        """Return the operator, if it is theirs.

        Raises `Refused` for every other key.
        """
        if not self.is_operator(key):
            raise Refused(Reason.UNAUTHORIZED, details={"hint": _OPERATORS_KEY})
        return OPERATOR

    def is_operator(self, key: str | None) -> bool:
        """Return whether `key` is the operator's, who decides on approvals."""
        return (
            key is not None
            and self._operator is not None
            and hmac.compare_digest(self._operator, digest_of_key(key))
        )
