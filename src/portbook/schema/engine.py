"""Compiled validators on `jsonschema-rs`; the only module that knows that library.

Draft 2020-12, and draft-07 for the MCP revisions that are written in it. Nothing is ever fetched, formats
are asserted in both, regular expressions run in linear time: a pattern that needs lookaround or
back-references does not compile. Findings are ordered by pointer, then message. Pure: no I/O.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

import jsonschema_rs

from portbook.canonical import NotJSON, json_bytes
from portbook.errors import Finding
from portbook.schema.cost import explanation_of
from portbook.schema.locate import may_be_elsewhere, places_of
from portbook.schema.messages import escape_pointer, tell, whole_pointer
from portbook.schema.references import DIALECT, DRAFT_07, check_dialect, examine

__all__ = ["BadSchema", "SchemaViolation", "Validator", "compile_official", "compile_schema"]

_Errors: TypeAlias = "Iterator[jsonschema_rs.ValidationError]"

# A compiled pattern may take this much memory; counted repetitions are what reaches it.
_PATTERN_BYTES: Final = 1 << 20


class _Violations(ValueError):
    """Findings, raised together."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        self.findings = findings
        super().__init__(
            "; ".join(f"{finding.pointer or '(root)'}: {finding.message}" for finding in findings)
        )


class SchemaViolation(_Violations):
    """A document that its schema does not allow."""


class BadSchema(_Violations):
    """A schema that cannot be compiled."""


class Validator:
    """One compiled schema. Immutable, and safe to share between threads."""

    __slots__ = ("_compiled", "_dialect", "_explanation", "_schema", "fingerprint")

    def __init__(self, schema: Any, fingerprint: str, dialect: str = DIALECT) -> None:
        self._compiled = _compile(schema, dialect)
        self._schema = schema
        self._dialect = dialect
        self._explanation: tuple[int, jsonschema_rs.Validator | None] | None = None
        self.fingerprint = fingerprint

    def is_valid(self, payload: Any) -> bool:
        """Return whether the schema allows `payload`; what JSON cannot hold is not allowed."""
        try:
            # The library takes NaN for a number, and does not look where the schema says nothing.
            json_bytes(payload)
        except NotJSON:
            return False
        return self.allows(payload)

    def allows(self, payload: Any) -> bool:
        """Return whether the schema allows `payload`, of which it is known that JSON can hold it."""
        try:
            return self._compiled.is_valid(payload)
        except ValueError:
            return False

    def validate(self, payload: Any) -> None:
        """Return if the schema allows `payload`.

        Raises `SchemaViolation` with the findings where it does not.
        """
        if not self.is_valid(payload):
            raise SchemaViolation(self.findings(payload))

    def findings(self, payload: Any) -> tuple[Finding, ...]:
        """Return what the schema does not allow in `payload`, ordered by pointer, then message."""
        return self._explain(payload, _size, lambda errors: {_finding(error) for error in errors})

    def findings_of_own(self, payload: Any, effort: int) -> tuple[Finding, ...]:
        """Return the same for whoever wrote the document: pointers are whole, however long their names are.

        The explanation may cost `effort` times what a stranger's message is worth.
        """
        return self._explain(
            payload,
            lambda encoded: -(-_parts(encoded) // effort),
            lambda errors: _findings_of_own(errors, payload),
        )

    def first_finding_of_own(self, payload: Any) -> tuple[Finding, ...]:
        """Return one violation alone, for a document whose pointers would take too much to have them all."""
        return self._explain(
            payload, lambda encoded: sys.maxsize, lambda errors: _findings_of_own(errors, payload)
        )

    def _explain(
        self, payload: Any, size_of: Callable[[bytes], int], findings_of: Callable[[_Errors], set[Finding]]
    ) -> tuple[Finding, ...]:
        try:
            size = size_of(json_bytes(payload))
            max_bytes, twin = self._explained_by()
            if size > max_bytes:
                unexplained = (Finding("", "breaks the schema", "", ""),)
                return unexplained if twin is None else tuple(findings_of(_first(twin, payload)))
            return tuple(sorted(findings_of(self._compiled.iter_errors(payload))))
        except NotJSON as error:
            return (Finding("", str(error), "json", ""),)
        except ValueError:  # the library takes fewer types than our writer
            return (Finding("", "the value has a part that JSON cannot hold", "json", ""),)

    def _explained_by(self) -> tuple[int, jsonschema_rs.Validator | None]:
        """Return up to which size a document is explained in full, and what finds one violation of others."""
        if self._explanation is None:  # made when first needed; that two threads make it does no harm
            explanation = explanation_of(self._schema, self._dialect)
            twin = self._compiled if explanation.twin is None else self._compile_twin(explanation.twin)
            self._explanation = (explanation.max_bytes, twin)
        return self._explanation

    def _compile_twin(self, twin: Any) -> jsonschema_rs.Validator | None:
        try:
            return _compile(twin, self._dialect)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):
            return None  # a reference leads to a place that the twin does not have


def compile_schema(schema: Any, fingerprint: str, dialect: str = DIALECT) -> Validator:
    """Return the validator of a schema in `dialect`.

    1. Its dialect is ours: nothing else below would mean the same in another.
    2. Its meta-schema allows it: every keyword has a value that it can have.
    3. Its references stay inside it, and do not multiply beyond measure.
    4. It compiles: what is left are patterns that the regular expression engine does not take.

    Raises `BadSchema` with the first rung's findings.
    """
    if findings := check_dialect(schema, dialect=dialect):
        raise BadSchema(tuple(findings))
    meta = _meta(dialect)
    if not meta.is_valid(schema):
        raise BadSchema(tuple(sorted({_finding(error) for error in meta.iter_errors(schema)})))
    if findings := examine(schema, dialect):
        raise BadSchema(tuple(sorted(findings)))
    return compile_official(schema, fingerprint, dialect)


def compile_official(schema: Any, fingerprint: str, dialect: str = DIALECT) -> Validator:
    """Return the validator of a schema whose bytes are pinned, and which needs no examination: rung 4 alone.

    Raises `BadSchema` where it does not compile.
    """
    try:
        return Validator(schema, fingerprint, dialect)
    except jsonschema_rs.ValidationError as error:
        raise BadSchema((_uncompilable(error),)) from None
    except jsonschema_rs.ReferencingError:  # by a way of naming things that this dialect does not have
        message = "refers to something that is not in this document; check its spelling"
        raise BadSchema((Finding("", message, "$ref", ""),)) from None


@functools.cache
def _meta(dialect: str) -> jsonschema_rs.Validator:
    return _compile({"$ref": dialect}, dialect)


def _compile(schema: Any, dialect: str) -> jsonschema_rs.Validator:
    make = jsonschema_rs.Draft7Validator if dialect == DRAFT_07 else jsonschema_rs.Draft202012Validator
    return make(
        schema,
        offline=True,
        validate_formats=True,
        mask="value",
        pattern_options=jsonschema_rs.RegexOptions(
            size_limit=_PATTERN_BYTES, dfa_size_limit=2 * _PATTERN_BYTES
        ),
    )


def _size(encoded: bytes) -> int:
    return len(encoded)


def _parts(encoded: bytes) -> int:
    """Return twice the number of values in a document, at most its length; what is in strings counts too."""
    return 2 * (1 + encoded.count(b",") + encoded.count(b"[") + encoded.count(b"{"))


def _first(compiled: jsonschema_rs.Validator, payload: Any) -> _Errors:
    try:
        compiled.validate(payload)
    except jsonschema_rs.ValidationError as error:
        yield error


def _finding(error: jsonschema_rs.ValidationError) -> Finding:
    there, sentence = tell(error)
    pointer = escape_pointer(there.instance_path)
    return Finding(pointer, sentence, error.kind.name, escape_pointer(error.schema_path))


def _findings_of_own(errors: _Errors, payload: Any) -> set[Finding]:
    """Return the findings with whole pointers, also where a name on the way is empty."""
    is_exact = not may_be_elsewhere(json_bytes(payload))
    findings: set[Finding] = set()
    for error in errors:
        there, sentence = tell(error)
        places = (
            [there.instance_path] if is_exact else places_of(payload, there.instance_path, there.instance)
        )
        made = [
            Finding(whole_pointer(place), sentence, error.kind.name, escape_pointer(error.schema_path))
            for place in places
        ]
        # Two errors that look the same are about two of the places, in whichever order.
        findings.add(next((finding for finding in made if finding not in findings), made[0]))
    return findings


def _uncompilable(error: jsonschema_rs.ValidationError) -> Finding:
    # The library speaks of the schema as the instance of its meta-schema.
    pointer = escape_pointer(error.instance_path)
    if pointer.endswith("/pattern") or "/patternProperties" in pointer:
        message = (
            "not a pattern that can be matched in linear time; do without lookaround and back-references"
        )
        return Finding(pointer, message, "pattern", "")
    return Finding(pointer, "cannot be compiled", error.kind.name, "")
