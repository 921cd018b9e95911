"""The library as MCP resources: each schema and each example has a URI. Pure: no I/O.

A resource is the document as it was when the library was read; it is never altered. Its URI is built from the
name of a schema, or from the path of an example below its folder.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from portbook.assets.library import Library
from portbook.canonical import json_bytes
from portbook.model import JSON, JSONObject
from portbook.schema.json_schema_drafts import DIALECT
from portbook.tools.spec import Effect, SecretUse, ToolSpec

__all__ = ["asset_resources"]

# The same as for lists: the documents change only with a restart.
_CACHE_MS: Final = 60_000

_NOTHING: Final[JSONObject] = {
    "$schema": DIALECT,
    "type": "object",
    "properties": {},
    "additionalProperties": False,
}


def asset_resources(library: Library, secrets: SecretUse = "refuse") -> list[ToolSpec]:
    """Return a resource for every schema and every example of a library.

    `secrets` says what happens to a document that holds one.
    """
    schemas = [
        _resource(
            f"portbook://schemas/{quote(schema.name)}",
            schema.name,
            "application/schema+json",
            schema.document,
            _text(schema.document, "description") or f"The JSON Schema of {schema.name} assets.",
            _text(schema.document, "title"),
            secrets=secrets,
        )
        for schema in library.schemas
    ]
    examples = [
        _resource(
            f"portbook://examples/{quote(example.below)}",
            example.below,
            "application/json",
            example.document,
            f"An example of the schema {example.schema}.",
            secrets=secrets,
        )
        for example in library.examples
    ]
    return [*schemas, *examples]


def _resource(
    uri: str,
    name: str,
    mime_type: str,
    document: JSONObject,
    description: str,
    title: str = "",
    *,
    secrets: SecretUse,
) -> ToolSpec:
    shown: JSONObject = {"name": name, "mimeType": mime_type}
    if title:
        shown["title"] = title

    def read(_: JSONObject) -> list[JSON]:
        return [{"mimeType": mime_type, "text": json_bytes(document).decode()}]

    return ToolSpec(
        name=uri,
        description=description,
        input_schema=_NOTHING,
        output_schema=True,
        effect=Effect.READ,
        function=read,
        is_inline=True,
        kind="resource",
        shown=shown,
        cache_ms=_CACHE_MS,
        secrets=secrets,
    )


def _text(document: JSONObject, member: str) -> str:
    value = document.get(member)
    return value if isinstance(value, str) else ""
