"""The marks that replace secrets. Pure: no I/O."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from portbook.redaction.late_pattern import late_pattern

__all__ = ["MARK", "NOT_MARKED", "hash_mark", "is_mark"]

MARK: Final = "[redacted]"

_ANY: Final = r"\[(?:redacted|sha256:[0-9a-f]{16})\]"
_WHOLE: Final = late_pattern(_ANY)

# For detectors, before the secret in a pattern: a mark by itself is not a secret.
NOT_MARKED: Final = rf"(?!{_ANY}(?:[^\w\[]|\Z))"


def is_mark(text: str) -> bool:
    """Return whether the whole of `text` is a mark."""
    return _WHOLE.fullmatch(text) is not None


def hash_mark(text: str, key: bytes) -> str:
    """Return a mark that is the same for the same secret, and reveals nothing without the key."""
    digest = hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return f"[sha256:{digest.hexdigest()[:16]}]"
