"""Where an error really is: the validator library leaves empty names out of its paths.

`{"": 1}` has an error at `/`, and the library says that it is at the root. What it does say is the value
that the error is about, so the way to that value can be found again. Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

__all__ = ["may_be_elsewhere", "places_of"]

Step = str | int

# More ways than these through empty names are nobody's document.
_MAX_PLACES: Final = 100


def may_be_elsewhere(encoded: bytes) -> bool:
    """Return whether a document has an empty name, or text that looks like one."""
    return b'"":' in encoded


def places_of(payload: Any, path: Sequence[Step], value: Any) -> list[tuple[Step, ...]]:
    """Return every place in `payload` that `path` may mean and that has `value`, the likeliest first."""
    found: list[tuple[Step, ...]] = []
    for place, there in _ways(payload, tuple(path), ()):
        if type(there) is type(value) and there == value:
            found.append(place)
            if len(found) == _MAX_PLACES:
                break
    return found or [tuple(path)]


def _ways(
    here: Any, left: tuple[Step, ...], done: tuple[Step, ...]
) -> Iterator[tuple[tuple[Step, ...], Any]]:
    """Yield where `left` leads from `here`, with as few empty names as can be put in between first."""
    if not left:
        yield done, here
    elif isinstance(here, dict) and left[0] in here:
        yield from _ways(cast("dict[Step, Any]", here)[left[0]], left[1:], (*done, left[0]))
    elif isinstance(here, list) and isinstance(left[0], int) and left[0] < len(cast("list[Any]", here)):
        yield from _ways(here[left[0]], left[1:], (*done, left[0]))
    if isinstance(here, dict) and "" in here:
        yield from _ways(cast("dict[Step, Any]", here)[""], left, (*done, ""))
