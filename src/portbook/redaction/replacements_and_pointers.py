"""What replaces secrets, and JSON Pointers: of values to redact, and of a secret. Pure: no I/O.

- Replacements: marks in text, empty values of other types.
- Pointers (RFC 6901) of values to redact; `*` matches any one segment.
- `place_of`: where in a document a secret is, for documents that must not be altered.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from portbook.model import JSON
from portbook.text.late_pattern import late_pattern
from portbook.text.sha256 import hmac_sha256

__all__ = [
    "MARK",
    "NOT_MARKED",
    "Places",
    "blank_of",
    "hash_mark",
    "is_mark",
    "place_of",
    "places_of",
    "problem_of",
    "trigger_of",
]

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
    digest = hmac_sha256(key, text.encode("utf-8", "surrogatepass"))
    return f"[sha256:{digest.hexdigest()[:16]}]"


def blank_of(value: Any) -> JSON:
    """Return what replaces a value that is no text: an empty one of its type."""
    return copy.copy(next((blank for kind, blank in _BLANKS if isinstance(value, kind)), MARK))


# Pointers of values to redact.

_POINTER: Final = late_pattern(r"(?:/(?:[^/~]|~[01])*)*")


class RedactedPointer:
    """One segment of the pointers, with the segments that may follow it."""

    __slots__ = ("below", "is_end")

    def __init__(self) -> None:
        self.below: dict[str, RedactedPointer] = {}
        self.is_end = False


# The current positions of a walk in the pointers: several, where one pointer has `*` and one a name.
Places: TypeAlias = tuple[RedactedPointer, ...]


def problem_of(pointer: str) -> str | None:
    """Return how to fix a pointer, or None where it is valid."""
    if _POINTER.fullmatch(pointer):
        return None
    return "write a JSON Pointer such as /user/card or /items/*/card; in a name, ~ is ~0 and / is ~1"


def places_of(pointers: Iterable[str]) -> Places:
    """Return the positions at which a walk starts."""
    root = RedactedPointer()
    for pointer in pointers:
        place = root
        for segment in _segments(pointer):
            place = place.below.setdefault(segment, RedactedPointer())
        place.is_end = True
    return (root,) if root.below or root.is_end else ()


def below(places: Places, name: str) -> Places:
    """Return the positions of a walk after one more segment."""
    found = [place.below.get(segment) for place in places for segment in (name, "*")]
    return tuple(place for place in found if place is not None)


def trigger_of(pointer: str) -> str:
    """Return the longest name in a pointer, or an empty string; every value that matches contains it."""
    names = [segment for segment in _segments(pointer) if segment != "*" and not segment.isdigit()]
    return max(names, key=len, default="")


def _segments(pointer: str) -> list[str]:
    return [segment.replace("~1", "/").replace("~0", "~") for segment in pointer.split("/")[1:]]


# The place of a secret.


def place_of(value: JSON, is_secret: Callable[[str | float], bool]) -> str | None:
    """Return the JSON Pointer of the first string or number that `is_secret`; None if there is none.

    If the name of a member is the secret, it is the pointer of the object: a pointer must not reveal it.
    """
    if isinstance(value, dict):
        for name, item in value.items():
            if is_secret(name):
                return ""
            place = place_of(item, is_secret)
            if place is not None:
                return f"/{name.replace('~', '~0').replace('/', '~1')}{place}"
    elif isinstance(value, list):
        for index, item in enumerate(value):
            place = place_of(item, is_secret)
            if place is not None:
                return f"/{index}{place}"
    elif value is not None and not isinstance(value, bool) and is_secret(value):
        return ""
    return None
