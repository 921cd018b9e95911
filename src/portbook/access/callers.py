"""Callers and their keys: hashed at rest, compared in constant time. Pure: no I/O."""

from __future__ import annotations

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable
from typing import Final

from portbook.errors import Reason, Refused
from portbook.model import Caller
from portbook.text.late_pattern import late_pattern
from portbook.text.named_tuple import NamedTuple

__all__ = [
    "ANONYMOUS",
    "OPERATOR",
    "AllowedKey",
    "Callers",
    "digest_of_key",
    "new_key",
    "problem_of_caller_name",
]

ANONYMOUS = Caller("anonymous")
OPERATOR = Caller("operator", ())

# Only over HTTP: on the command line, write access to the store is enough.
_OPERATORS_KEY = (
    "The operator's key is needed, as a bearer token: what PORTBOOK_OPERATOR_KEY was when the server started."
)
_NO_OPERATORS_KEY = (
    "This server has no operator key. Set PORTBOOK_OPERATOR_KEY and start it again, "
    "or use `portbook approvals`."
)


class AllowedKey(NamedTuple):
    """A key that may call tools: the name of its caller, and its sha256 in hexadecimal."""

    name: str
    sha256: str
    tools: tuple[str, ...] = ("*",)
    """Patterns of the tools that it may call."""


# Identifies a key to people, and to scanners for leaked secrets.
_PREFIX: Final = "pbk_"
_SECRET_BYTES: Final = 32


def new_key(draw: Callable[[int], bytes]) -> str:
    """Return the text of a new key; `draw` returns random bytes."""
    return _PREFIX + urlsafe_b64encode(draw(_SECRET_BYTES)).decode().rstrip("=")


def digest_of_key(key: str) -> str:
    """Return the sha256 of a key, in hexadecimal: the only form in which keys are stored."""
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


class Callers:
    """Finds the caller of a presented key."""

    __slots__ = ("_allowed", "_operator", "_required", "_stored", "without_key")

    def __init__(
        self,
        allowed: Iterable[AllowedKey] = (),
        *,
        required: bool = False,
        stored: Callable[[], tuple[AllowedKey, ...] | None] = lambda: None,
        operator_key: str | None = None,
    ) -> None:
        """Accept the `allowed` keys and those that `stored` returns, which may change at any time.

        `stored` returns None if no key was ever stored, and an empty tuple if all were revoked.
        """
        self._allowed = tuple(allowed)
        self._stored = stored
        self._required = required
        self._operator = digest_of_key(operator_key) if operator_key else None
        self.without_key = None if required else ANONYMOUS
        """The caller of a call without a key; None where that is refused."""

    @property
    def is_key_required(self) -> bool:
        """Return whether a call without a key is refused."""
        return self._required

    @property
    def has_operator_key(self) -> bool:
        """Return whether an operator key is set, with which approvals are decided over HTTP."""
        return self._operator is not None

    def identify(self, key: str | None) -> Caller:
        """Return the caller of `key`.

        1. No key, and none required: anonymous.
        2. The operator key: refused. The operator key decides approvals; it cannot call tools.
        3. No key was ever configured, and none is required: anonymous, whatever the key.
        4. A configured key: its caller. For a key of the settings the store is not needed.

        Raises `Refused` in every other case: a wrong key never counts as no key. Raises `OSError` where only
        the store could tell, and cannot be read.
        """
        if key is None:
            if self.without_key is None:
                raise Refused(Reason.UNAUTHORIZED)
            return self.without_key
        digest = digest_of_key(key)
        if self.is_operator(key):
            raise Refused(Reason.UNAUTHORIZED)
        owner = _owner_of(digest, self._allowed)
        try:
            stored = self._stored()
        except OSError:
            if owner is None:
                raise
            return owner
        if stored is None and not self._allowed and not self._required:
            return ANONYMOUS
        owner = _owner_of(digest, stored or ()) or owner
        if owner is None:
            raise Refused(Reason.UNAUTHORIZED)
        return owner

    def identify_operator(self, key: str | None) -> Caller:
        """Return the operator, if `key` is the operator key.

        Raises `Refused` for every other key.
        """
        if not self.is_operator(key):
            hint = _OPERATORS_KEY if self.has_operator_key else _NO_OPERATORS_KEY
            raise Refused(Reason.UNAUTHORIZED, details={"hint": hint})
        return OPERATOR

    def is_operator(self, key: str | None) -> bool:
        """Return whether `key` is the operator key, which decides approvals."""
        return (
            key is not None
            and self._operator is not None
            and hmac.compare_digest(self._operator, digest_of_key(key))
        )


def _owner_of(digest: str, keys: Iterable[AllowedKey]) -> Caller | None:
    """Return the caller of the key with this digest, if it is one of `keys`."""
    owner = None
    for each in keys:  # all of them, so that timing does not reveal a near match
        if hmac.compare_digest(each.sha256.lower(), digest):
            owner = Caller(each.name, each.tools)
    return owner


# Which names a caller may have.

_NAME: Final = late_pattern(r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,63}", re.ASCII)


def problem_of_caller_name(name: str) -> str | None:
    """Return why a caller cannot have this name, and the fix; None if it can."""
    if not _NAME.fullmatch(name):
        return (
            f"the name {name[:40]!r} cannot be used: take 1 to 64 letters, digits and any of '._@+-', "
            "a letter or a digit first"
        )
    if name in (ANONYMOUS.name, OPERATOR.name):
        return f"{name} is a reserved name; choose a different one"
    return None
