"""JSON Pointers (RFC 6901) of values to redact; `*` matches any one segment. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

from portbook.text.late_pattern import late_pattern

__all__ = ["Places", "RedactedPointer", "places_of", "problem_of", "trigger_of"]

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
