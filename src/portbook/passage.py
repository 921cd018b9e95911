"""A call on its way: what it is, the rules that it began with, its names, what it has met. Pure: no I/O."""

from __future__ import annotations

from typing import NamedTuple

from portbook.audit import Trail
from portbook.clock import Identity
from portbook.governance import Governance
from portbook.model import Call

__all__ = ["Passage"]


class Passage(NamedTuple):
    """What every stage of the pipeline is handed."""

    call: Call
    governance: Governance
    """The rules that were in force when it began; it keeps them to its end."""
    identity: Identity
    trail: Trail

    @property
    def session(self) -> str | None:
        """Return the session that the call names, or else its transport."""
        return self.call.context.session or self.call.arrival.session
