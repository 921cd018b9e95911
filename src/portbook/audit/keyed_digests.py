"""`AuditKey`: digests of what could be guessed, which only who holds the key can compare. Pure: no I/O.

Arguments, results and what a caller says of itself are often short: whoever reads a plain digest of them can
try every likely value. So these are HMACs. Each is bound to its call, so that equal values look different.
"""

from __future__ import annotations

import hmac
from hashlib import sha256
from typing import Any, Final, Literal

from portbook.canonical import canonical_bytes, json_bytes
from portbook.escaping import escaped
from portbook.model import JSON, NO_CONTEXT, Call, Done, JSONObject, Outcome
from portbook.text.late_pattern import late_pattern

__all__ = ["KEY_BYTES", "AuditKey", "BadAuditKey", "KeyedPart", "NoDigests", "digested_bytes"]

KEY_BYTES: Final = 32

KeyedPart = Literal["arguments", "result", "claims"]

_TEXT: Final = late_pattern(rf"\s*pbk_audit_([0-9a-f]{{{2 * KEY_BYTES}}})\s*")
_ID_DIGITS: Final = 16


class BadAuditKey(ValueError):
    """What is no audit key; the message never quotes it."""


class NoDigests(ValueError):
    """A record without digests of this key; the message says why."""


class AuditKey:
    """A key that an operator made and gave to an auditor. Its `repr` shows only the `key_id`."""

    __slots__ = ("_secret", "key_id")

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self.key_id = sha256(b"portbook audit key\n" + secret).hexdigest()[:_ID_DIGITS]
        """Tells keys apart; it does not reveal the key."""

    @classmethod
    def from_text(cls, text: str) -> AuditKey:
        """Return the key in the text of its file.

        Raises `BadAuditKey` where it has none.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise BadAuditKey("not an audit key; `portbook audit key` makes one")
        return cls(bytes.fromhex(match[1]))

    def to_text(self) -> str:
        """Return the key as the text of a file that only its owner may read."""
        return f"pbk_audit_{self._secret.hex()}\n"

    def digest(self, part: KeyedPart, request_id: bytes, value: bytes) -> str:
        """Return the HMAC-SHA-256 of one part of a call, in hexadecimal."""
        return hmac.digest(self._secret, b"%b\n%b\n%b" % (part.encode(), request_id, value), "sha256").hex()

    def members(self, call: Call, request_id: bytes, outcome: Outcome | None = None) -> bytes:
        """Return the member of a record that has the digests of a call; null where there is no such part."""
        arguments = None if call.tool is None else json_bytes(call.arguments)
        result = outcome.body if isinstance(outcome, Done) and not outcome.is_asking else None
        claims = None if call.context == NO_CONTEXT else canonical_bytes(call.context._asdict())
        parts: tuple[tuple[KeyedPart, bytes | None], ...] = (
            ("arguments", arguments),
            ("result", result),
            ("claims", claims),
        )
        digests = (
            f'"{part}":' + ("null" if value is None else f'"{self.digest(part, request_id, value)}"')
            for part, value in parts
        )
        return f',"hmac":{{"key":"{self.key_id}",{",".join(digests)}}}'.encode()

    def digests_in(self, record: JSONObject) -> dict[str, Any]:
        """Return the digests in a record.

        Raises `NoDigests` where it has none of this key.
        """
        digests = record.get("hmac")
        if not isinstance(digests, dict):
            raise NoDigests("the record has no such digests: no audit key was set when it was written")
        if digests.get("key") != self.key_id:
            raise NoDigests(
                f"the digests of this record are under the key {escaped(str(digests.get('key')))}"
            )
        return digests

    def matches(self, digests: dict[str, Any], part: KeyedPart, request_id: str, value: bytes) -> bool:
        """Return whether the bytes of one part of a call are those whose digest its record has."""
        return digests.get(part) == self.digest(part, request_id.encode(), value)

    def __repr__(self) -> str:
        return f"AuditKey({self.key_id})"


def digested_bytes(part: KeyedPart, value: JSON) -> bytes:
    """Return the bytes that are digested for a part that is given as JSON, to compare it with a record.

    Raises `NotJSON` where it cannot be written.
    """
    return canonical_bytes(value) if part == "claims" else json_bytes(value)
