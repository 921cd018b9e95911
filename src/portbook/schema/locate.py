"""Finds the exact place of an error: the validator library leaves empty names out of its paths.

For `{"": 1}` with an error at `/`, the library reports the root. It also reports the invalid value, so the
path to that value can be searched for. Pure: no I/O.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

__all__ = ["may_be_elsewhere", "places_of"]

Step = str | int

# No real document has more paths through empty names.
_MAX_PLACES: Final = 100


def may_be_elsewhere(encoded: bytes) -> bool:
    """Return whether a document may have an empty name; text that looks like one counts too."""
    return b'"":' in encoded


def places_of(payload: Any, path: Sequence[Step], value: Any) -> list[tuple[Step, ...]]:
    """Return every path in `payload` that `path` may mean and that holds `value`, the likeliest first."""
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
    """Yield the paths that `left` may mean from `here`, those with the fewest empty names first."""
    if not left:
        yield done, here
    elif isinstance(here, dict) and left[0] in here:
        yield from _ways(cast("dict[Step, Any]", here)[left[0]], left[1:], (*done, left[0]))
    elif isinstance(here, list) and isinstance(left[0], int) and left[0] < len(cast("list[Any]", here)):
        yield from _ways(here[left[0]], left[1:], (*done, left[0]))
    if isinstance(here, dict) and "" in here:
        yield from _ways(cast("dict[Step, Any]", here)[""], left, (*done, ""))
