"""What replaces secrets: marks in text, empty values of other types. Pure: no I/O."""

from __future__ import annotations

import copy
import hashlib
import hmac
from typing import Any, Final

from portbook.model import JSON
from portbook.text.late_pattern import late_pattern

__all__ = ["MARK", "NOT_MARKED", "blank_of", "hash_mark", "is_mark"]

MARK: Final = "[redacted]"

_ANY: Final = r"\[(?:redacted|sha256:[0-9a-f]{16})\]"
_WHOLE: Final = late_pattern(_ANY)

# For detectors, before the secret in a pattern: a mark by itself is not a secret.
NOT_MARKED: Final = rf"(?!{_ANY}(?:[^\w\[]|\Z))"

# The empty value of each type; bool comes first, because it is an int to Python.
_BLANKS: Final[tuple[tuple[type | tuple[type, ...], JSON], ...]] = (
    (bool, False),
    ((int, float), 0),
    ((list, tuple), []),
    (dict, {}),
)


def is_mark(text: str) -> bool:
    """Return whether the whole of `text` is a mark."""
    return _WHOLE.fullmatch(text) is not None


def hash_mark(text: str, key: bytes) -> str:
    """Return a mark that is the same for the same secret, and reveals nothing without the key."""
    digest = hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return f"[sha256:{digest.hexdigest()[:16]}]"


def blank_of(value: Any) -> JSON:
    """Return what replaces a value that is no text: an empty one of its type."""
    return copy.copy(next((blank for kind, blank in _BLANKS if isinstance(value, kind)), MARK))
