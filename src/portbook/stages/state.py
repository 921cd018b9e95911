"""The state of one call in the pipeline, which every stage receives. Pure: no I/O."""

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
    """A call, the rules that it began with, its ids, and what has happened to it so far (`Trail`)."""

    call: Call
    rules: Rules
    """The rules that were in force when the call began; it keeps them to its end."""
    identity: Identity
    redacting: Callable[[], Redactor | None] = lambda: None
    """Returns the current redactor: the call itself may have fetched a token that must be redacted."""

    @property
    def redactor(self) -> Redactor | None:
        """Return the redactor; None if redaction is switched off."""
        return self.redacting()

    def shown(self) -> JSONObject:
        """Return the redacted arguments."""
        redactor, arguments = self.redactor, self.call.arguments
        return arguments if redactor is None else cast("JSONObject", redactor.redact(arguments)[0])

    @property
    def session(self) -> str | None:
        """Return the session that the call names, or else its transport."""
        return self.call.context.session or self.call.arrival.session
