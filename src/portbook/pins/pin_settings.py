"""`trust` and `on_change` of a server: who approves its definitions, and what a change leads to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal, cast

from portbook.apis.table_reader import Table
from portbook.pins.grade import Grade
from portbook.pins.on_change import OnChange, Reaction

__all__ = ["PIN_KEYS", "PinSettings", "TrustedBy", "read_pin_settings"]

TrustedBy = Literal["lock", "first-use"]

PIN_KEYS: Final = ("trust", "on_change")


@dataclass(frozen=True, slots=True)
class PinSettings:
    """How the definitions of one server are approved."""

    trust: TrustedBy = "lock"
    """`lock`: by a person. `first-use`: what is seen first is approved, and written to the lock."""
    on_change: OnChange = field(default_factory=OnChange)


def read_pin_settings(table: Table) -> PinSettings:
    """Return the settings of a server's table.

    Raises the table's exception for a value that is none of its choices.
    """
    trust = cast("TrustedBy", table.choice("trust", ("lock", "first-use")) or "lock")
    if "on_change" not in table:
        return PinSettings(trust)
    changes = table.table("on_change")
    changes.only(Grade)
    given = {grade.value: changes.choice(grade, tuple(Reaction)) for grade in Grade}
    return PinSettings(trust, OnChange(**{name: Reaction(each) for name, each in given.items() if each}))
