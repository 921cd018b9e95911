"""The input and output schemas of the asset tools. Data only.

Unknown members in arguments are allowed and ignored, as clients expect; results have none.
"""

from __future__ import annotations

from typing import Final

from portbook.model import JSON, JSONObject

__all__ = ["INPUTS", "OUTPUTS"]

_TEXT: Final[JSONObject] = {"type": "string"}
_FLAG: Final[JSONObject] = {"type": "boolean"}
_ANYTHING: Final[JSONObject] = {}

_ERRORS: Final[JSONObject] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {"path": _TEXT, "msg": _TEXT},
        "required": ["path", "msg"],
        "additionalProperties": False,
    },
}


def _object(properties: JSONObject, *required: str, **more: JSON) -> JSONObject:
    return {"type": "object", "properties": properties, "required": list(required), **more}


def _result(properties: JSONObject) -> JSONObject:
    return _object({"ok": _FLAG, **properties}, "ok", additionalProperties=False)


def _described(schema: JSONObject, description: str) -> JSONObject:
    return {**schema, "description": description}


def _list_of(*names: str) -> JSONObject:
    properties: JSONObject = dict.fromkeys(names, _TEXT)
    return {"type": "array", "items": _object(properties, *names, additionalProperties=False)}


_ASSET: Final = _described(_ANYTHING, "The asset, any JSON value.")
_SCHEMA: Final = _described(_TEXT, "The name of a schema, as list_schemas has it.")
_REASON: Final[JSONObject] = {
    "enum": ["not_found", "validation_failed", "backend_error", "unsupported"],
}
_VALIDATED: Final[JSONObject] = {"errors": _ERRORS, "reason": _REASON}

INPUTS: Final[dict[str, JSONObject]] = {
    "list_schemas": _object({}),
    "get_schema": _object({"name": _SCHEMA}, "name"),
    "list_examples": _object(
        {
            "component": {
                "type": ["string", "null"],
                "default": "all",
                "description": "What they are examples of; all for every one.",
            }
        }
    ),
    "get_example": _object(
        {"path": _described(_TEXT, "The path of an example, as list_examples has it.")}, "path"
    ),
    "validate_asset": _object({"asset": _ASSET, "schema": _SCHEMA}, "asset", "schema"),
    "validate_many": _object(
        {"assets": {"type": "array", "description": "The assets."}, "schema": _SCHEMA}, "assets", "schema"
    ),
    "diff_assets": _object(
        {
            "base": _described(_ANYTHING, "What the patch starts from."),
            "new": _described(_ANYTHING, "What it leads to."),
        },
        "base",
        "new",
    ),
    "populate_backend": _object(
        {
            "asset": _ASSET,
            "validate_first": {
                "type": "boolean",
                "default": True,
                "description": "Whether to check the asset first; one that is not valid is never sent.",
            },
        },
        "asset",
    ),
}

OUTPUTS: Final[dict[str, JSONObject]] = {
    "list_schemas": _result({"schemas": _list_of("name", "version", "path")}),
    "get_schema": _result({"schema": {"type": "object"}, "version": _TEXT, "reason": _REASON}),
    "list_examples": _result({"examples": _list_of("component", "path")}),
    "get_example": _result(
        {"example": {"type": "object"}, "schema": _TEXT, "validated": _FLAG, "reason": _REASON}
    ),
    "validate_asset": _result(_VALIDATED),
    "validate_many": _result(
        {
            "results": {"type": "array", "items": _result(_VALIDATED)},
            "reason": _REASON,
            "detail": _TEXT,
            "limit": {"type": "integer"},
        }
    ),
    "diff_assets": _result(
        {
            "patch": {
                "type": "array",
                "items": _object(
                    {"op": {"enum": ["add", "remove", "replace"]}, "path": _TEXT, "value": _ANYTHING},
                    "op",
                    "path",
                    additionalProperties=False,
                ),
            }
        }
    ),
    "populate_backend": _result(
        {
            "asset_id": _TEXT,
            "backend_url": _TEXT,
            "reason": _REASON,
            "errors": _ERRORS,
            "status": {"type": "integer"},
            "detail": _TEXT,
        }
    ),
}
