"""Validates messages of both directions against the official schema of a revision. Pure: no I/O.

Each message is validated against its method's own definition, because the unions of the schemas accept
invalid messages and report no place. Two gaps of the definitions are closed here:

- In the draft-07 revisions, a method's definition has neither `jsonrpc` nor `id`. The generic definition of a
  request or notification is checked as well.
- A result of 2026-07-28 may be an `input_required` round; its type selects the definition.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal

from portbook.errors import Finding, Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.protocol.revisions_and_methods import MAY_ASK, REVISIONS, Method, method_of
from portbook.schema.engine import SchemaViolation, Validator
from portbook.schema.official_schemas import NEWEST, SchemaStore

__all__ = ["INPUT_REQUIRED", "RESULT", "Mode", "SchemaValidator", "first_of"]

# What is done with a message that the schema does not allow: `validation.incoming` and `outgoing`.
Mode = Literal["enforce", "warn", "off"]

# The message type of a method's result: "tools/call" + RESULT.
RESULT: Final = ":result"

# Message types without a method: the same in every revision, with the names of their definitions.
_GENERIC: Final = {
    "request": ("JSONRPCRequest",),
    "notification": ("JSONRPCNotification",),
    "response": ("JSONRPCResultResponse", "JSONRPCResponse"),
    "error": ("JSONRPCErrorResponse", "JSONRPCError"),
}

# The `resultType` of a result that asks for input.
INPUT_REQUIRED: Final = "input_required"


class SchemaValidator:
    """Validates messages by type: a method, a method's result, or a generic kind of message."""

    def __init__(self, store: SchemaStore) -> None:
        self._store = store
        self._checks: dict[tuple[str, str], tuple[Validator, ...]] | None = None

    def initialize(self) -> None:
        """Verify the embedded schemas; a second call does nothing. They are parsed and compiled on first use.

        Raises `BrokenSchema` where an embedded schema differs from its pin.
        """
        if self._checks is None:
            self._store.verify()
            self._checks = {}

    def shutdown(self) -> None:
        """Drop all compiled schemas."""
        self._checks = None
        self._store.clear()

    def validate(self, message_type: str, message: JSON, revision: str = NEWEST) -> None:
        """Validate `message` as one of its type.

        Raises `SchemaViolation` with the findings where it is not valid, `KeyError` for a type that the
        revision does not have, `RuntimeError` before `initialize`.
        """
        if findings := self.findings(message_type, message, revision):
            raise SchemaViolation(findings)

    def findings(self, message_type: str, message: JSON, revision: str = NEWEST) -> tuple[Finding, ...]:
        """Return the violations in `message`, ordered by pointer, then message.

        Raises `KeyError` for a type that the revision does not have, `RuntimeError` before `initialize`.
        """
        failed = [check for check in self._for(message_type, message, revision) if not check.allows(message)]
        if _asks_out_of_turn(message_type, message, revision):
            return (Finding("/resultType", "this method may not ask for input", "resultType", ""),)
        if not failed:
            return ()
        return tuple(sorted({finding for check in failed for finding in check.findings(message)}))

    def refuse_incoming(
        self, method: str, message: JSONObject, revision: str, mode: Mode, warn: Callable[[str], None]
    ) -> Refused | None:
        """Return the refusal of a message that the schema does not allow; or warn, as the mode says."""
        findings = self.findings(method, message, revision)
        if mode == "enforce":
            is_frame = any(finding.pointer in ("/id", "/jsonrpc", "/method") for finding in findings)
            return Refused(Reason.NOT_JSONRPC if is_frame else Reason.BAD_PARAMS, findings)
        warn(f"incoming {method} breaks {revision}: {first_of(findings)}")
        return None

    def check_of(self, message_type: str, revision: str) -> Callable[[Any], bool]:
        """Return the check that a message of this type has to pass, for messages that are valid JSON.

        An `input_required` result has a check of its own, which `findings` chooses.

        Raises as `findings` does.
        """
        first, *more = (check.accepts for check in self._compiled(message_type, revision))
        if not more:
            return first
        return lambda message: first(message) and all(check(message) for check in more)

    def _for(self, message_type: str, message: JSON, revision: str) -> tuple[Validator, ...]:
        if message_type.endswith(RESULT) and isinstance(message, dict):
            method = message_type.removesuffix(RESULT)
            asks = REVISIONS[revision].has_result_type and message.get("resultType") == INPUT_REQUIRED
            if asks and method in MAY_ASK:
                message_type = INPUT_REQUIRED
        return self._compiled(message_type, revision)

    def _compiled(self, message_type: str, revision: str) -> tuple[Validator, ...]:
        if self._checks is None:
            raise RuntimeError("the schema validator is used before initialize()")
        checks = self._checks.get((revision, message_type))
        if checks is None:
            names = _definitions(message_type, revision, self._store.definitions(revision))
            checks = tuple(self._store.definition(revision, name) for name in names)
            self._checks[revision, message_type] = checks
        return checks


def _asks_out_of_turn(message_type: str, message: JSON, revision: str) -> bool:
    """Return whether a result asks for input although its method may not, which the schema accepts."""
    return (
        message_type.endswith(RESULT)
        and REVISIONS[revision].has_result_type
        and isinstance(message, dict)
        and message.get("resultType") == INPUT_REQUIRED
        and message_type.removesuffix(RESULT) not in MAY_ASK
    )


def _definitions(message_type: str, revision: str, known: frozenset[str]) -> tuple[str, ...]:
    """Return the names of all definitions that a message of this type must match."""
    if message_type == INPUT_REQUIRED:
        return ("InputRequiredResult",)
    if message_type in _GENERIC:
        return (next(name for name in _GENERIC[message_type] if name in known),)
    method = method_of(message_type.removesuffix(RESULT), revision)
    if method is None:
        raise KeyError(f"{revision} has no {message_type}")
    if message_type.endswith(RESULT):
        return (_result_of(method, message_type),)
    if REVISIONS[revision].has_whole_definitions:
        return (method.definition,)
    return ("JSONRPCNotification" if method.is_notification else "JSONRPCRequest", method.definition)


def _result_of(method: Method, message_type: str) -> str:
    if method.result is None:
        raise KeyError(f"{message_type}: a notification has no result")
    return method.result


def first_of(findings: tuple[Finding, ...]) -> str:
    """Return the first finding as text."""
    return f"{findings[0].pointer or '(root)'}: {findings[0].message}"
