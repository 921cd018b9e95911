"""A call on its way: what it is, the rules that it began with, its names, what it has met. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

from portbook.audit import Trail
from portbook.clock import Identity
from portbook.governance import Governance
from portbook.model import Call, JSONObject
from portbook.redaction import Redactor

__all__ = ["Passage"]


class Passage(NamedTuple):
    """What every stage of the pipeline is handed."""

    call: Call
    governance: Governance
    """The rules that were in force when it began; it keeps them to its end."""
    identity: Identity
    trail: Trail
    redacting: Callable[[], Redactor | None] = lambda: None
    """What takes secrets out, asked when it is needed: a call may itself fetch a token nobody knew before."""

    @property
    def redactor(self) -> Redactor | None:
        """Return what takes secrets out; None where redaction is switched off."""
        return self.redacting()

    def shown(self) -> JSONObject:
        """Return the call's arguments as people may see them."""
        redactor, arguments = self.redactor, self.call.arguments
        return arguments if redactor is None else cast("JSONObject", redactor.redact(arguments)[0])

    @property
    def session(self) -> str | None:
        """Return the session that the call names, or else its transport."""
        return self.call.context.session or self.call.arrival.session
