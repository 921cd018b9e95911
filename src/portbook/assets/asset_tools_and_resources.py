"""The asset tools, and schemas and examples as MCP resources.

- `asset_tools`: the library, the validator, the differ and the backend as tools of the catalog. All except
  `populate_backend` are quick and use memory only, so they run inline. They give documents that the operator
  or the caller put there, so these are never altered. `populate_backend` is an operation of an HTTP API, the
  backend's, whose answers are redacted as usual.
- `asset_resources`: each schema and each example has a URI, built from the name of a schema, or from the
  path of an example below its folder. A resource is the document as it was when the library was read; it is
  never altered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, cast
from urllib.parse import quote

from portbook.assets.json_patch import diff_assets
from portbook.assets.library import Library
from portbook.assets.populate_backend import Backend, populating
from portbook.assets.validate_asset import is_allowed, validate_asset, validate_many
from portbook.canonical import json_bytes
from portbook.errors import Reason, Refused
from portbook.model import JSON, JSONObject
from portbook.schema.json_schema_drafts import DIALECT
from portbook.tools.asset_tool_schemas import INPUTS, OUTPUTS
from portbook.tools.spec import Effect, SecretUse, ToolSpec

__all__ = ["asset_resources", "asset_tools"]

_NOT_FOUND: Final[JSONObject] = {"ok": False, "reason": "not_found"}

# The values of `component` that mean every component in list_examples.
_ALL: Final = (None, "", "all", "*")

_DESCRIPTIONS: Final = {
    "list_schemas": "List the schemas that assets can be checked by.",
    "get_schema": "Get one schema by its name.",
    "list_examples": "List the examples, of one component or of all.",
    "get_example": "Get one example, and whether its schema allows it.",
    "validate_asset": "Check an asset by a schema; every error has its JSON Pointer.",
    "validate_many": "Check many assets by one schema.",
    "diff_assets": "Get the JSON Patch that leads from one asset to another.",
    "populate_backend": "Send an asset to the backend, once it is known to be valid.",
}


def asset_tools(
    library: Library, backend: Backend | None, max_batch: int, secrets: SecretUse = "refuse"
) -> list[ToolSpec]:
    """Return the tools over one library; without a backend, populating is unsupported.

    `secrets` says what happens to a document that holds one.
    """
    functions: dict[str, Callable[[JSONObject], JSONObject]] = {
        "list_schemas": lambda given: _list_schemas(library),
        "get_schema": lambda given: _get_schema(library, _text(given, "name")),
        "list_examples": lambda given: _list_examples(library, given.get("component")),
        "get_example": lambda given: _get_example(library, _text(given, "path")),
        "validate_asset": lambda given: validate_asset(library, given["asset"], _text(given, "schema")),
        "validate_many": lambda given: validate_many(
            library, cast("list[JSON]", given["assets"]), _text(given, "schema"), max_batch
        ),
        "diff_assets": lambda given: diff_assets(given["base"], given["new"]),
    }
    reading = [_spec(name, Effect.READ, function, secrets) for name, function in functions.items()]
    return [*reading, _populate(library, backend)]


def _spec(
    name: str, effect: Effect, function: Callable[[JSONObject], JSONObject], secrets: SecretUse
) -> ToolSpec:
    return ToolSpec(
        name=name,
        description=_DESCRIPTIONS[name],
        input_schema=INPUTS[name],
        output_schema=OUTPUTS[name],
        effect=effect,
        function=function,
        is_inline=True,
        secrets=secrets,
    )


def _text(given: JSONObject, name: str) -> str:
    return cast("str", given[name])


def _list_schemas(library: Library) -> JSONObject:
    listed: list[JSON] = [
        {"name": schema.name, "version": schema.version, "path": schema.path} for schema in library.schemas
    ]
    return {"ok": True, "schemas": listed}


def _get_schema(library: Library, name: str) -> JSONObject:
    schema = library.named(name)
    if schema is None:
        return _NOT_FOUND
    return {"ok": True, "schema": schema.document, "version": schema.version}


def _list_examples(library: Library, component: JSON) -> JSONObject:
    listed: list[JSON] = [
        {"component": example.component, "path": example.path}
        for example in library.examples
        if component in _ALL or example.component == component
    ]
    return {"ok": True, "examples": listed}


def _get_example(library: Library, path: str) -> JSONObject:
    example = library.example(path)
    if example is None:
        return _NOT_FOUND
    return {
        "ok": True,
        "example": example.document,
        "schema": example.schema,
        "validated": is_allowed(library, example.document, example.schema),
    }


def _populate(library: Library, backend: Backend | None) -> ToolSpec:
    disabled = _spec("populate_backend", Effect.WRITE, _fail_disabled, "redact")
    if backend is None:
        return replace(disabled, refuse=_refuse_disabled)
    operation = populating(library, backend)
    return replace(disabled, function=None, is_inline=False, operation=operation)


def _refuse_disabled(_: JSONObject) -> Refused:
    return Refused(Reason.BACKEND_DISABLED)


def _fail_disabled(given: JSONObject) -> JSONObject:
    raise _refuse_disabled(given)


# Resources.

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
            _member_text(schema.document, "description") or f"The JSON Schema of {schema.name} assets.",
            _member_text(schema.document, "title"),
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


def _member_text(document: JSONObject, member: str) -> str:
    value = document.get(member)
    return value if isinstance(value, str) else ""
