"""What a rule of the proof is, and how rules are combined. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

from portbook.assets.compat.subschemas import Place
from portbook.model import JSONObject
from portbook.schema.references import Path

__all__ = ["Holds", "Rule", "every"]

# Whether it is proved that a place of the new schema allows every value that a place of the old one allows.
Holds: TypeAlias = Callable[[Place, Place], bool]

# Whether one keyword follows: the members of its subschema, the path to it, and the place of the old schema.
Rule: TypeAlias = Callable[[JSONObject, Path, Place], bool]


def every(proved: Iterable[bool]) -> bool:
    """Return whether all are true; unlike `all`, try each, so that every undecided place is found."""
    return all(tuple(proved))
