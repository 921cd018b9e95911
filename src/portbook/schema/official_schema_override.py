"""Validates a schema that replaces the embedded one of a revision. Pure: the caller fetches it."""

from __future__ import annotations

import hashlib
import re
from typing import Final, cast

from portbook.canonical import fingerprint
from portbook.errors import Refused
from portbook.model import JSON, JSONObject
from portbook.schema.engine import BadSchema, compile_schema
from portbook.schema.json_schema_drafts import DIALECT, DRAFT_07, dialect_of
from portbook.schema.official_schemas import REVISIONS, Override, SchemaStore, key_of, references_in
from portbook.schema.violation_wording import escape_pointer, shorten
from portbook.wire.parsing import parse

__all__ = ["FETCH_S", "MAX_BYTES", "BadOverride", "check_override"]

# Forty times the largest official schema; a larger document is not a schema of MCP.
MAX_BYTES: Final = 8 * 1024 * 1024

# How long its download may take. Nothing is served before: long enough for a slow host, short for a start.
FETCH_S: Final = 10.0

_DIALECTS: Final = (DIALECT, DRAFT_07, DIALECT + "#", DRAFT_07.removesuffix("#"))
_SHA256: Final = re.compile(r"[0-9a-fA-F]{64}", re.ASCII)

# How many findings are shown: enough to recognize the kind of document.
_SHOWN: Final = 3


class BadOverride(ValueError):
    """A schema that cannot replace the embedded one; the message gives the reason."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


def check_override(
    document_bytes: bytes, revision: str, sha256: str | None, *, origin: str = "override"
) -> Override:
    """Return the schema in `document_bytes` as the override of `revision`.

    1. The revision exists, and the document is not too large.
    2. Its digest is the expected one; this is checked before parsing.
    3. It is JSON.
    4. It is a schema: of a supported dialect, with definitions.
    5. It has all definitions of the embedded one, because messages are validated by definition name.
    6. It refers only to its own definitions, because each is compiled only with those it refers to.
    7. All of it compiles.

    Raises `BadOverride` with the reason of the first step that fails.
    """
    if revision not in REVISIONS:
        raise BadOverride(f"there is no revision {shorten(revision)}; choose one of {', '.join(REVISIONS)}")
    if len(document_bytes) > MAX_BYTES:
        raise BadOverride(f"it is larger than {MAX_BYTES // 1024 // 1024} MiB")
    _check_digest(document_bytes, sha256)
    try:
        document = parse(document_bytes)
    except Refused as refused:
        raise BadOverride(f"it is not JSON: {refused.findings[0].message}") from None
    checked = _as_schema(document)
    key = key_of(checked)
    definitions = cast("JSONObject", checked[key])
    if missing := sorted(SchemaStore().definitions(revision) - definitions.keys()):
        raise BadOverride(f"it lacks definitions that revision {revision} has: {_listed(missing)}")
    for name, definition in definitions.items():
        if any(not reference.startswith(f"#/{key}/") for reference in references_in(definition)):
            raise BadOverride(
                f"{escape_pointer((key, name))} refers to something outside of {key}; copy it there"
            )
    _compile_whole(checked, key)
    return Override(revision, checked, origin, hashlib.sha256(document_bytes).hexdigest())


def _check_digest(document_bytes: bytes, sha256: str | None) -> None:
    if sha256 is None:
        return
    if not _SHA256.fullmatch(sha256):
        raise BadOverride("the expected sha256 is not 64 hexadecimal digits")
    actual = hashlib.sha256(document_bytes).hexdigest()
    if actual != sha256.lower():
        raise BadOverride(f"its sha256 is {actual}, not the expected one")


def _as_schema(document: JSON) -> JSONObject:
    if not isinstance(document, dict):
        raise BadOverride("it is not a JSON Schema: it must be an object")
    if document.get("$schema", DIALECT) not in _DIALECTS:
        raise BadOverride(f"its $schema must be {DIALECT} or {DRAFT_07}")
    if not isinstance(document.get(key_of(document)), dict):
        raise BadOverride("it is not a JSON Schema of MCP: it has no definitions under $defs or definitions")
    return document


def _compile_whole(document: JSONObject, key: str) -> None:
    definitions = cast("JSONObject", document[key])
    every: list[JSON] = [{"$ref": "#" + escape_pointer((key, name))} for name in definitions]
    whole: JSONObject = {"$schema": dialect_of(document), "anyOf": every, key: definitions}
    try:
        compile_schema(whole, fingerprint(whole), dialect_of(document))
    except BadSchema as error:
        findings = [f"{finding.pointer or '(root)'}: {finding.message}" for finding in error.findings]
        raise BadOverride(f"it does not compile: {_listed(findings)}") from None


def _listed(items: list[str]) -> str:
    shown = ", ".join(items[:_SHOWN])
    return shown if len(items) <= _SHOWN else f"{shown} and {len(items) - _SHOWN} more"
