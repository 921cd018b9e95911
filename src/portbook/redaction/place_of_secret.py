"""Finds where in a document a secret is, for documents that must not be altered. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable

from portbook.model import JSON

__all__ = ["place_of"]


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
