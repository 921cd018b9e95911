"""`SchemaStore`: the official MCP schemas, embedded by the build; the operator can override one.

A revision is parsed and a definition compiled on first use, each once. Embedded bytes are compared with their
pin before use. Reads only the package's own data files; an override is passed in, already fetched and
validated.
"""

from __future__ import annotations

import re
from binascii import crc32
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import unquote

import orjson

from portbook.canonical import fingerprint
from portbook.model import JSON, JSONObject
from portbook.schema.engine import BadSchema, Validator, compile_official, compile_schema
from portbook.schema.json_schema_drafts import dialect_of
from portbook.schema.official_schema_digests import PINS
from portbook.text.named_tuple import NamedTuple
from portbook.text.sha256 import sha256

__all__ = [
    "NEWEST",
    "OVERLAYS",
    "REVISIONS",
    "BrokenSchema",
    "Overlay",
    "Override",
    "SchemaStore",
    "closure",
    "key_of",
    "references_in",
]

REVISIONS: Final = tuple(sorted(PINS))
NEWEST: Final = REVISIONS[-1]

_OFFICIAL: Final = Path(__file__).resolve().parent / "official"

# The keys under which the two dialects keep their definitions.
_KEYS: Final = ("$defs", "definitions")


class BrokenSchema(Exception):
    """An embedded schema that is missing, or differs from its pin."""


class Overlay(NamedTuple):
    """A correction of an embedded schema, at a path where it differs from the specification."""

    path: tuple[str | int, ...]
    official: JSON
    ours: JSON


_GENERATED: Final[JSON] = ["string", "integer", "boolean"]
_CONTENT: Final = ("ElicitResult", "properties", "content", "additionalProperties")

# The TypeScript sources, which are normative, have `number` where the generated schemas have only integers.
OVERLAYS: Final[dict[str, tuple[Overlay, ...]]] = {
    "2025-06-18": (Overlay(("definitions", *_CONTENT, "type"), _GENERATED, ["string", "number", "boolean"]),),
    "2025-11-25": (
        Overlay(("$defs", *_CONTENT, "anyOf", 1, "type"), _GENERATED, ["string", "number", "boolean"]),
    ),
    "2026-07-28": (
        Overlay(("$defs", *_CONTENT, "anyOf", 1, "type"), _GENERATED, ["string", "number", "boolean"]),
        # Here the sources have string | number | boolean | null | JSONObject | JSONArray.
        Overlay(
            ("$defs", "JSONValue", "anyOf", 2, "type"),
            _GENERATED,
            ["string", "integer", "boolean", "number", "null"],
        ),
    ),
}


class Override(NamedTuple):
    """A schema that replaces the embedded one of a revision. Used unchanged: no overlay is applied."""

    revision: str
    document: JSONObject
    origin: str
    """The address it was fetched from."""
    sha256: str = ""
    """The digest of its bytes, in hexadecimal."""


class SchemaStore:
    """The schemas in use, and validators of their definitions. Thread-safe."""

    def __init__(self, override: Override | None = None) -> None:
        self._override = override
        self._documents: dict[str, JSONObject] = {}
        self._validators: dict[tuple[str, str], Validator] = {}
        self.clear()

    def clear(self) -> None:
        """Drop all parsed and compiled schemas; they are made again on next use."""
        override = self._override
        self._documents = {override.revision: override.document} if override else {}
        self._validators = {}
        self._is_verified = False

    def verify(self) -> None:
        """Look whether an embedded schema is damaged, by its checksum; a second call does nothing.

        Digests are verified as schemas are read: those of all would take twenty times as long.

        Raises `BrokenSchema` for the first that differs from its pin.
        """
        if not self._is_verified:
            for revision in REVISIONS:
                data, pin = _read(revision), PINS[revision]
                if (len(data), crc32(data)) != (pin.size, pin.crc32):
                    raise _differs(revision)
            self._is_verified = True

    def document(self, revision: str) -> JSONObject:
        """Return the whole schema of `revision`; it is shared, so do not change it.

        Raises `KeyError` for an unknown revision, `BrokenSchema` where the embedded one cannot be used.
        """
        document = self._documents.get(revision)
        if document is None:
            # Two threads may parse the same schema at once; with setdefault both use the first one.
            document = self._documents.setdefault(revision, _embedded(revision))
        return document

    def definition(self, revision: str, name: str) -> Validator:
        """Return the validator of one definition, with the definitions that it refers to.

        Raises `KeyError` for an unknown revision or definition, `BrokenSchema` where the embedded schema
        cannot be used.
        """
        validator = self._validators.get((revision, name))
        if validator is None:
            validator = self._validators.setdefault((revision, name), self._compile(revision, name))
        return validator

    def definitions(self, revision: str) -> frozenset[str]:
        """Return the names of all definitions of `revision`.

        Raises as `document` does.
        """
        document = self.document(revision)
        return frozenset(cast("JSONObject", document[key_of(document)]))

    def origin(self, revision: str) -> str:
        """Return the origin of the schema of `revision`: "embedded", or the override's address."""
        return self._override.origin if self._override and self.is_overridden(revision) else "embedded"

    def sha256(self, revision: str) -> str:
        """Return the digest of the bytes of the schema of `revision`.

        Raises `KeyError` for an unknown revision.
        """
        return (
            self._override.sha256
            if self._override and self.is_overridden(revision)
            else PINS[revision].sha256
        )

    def is_overridden(self, revision: str) -> bool:
        """Return whether an override replaces the embedded schema of `revision`."""
        return self._override is not None and self._override.revision == revision

    def _compile(self, revision: str, name: str) -> Validator:
        document = self.document(revision)
        schema = closure(document, name)
        make = compile_schema if self.is_overridden(revision) else compile_official
        try:
            return make(schema, fingerprint(schema), dialect_of(document))
        except BadSchema as error:
            # Unexpected: an override was compiled as a whole before, and the embedded ones are pinned.
            raise BrokenSchema(
                f"the {revision} schema's definition {name} cannot be compiled: {error}"
            ) from None


def closure(document: JSONObject, name: str) -> JSONObject:
    """Return a schema of one definition: a reference to it, and all definitions it needs, at their paths.

    Raises `KeyError` where there is no such definition.
    """
    key = key_of(document)
    definitions = cast("JSONObject", document[key])
    reached: dict[str, JSON] = {name: definitions[name]}
    waiting: list[JSON] = [definitions[name]]
    while waiting:
        for reference in references_in(waiting.pop()):
            below = _name_in(reference, key)
            if below in definitions and below not in reached:
                reached[below] = definitions[below]
                waiting.append(definitions[below])
    pointer = name.replace("~", "~0").replace("/", "~1")
    return {"$schema": dialect_of(document), "$ref": f"#/{key}/{pointer}", key: reached}


def key_of(document: JSONObject) -> str:
    """Return the key under which `document` keeps its definitions."""
    return next((key for key in _KEYS if key in document), _KEYS[0])


def references_in(value: JSON) -> Iterator[str]:
    """Yield the value of every `$ref` in `value`."""
    waiting: list[Any] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            members = cast("JSONObject", item)
            reference = members.get("$ref")
            if isinstance(reference, str):
                yield reference
            waiting.extend(members.values())
        elif isinstance(item, list):
            waiting.extend(cast("list[Any]", item))


def _name_in(reference: str, key: str) -> str | None:
    """Return the name of the definition that a reference points into, or None."""
    found = re.match(rf"#/{re.escape(key)}/([^/]+)", reference)
    return unquote(found[1]).replace("~1", "/").replace("~0", "~") if found else None


_REMEDY: Final = "install Portbook again"


def _read(revision: str) -> bytes:
    path = _path_of(revision)
    try:
        return path.read_bytes()
    except OSError as error:
        raise BrokenSchema(
            f"{path}: the embedded schema cannot be read ({error.strerror}); {_REMEDY}"
        ) from None


def _path_of(revision: str) -> Path:
    return _OFFICIAL / f"{revision}.json"


def _differs(revision: str) -> BrokenSchema:
    return BrokenSchema(f"{_path_of(revision)}: the embedded schema differs from its pin; {_REMEDY}")


def _read_pinned(revision: str) -> bytes:
    pin, data = PINS[revision], _read(revision)
    if sha256(data).hexdigest() != pin.sha256:
        raise _differs(revision)
    return data


def _embedded(revision: str) -> JSONObject:
    # Not `parse`: pinned bytes need no strict reading, which takes twice the time and the memory.
    document = cast("JSONObject", orjson.loads(_read_pinned(revision)))
    for overlay in OVERLAYS.get(revision, ()):
        _lay(document, overlay)
    return document


def _lay(document: JSONObject, overlay: Overlay) -> None:
    place: Any = document
    for step in overlay.path[:-1]:
        place = place[step]
    place[overlay.path[-1]] = overlay.ours
