"""Keywords of a schema that are one slip away from those of JSON Schema. Pure: no I/O.

A schema may hold any keyword, and one that is unknown is never checked: a misspelt one allows everything, and
nobody is told.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from portbook.escaping import escaped
from portbook.model import JSON, JSONObject
from portbook.text.did_you_mean import did_you_mean
from portbook.wire.source_positions import locate

__all__ = ["misspelt_keywords"]

# Their value is a schema, a list of schemas, or both by the draft; a map of schemas.
_SCHEMAS: Final = frozenset(
    (
        *("not", "if", "then", "else", "allOf", "anyOf", "oneOf", "items", "prefixItems", "additionalItems"),
        *("unevaluatedItems", "contains", "contentSchema", "propertyNames"),
        *("additionalProperties", "unevaluatedProperties"),
    )
)
_MAPS: Final = frozenset(
    ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")
)
_KNOWN: Final = frozenset(
    (
        *(*_SCHEMAS, *_MAPS, "type", "const", "enum", "required", "dependentRequired"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"),
        *("minItems", "maxItems", "uniqueItems", "minContains", "maxContains"),
        *("minProperties", "maxProperties", "title", "description", "default", "examples"),
        *("deprecated", "readOnly", "writeOnly", "id", "$id", "$schema", "$ref", "$anchor", "$comment"),
        *("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary"),
        # Of OpenAPI, for whose schemas they mean something.
        *("example", "nullable", "discriminator", "xml", "externalDocs"),
    )
)
# Shorter ones are a slip away from too many words that people choose themselves.
_SHORTEST: Final = 4


def misspelt_keywords(path: str, text: str, document: JSONObject) -> list[str]:
    """Return each misspelt keyword of the schema in a file, with its place and what was meant."""
    found = dict(_found(document, ""))
    spans = locate(text, found.keys(), are_names=True)
    return [
        f"{path}:{spans[pointer].line}:{spans[pointer].column}: {escaped(pointer)}: "
        f"JSON Schema has no such keyword, and it is not checked; {did_you_mean(meant, (meant,))}"
        for pointer, meant in found.items()
        if pointer in spans
    ]


def _found(schema: JSON, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(schema, list):
        for number, each in enumerate(schema):
            yield from _found(each, f"{pointer}/{number}")
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        below = f"{pointer}/{keyword.replace('~', '~0').replace('/', '~1')}"
        if keyword in _SCHEMAS:
            yield from _found(value, below)
        elif keyword in _MAPS and isinstance(value, dict):
            for name, each in value.items():
                yield from _found(each, f"{below}/{name.replace('~', '~0').replace('/', '~1')}")
        elif keyword not in _KNOWN and (meant := _meant(keyword)) is not None:
            yield below, meant


def _meant(keyword: str) -> str | None:
    near = (known for known in sorted(_KNOWN) if len(known) >= _SHORTEST and _is_one_slip(keyword, known))
    return next(near, None)


def _is_one_slip(given: str, known: str) -> bool:
    """Return whether two words differ in one letter, in the order of two, or in upper and lower case."""
    given, known = given.lower(), known.lower()
    start = 0
    while start < min(len(given), len(known)) and given[start] == known[start]:
        start += 1
    a, b = given[start:], known[start:]
    return a == b or a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
