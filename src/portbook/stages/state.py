"""The state of one call on its way through the pipeline: what every stage is handed. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from portbook.audit.records import Trail
from portbook.model import Call, Identity, JSONObject
from portbook.redaction import Redactor
from portbook.stages.rules import Rules

__all__ = ["CallState"]


@dataclass(slots=True, kw_only=True)
class CallState(Trail):
    """A call, the rules that it began with, its names, and what it has met so far (`Trail`)."""

    call: Call
    rules: Rules
    """The rules that were in force when it began; it keeps them to its end."""
    identity: Identity
    redacting: Callable[[], Redactor | None] = lambda: None
    """Returns the redactor when it is needed: a call may itself fetch a token that was not known before."""

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
