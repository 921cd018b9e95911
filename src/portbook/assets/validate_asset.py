"""Validates assets by the schemas of the library, with results of the asset contract. Pure: no I/O.

Paths are absolute JSON Pointers; that of the root is empty. Errors are ordered by path, then by message, and
no message holds a value of the asset.
"""

from __future__ import annotations

from typing import Final, cast

from portbook.assets.library import Library, LibrarySchema
from portbook.assets.schema_choice import SCHEMA_REFERENCE
from portbook.assets.schema_files import ALIASES
from portbook.canonical import json_bytes
from portbook.errors import Finding
from portbook.model import JSON, JSONObject

__all__ = [
    "UNKNOWN_SCHEMA",
    "check",
    "explain",
    "failed",
    "is_allowed",
    "validate_asset",
    "validate_many",
    "without_reference",
]

# An asset is its sender's own document, so its explanation may cost more than that of an argument: a second
# at worst.
_EFFORT: Final = 8

# A longer list would not help, and would let one asset cause a very large answer, because every path repeats
# the names above it. One error is always reported; its path is no longer than the asset.
_MAX_ERRORS: Final = 1_000
_MAX_BYTES: Final = 256 * 1024

# The total length of the paths of an asset's values up to which all its errors are collected.
_MAX_PATHS: Final = 16 * 1024 * 1024

UNKNOWN_SCHEMA: Final = Finding("/schema", "unknown schema", "schema", "")


def validate_asset(library: Library, asset: JSON, name: str) -> JSONObject:
    """Return the contract's result for one asset; for an alias, its `$schemaRef` is ignored."""
    findings = check(library, asset, name)
    return failed(findings) if findings else {"ok": True, "errors": []}


def validate_many(library: Library, assets: list[JSON], name: str, limit: int) -> JSONObject:
    """Return the results for many assets, in their order, or the refusal of too many."""
    if len(assets) > limit:
        return {"ok": False, "reason": "unsupported", "detail": "batch_too_large", "limit": limit}
    results: list[JSON] = []
    room = _MAX_BYTES
    for asset in assets:
        findings = check(library, asset, name)
        errors = _errors_of(findings, room)
        room -= sum(map(_size, errors))
        # Unlike in validate_asset, a valid asset has no member for errors here, as clients expect.
        results.append(_failed(errors) if findings else {"ok": True})
    return {"ok": all(cast("JSONObject", result)["ok"] for result in results), "results": results}


def check(library: Library, asset: JSON, name: str) -> tuple[Finding, ...]:
    """Return the violations in an asset by the schema of this name; empty where it is valid."""
    schema = library.schema(name)
    if schema is None:
        return (UNKNOWN_SCHEMA,)
    if name in ALIASES:
        asset = without_reference(asset)
    return () if schema.validator.allows(asset) else explain(schema, asset)


def explain(schema: LibrarySchema, asset: JSON, effort: int = _EFFORT) -> tuple[Finding, ...]:
    """Return the violations in an invalid asset; only the first where all paths would be too long."""
    if _takes_more(asset, _MAX_PATHS):
        return schema.validator.first_finding_of_own(asset)
    return schema.validator.findings_of_own(asset, effort)


def _takes_more(asset: JSON, limit: int) -> bool:
    """Return whether the paths of all values in `asset` have more than `limit` characters in total."""
    waiting: list[tuple[JSON, int]] = [(asset, 0)]
    while waiting:
        value, length = waiting.pop()
        limit -= length
        if limit < 0:
            return True
        if isinstance(value, dict):
            waiting.extend((below, length + len(name) + 1) for name, below in value.items())
        elif isinstance(value, list):
            waiting.extend((below, length + 8) for below in value)
    return False


def is_allowed(library: Library, asset: JSON, name: str) -> bool:
    """Return whether an example or a file is valid; its `$schemaRef` is ignored."""
    schema = library.schema(name)
    return schema is not None and schema.validator.allows(without_reference(asset))


def without_reference(asset: JSON) -> JSON:
    """Return an asset without its `$schemaRef`."""
    if isinstance(asset, dict) and SCHEMA_REFERENCE in asset:
        return {name: value for name, value in asset.items() if name != SCHEMA_REFERENCE}
    return asset


def failed(findings: tuple[Finding, ...]) -> JSONObject:
    """Return the contract's result for an asset with these violations."""
    return _failed(_errors_of(findings, _MAX_BYTES))


def bounded(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Return the first findings by path and message, within the bounds of a result."""
    by_error = {(finding.pointer, finding.message): finding for finding in findings}
    return tuple(by_error[error] for error in _errors_of(findings, _MAX_BYTES))


def _errors_of(findings: tuple[Finding, ...], room: int) -> list[tuple[str, str]]:
    """Return the first errors by path and message: at least one, at most `room` bytes."""
    errors: list[tuple[str, str]] = []
    for error in sorted({(finding.pointer, finding.message) for finding in findings})[:_MAX_ERRORS]:
        room -= _size(error)
        if errors and room < 0:
            break
        errors.append(error)
    return errors


def _size(error: tuple[str, str]) -> int:
    return sum(len(json_bytes(part)) for part in error)


def _failed(found: list[tuple[str, str]]) -> JSONObject:
    errors: list[JSON] = [{"path": path, "msg": message} for path, message in found]
    return {"ok": False, "reason": "validation_failed", "errors": errors}
