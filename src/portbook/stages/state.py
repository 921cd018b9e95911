"""The state of one call in the pipeline, which every stage receives. Pure: no I/O."""

from __future__ import annotations

from typing import Any, cast

from portbook.audit.decision_digests import Bases
from portbook.audit.record_views_and_fields import RecordForms
from portbook.dialects.exchange_contract import Exchange
from portbook.model import (
    JSON,
    Answer,
    ApiAnswer,
    Call,
    Caller,
    Completed,
    IdBytes,
    Identity,
    JSONObject,
    Outcome,
)
from portbook.policy import Decision
from portbook.redaction import Redactor
from portbook.stages.rules_in_force import InForce, Rules
from portbook.text.named_tuple import new_tuple
from portbook.text.slotted import slotted
from portbook.tools.catalog import Tool

__all__ = ["CallState", "Trail"]


@slotted(frozen=False, eq=False)
class Trail:
    """The state that a call collects on its way through the stages; the only mutable value there."""

    caller: Caller | None = None
    tool: Tool | None = None
    decision: Decision | None = None
    approval: str | None = None
    is_redacted: bool = False
    has_begun: bool = False
    """Whether a tool was started that may have had effects."""
    operator_said: str | None = None
    """The operator's decision, where the call is one."""
    started: float = 0.0
    """When the call started, in ticks of the clock."""
    forms: RecordForms | None = None
    """The forms of earlier records that differ only in how the call came in, its method, its caller and its
    session. None where more differs."""
    bases: Bases | None = None
    """What decides on calls of the tool."""


class CallState(Trail):
    """A call, the rules that it began with, its ids, and what has happened to it so far (`Trail`).

    The pipeline fills it where a call begins: a constructor would take twice as long.
    """

    __slots__ = (
        "answer",
        "call",
        "duration_us",
        "ended",
        "exchange",
        "ids",
        "in_force",
        "known_identity",
        "known_shown",
        "links",
        "outcome",
        "rules",
    )

    exchange: Exchange
    call: Call
    in_force: InForce
    """The current rules, for their redactor: the call itself may have fetched a token to redact."""
    rules: Rules
    """The rules that were in force when the call began; it keeps them to its end."""
    ids: IdBytes
    answer: ApiAnswer | None
    """What the API said beside the result, where the tool is an operation of one."""
    links: list[JSON] | None
    """The links that the caller gets beside the result: those of the API, redacted."""
    outcome: Outcome | None
    """How the call ended; None until it has."""
    ended: float
    """When it ended, in ticks of the clock; set with its record."""
    duration_us: int
    known_identity: Identity | None
    """What `identity` has returned."""
    known_shown: tuple[Redactor, JSONObject] | None
    """What `shown` has returned, and the redactor that was in force then."""

    __init__: Any = object.__init__

    @property
    def redactor(self) -> Redactor | None:
        """Return the redactor; None if redaction is switched off."""
        return self.in_force.rules.redactor

    @property
    def identity(self) -> Identity:
        """Return the ids of the call, for those who show them."""
        if self.known_identity is None:
            self.known_identity = Identity.read(self.ids)
        return self.known_identity

    def completed(self) -> Completed:
        """Return how the call ended, for those who answer it."""
        assert self.outcome is not None
        took_ms, links = self.duration_us / 1000, self.links
        return new_tuple(
            Completed, (self.outcome, self.identity, took_ms, self.is_redacted, self.approval, links)
        )

    def reply(self) -> Answer:
        """Return the answer to the call, for a door that sends more than the body."""
        return self.exchange.write(self.completed())

    def shown(self) -> JSONObject:
        """Return the redacted arguments; they are redacted once, unless a new secret has become known."""
        redactor, arguments = self.redactor, self.call.arguments
        if redactor is None:
            return arguments
        if self.known_shown is None or self.known_shown[0] is not redactor:
            self.known_shown = redactor, cast("JSONObject", redactor.redact(arguments)[0])
        return self.known_shown[1]

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
