"""The state of one call in the pipeline, which every stage receives. Pure: no I/O."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from portbook.audit.records import Trail
from portbook.dialects.exchange import Exchange
from portbook.model import JSON, ApiAnswer, Call, Identity, JSONObject
from portbook.redaction import Redactor
from portbook.stages.rules import Rules

__all__ = ["CallState"]


@dataclass(slots=True, kw_only=True)
class CallState(Trail):
    """A call, the rules that it began with, its ids, and what has happened to it so far (`Trail`)."""

    exchange: Exchange
    call: Call
    """The call of the exchange."""
    rules: Rules
    """The rules that were in force when the call began; it keeps them to its end."""
    identity: Identity
    answer: ApiAnswer | None = None
    """What the API said beside the result, where the tool is an operation of one."""
    links: list[JSON] | None = None
    """The links that the caller gets beside the result: those of the API, redacted."""
    redacting: Callable[[], Redactor | None] = lambda: None
    """Returns the current redactor: the call itself may have fetched a token that must be redacted."""

    @property
    def redactor(self) -> Redactor | None:
        """Return the redactor; None if redaction is switched off."""
        return self.redacting()

    _shown: tuple[Redactor, JSONObject] | None = None

    def shown(self) -> JSONObject:
        """Return the redacted arguments; they are redacted once, unless a new secret has become known."""
        redactor, arguments = self.redactor, self.call.arguments
        if redactor is None:
            return arguments
        if self._shown is None or self._shown[0] is not redactor:
            self._shown = redactor, cast("JSONObject", redactor.redact(arguments)[0])
        return self._shown[1]

    def hear(self, answer: ApiAnswer) -> None:
        """Keep what an API said beside the result."""
        self.answer = answer

    def without_secrets(self, text: str) -> str:
        """Return a text for the caller, redacted; the caller is told that it was."""
        redactor = self.redactor
        told = text if redactor is None else redactor.redact_text(text)
        self.is_redacted = self.is_redacted or told != text
        return told

    def redacted(self, value: JSON) -> JSON:
        """Return a value for the caller, redacted; the caller is told that it was."""
        redactor = self.redactor
        if redactor is None:
            return value
        value, has_changed = redactor.redact(value)
        self.is_redacted = self.is_redacted or has_changed
        return value

    @property
    def session(self) -> str | None:
        """Return the session that the call names, or else its transport."""
        return self.call.context.session or self.call.arrival.session
