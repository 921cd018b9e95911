"""Compiled validators on `jsonschema-rs`; the only module that uses that library.

Draft 2020-12, and draft-07 for the MCP revisions that are written in it. Nothing is ever fetched. Formats
are asserted in both. Regular expressions run in linear time: a pattern with lookaround or back-references
does not compile. Findings are ordered by pointer, then message. Pure: no I/O.

`validator_for` keeps them, one per schema fingerprint in the whole process: the same schema from two files
is one validator, compiled once and shared by all doors.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias
from urllib.parse import urldefrag

import jsonschema_rs

from portbook.canonical import NotJSON, fingerprint, json_bytes
from portbook.errors import Finding
from portbook.schema.json_schema_drafts import DIALECT, DRAFT_07, check_dialect
from portbook.schema.violation_wording import escape_pointer, tell, whole_pointer
from portbook.text.late_pattern import late_pattern

__all__ = [
    "BadSchema",
    "LateValidator",
    "NotCompiled",
    "SchemaViolation",
    "Validator",
    "compile_official",
    "compile_schema",
    "is_usable_pattern",
    "validator_for",
]

# The keywords of which the meta-schema of 2020-12 asserts a format, also those that it keeps of older drafts;
# but for references within a schema, and its own dialect, that certainly have theirs. Such a word among data
# costs time only.
_ASSERTED: Final = late_pattern(
    rb'"(?:\$id|\$dynamicRef|\$recursiveRef|\$vocabulary|pattern|patternProperties)":'
    rb'|"\$ref":(?!"#/\$defs/[\w.-]+")|"\$schema":(?!"https://json-schema\.org/draft/2020-12/schema#?")'
)

_Errors: TypeAlias = "Iterator[jsonschema_rs.ValidationError]"

# The memory limit of a compiled pattern; in practice only counted repetitions reach it.
_PATTERN_BYTES: Final = 1 << 20
# How many verdicts on patterns are kept: more than one document has different ones.
_PATTERNS: Final = 4_096


class _Violations(ValueError):
    """An exception that holds findings."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        self.findings = findings
        super().__init__(
            "; ".join(f"{finding.pointer or '(root)'}: {finding.message}" for finding in findings)
        )


class SchemaViolation(_Violations):
    """A document that does not match its schema."""


class BadSchema(_Violations):
    """A schema that cannot be compiled."""


class Validator:
    """One compiled schema. Immutable and thread-safe."""

    __slots__ = ("_compiled", "_dialect", "_explanation", "_schema", "accepts", "fingerprint")

    def __init__(self, schema: Any, fingerprint: str, dialect: str = DIALECT) -> None:
        self._compiled = _compile(schema, dialect)
        self.accepts: Callable[[Any], bool] = self._compiled.is_valid
        """Returns whether a value matches the schema, for values that were parsed from JSON or written as
        JSON: unlike `allows` it may raise for other values."""
        self._schema = schema
        self._dialect = dialect
        self._explanation: tuple[int, jsonschema_rs.Validator | None] | None = None
        self.fingerprint = fingerprint

    def is_valid(self, payload: Any) -> bool:
        """Return whether `payload` matches the schema; a value that JSON cannot hold does not."""
        try:
            # The library accepts NaN as a number, and skips parts that the schema does not constrain.
            json_bytes(payload)
        except NotJSON:
            return False
        return self.allows(payload)

    def allows(self, payload: Any) -> bool:
        """Return whether `payload`, known to be valid JSON, matches the schema."""
        try:
            return self._compiled.is_valid(payload)
        except ValueError:
            return False

    def validate(self, payload: Any) -> None:
        """Validate `payload`.

        Raises `SchemaViolation` with the findings where it does not match the schema.
        """
        if not self.is_valid(payload):
            raise SchemaViolation(self.findings(payload))

    def findings(self, payload: Any) -> tuple[Finding, ...]:
        """Return the violations in `payload`, ordered by pointer, then message."""
        return self._explain(payload, _size, lambda errors: {_finding(error) for error in errors})

    def findings_of_own(self, payload: Any, effort: int) -> tuple[Finding, ...]:
        """Return the violations for the author of the document: pointers are never truncated.

        The explanation may cost `effort` times as much as that of an untrusted message.
        """
        return self._explain(
            payload,
            lambda encoded: -(-_parts(encoded) // effort),
            lambda errors: _findings_of_own(errors, payload),
        )

    def first_finding_of_own(self, payload: Any) -> tuple[Finding, ...]:
        """Return only the first violation, for a document where finding all pointers costs too much."""
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
        except ValueError:  # the library accepts fewer types than our writer
            return (Finding("", "the value has a part that JSON cannot hold", "json", ""),)

    def _explained_by(self) -> tuple[int, jsonschema_rs.Validator | None]:
        """Return the size up to which documents are explained in full, and the validator for larger ones."""
        if self._explanation is None:  # two threads may both make it, which is harmless
            from portbook.schema.explanation_cost import explanation_of  # late: most messages are valid

            explanation = explanation_of(self._schema, self._dialect)
            twin = self._compiled if explanation.twin is None else self._compile_twin(explanation.twin)
            self._explanation = (explanation.max_bytes, twin)
        return self._explanation

    def _compile_twin(self, twin: Any) -> jsonschema_rs.Validator | None:
        try:
            return _compile(twin, self._dialect)
        except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError):
            return None  # a reference leads to a path that the twin does not have


def compile_schema(schema: Any, fingerprint: str, dialect: str = DIALECT) -> Validator:
    """Return the validator of a schema in `dialect`.

    1. It is in this dialect: the next steps depend on it.
    2. It matches its meta-schema: every keyword has a valid value.
    3. Its references stay inside it, and cause a bounded number of evaluations.
    4. It compiles: only patterns can fail here, where the regular expression engine does not support them.

    Raises `BadSchema` with the findings of the first step that fails.
    """
    from portbook.schema.evaluation_cost import examine  # late: schemas of plain types need no examination

    if findings := check_dialect(schema, dialect=dialect):
        raise BadSchema(tuple(findings))
    if not _matches_plainly(schema, dialect):
        meta = _meta(dialect)
        if not meta.is_valid(schema):
            raise BadSchema(tuple(sorted({_finding(error) for error in meta.iter_errors(schema)})))
    if findings := examine(schema, dialect):
        raise BadSchema(tuple(sorted(findings)))
    return compile_official(schema, fingerprint, dialect)


def _matches_plainly(schema: Any, dialect: str) -> bool:
    """Return whether a schema matches its meta-schema, and has nothing of which that asserts a format.

    The library has compiled that meta-schema for itself, without formats. Ours, with formats, takes a
    megabyte, and longer to compile than most schemas.
    """
    try:
        is_asserted = dialect != DIALECT or _ASSERTED.search(json_bytes(schema)) is not None
        return not is_asserted and jsonschema_rs.meta.is_valid(schema)
    except ValueError:  # the findings tell what is wrong
        return False


def compile_official(schema: Any, fingerprint: str, dialect: str = DIALECT) -> Validator:
    """Return the validator of a trusted schema whose bytes are pinned: only step 4 of `compile_schema`.

    Raises `BadSchema` where it does not compile.
    """
    try:
        return Validator(schema, fingerprint, dialect)
    except jsonschema_rs.ValidationError as error:
        raise BadSchema((_uncompilable(error),)) from None
    except jsonschema_rs.ReferencingError:  # a form of reference that this dialect does not have
        message = "refers to something that is not in this document; check its spelling"
        raise BadSchema((Finding("", message, "$ref", ""),)) from None


@functools.lru_cache(maxsize=_PATTERNS)
def is_usable_pattern(pattern: str) -> bool:
    """Return whether a schema may have this `pattern`: it is one, and can be matched in linear time."""
    schema = {"pattern": pattern}
    try:
        _compile(schema, DIALECT)
    except jsonschema_rs.ValidationError:
        return False
    return _meta(DIALECT).is_valid(schema)


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
    """Return twice the number of values in a document, at most its length; commas in strings count too."""
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
    """Return the findings with complete pointers, also where a name in them is empty."""
    from portbook.schema.violation_wording import (  # late: only for files of one's own
        may_be_elsewhere,
        places_of,
    )

    is_exact = not may_be_elsewhere(json_bytes(payload))
    findings: set[Finding] = set()
    for error in errors:
        there, sentence = tell(error)
        places = (
            [there.instance_path] if is_exact else places_of(payload, there.instance_path, there.instance)
        )
        keyword, refused_by = error.kind.name, whole_pointer(error.schema_path)
        resource = urldefrag(error.absolute_keyword_location or "").url
        made = [Finding(whole_pointer(place), sentence, keyword, refused_by, resource) for place in places]
        # Two equal errors belong to two of the places, in either order.
        findings.add(next((finding for finding in made if finding not in findings), made[0]))
    return findings


def _uncompilable(error: jsonschema_rs.ValidationError) -> Finding:
    # To the library, the schema is the instance of its meta-schema.
    pointer = escape_pointer(error.instance_path)
    if pointer.endswith("/pattern") or "/patternProperties" in pointer:
        message = "not a pattern that can be matched in linear time; remove lookaround and back-references"
        return Finding(pointer, message, "pattern", "")
    return Finding(pointer, "cannot be compiled", error.kind.name, "")


# The cache of compiled validators.

# `LateValidator`: a validator that is compiled when it is first used.
#
# For schemas that are known to compile: those that Portbook ships (a test compiles them all), and those of an
# imported document, whose parts were checked. A schema of the operator is compiled at once, so that a mistake
# in it stops the start.


class NotCompiled(RuntimeError):
    """A schema that was known to compile does not.

    Not a `ValueError`, which would mean that the value is wrong, and not the schema.
    """


class _Compiled(Validator):
    """What a late validator becomes with its first use: one whose fields are read without a detour."""

    __slots__ = ("_compile",)


class LateValidator(Validator):
    """A validator that takes the place of the one that `compile` returns."""

    __slots__ = ("_compile",)

    def __init__(self, compile: Callable[[], Validator]) -> None:  # noqa: A002 - what it does
        self._compile = compile

    def __getattr__(self, name: str) -> Any:
        """Fill the fields of a validator when the first of them is read; two threads may both do it.

        Raises `NotCompiled` where the schema does not compile after all.
        """
        if name not in Validator.__slots__:
            raise AttributeError(name)
        try:
            made = self._compile()
        except ValueError as error:
            raise NotCompiled(str(error)) from error
        for field in Validator.__slots__:
            setattr(self, field, getattr(made, field))
        self.__class__ = _Compiled  # type: ignore[assignment]  # of the same layout
        return getattr(made, name)


# Grows with the served schemas, which are known at start; callers cannot add to it.
_compiled: dict[str, Validator] = {}


def validator_for(schema: Any, *, is_known: bool = False) -> Validator:
    """Return the validator of `schema`, compiled on first use; `is_known` if it is known to compile.

    Raises `BadSchema` where it cannot be compiled.
    """
    try:
        key = fingerprint(schema)
    except NotJSON as error:
        raise BadSchema((Finding("", str(error), "json", ""),)) from None
    validator = _compiled.get(key)
    if validator is None:
        # Two threads may compile the same schema at once; with setdefault both use the first one.
        make = compile_official if is_known else compile_schema
        validator = _compiled.setdefault(key, make(schema, key))
    return validator
