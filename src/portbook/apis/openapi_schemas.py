"""Converts schemas of an OpenAPI document to self-contained JSON Schema 2020-12.

A reference becomes one into `$defs`, which holds each target once, so recursive schemas work and no reference
leaves the schema. Forms of OpenAPI 3.0 (`nullable`, a boolean `exclusiveMinimum`) are rewritten.
Documentation (`example`, `xml`, `x-…`) is left out.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast

from portbook.apis.one_sided_properties import Side, leave_out_other_side
from portbook.apis.openapi_documents import DocumentNode, Documents

__all__ = ["SchemaWriter"]

_ONE: Final = frozenset(
    {
        "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames",
        "then", "unevaluatedItems", "unevaluatedProperties",
    }
)  # fmt: skip
_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
_MAPS: Final = frozenset({"dependentSchemas", "patternProperties", "properties"})
_LEFT_OUT: Final = frozenset(
    {
        "$anchor", "$comment", "$defs", "$id", "$schema", "definitions", "discriminator", "example",
        "examples", "externalDocs", "nullable", "xml",
    }
)  # fmt: skip
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")


class SchemaWriter:
    """Converts the input or output schemas of one tool, and collects their shared definitions."""

    def __init__(self, documents: Documents, version: str, side: Side) -> None:
        """Use the OpenAPI `version`, `3.0` or `3.1`; input leaves out read-only properties."""
        self._documents = documents
        self._is_old = version == "3.0"
        self._side: Side = side
        self._names: dict[tuple[str, str], str] = {}
        self._defs: dict[str, Any] = {}
        self._pending: list[tuple[str, DocumentNode]] = []

    def write(self, node: DocumentNode) -> Any:
        """Return the schema at `node`; `with_definitions` adds the targets of its references.

        Raises `BadOpenAPI` for a reference without a target.
        """
        value = node.value
        if isinstance(value, bool):
            return value
        if not isinstance(value, dict):
            raise node.bad("must be a schema")
        reference = node.text("$ref")
        if reference is not None:
            referring = {"$ref": f"#/$defs/{self._name_of(self._documents.target(node, reference))}"}
            # In OpenAPI 3.0, keywords beside a reference are ignored.
            return referring if self._is_old else {**self._keywords(node), **referring}
        return self._with_null(node, self._keywords(node))

    def with_definitions(self, schema: Any) -> Any:
        """Return `schema` with all definitions that it refers to.

        Raises `BadOpenAPI` for a reference without a target.
        """
        while self._pending:
            name, target = self._pending.pop()
            self._defs[name] = self.write(target)
        if not self._defs or not isinstance(schema, dict):
            return schema
        return {**cast("dict[str, Any]", schema), "$defs": self._defs}

    def _name_of(self, target: DocumentNode) -> str:
        key = (target.file, target.pointer)
        if key not in self._names:
            wanted = _UNSAFE.sub("_", target.pointer.rpartition("/")[2] or target.file)
            name, count = wanted, 1
            while name in self._defs:
                count += 1
                name = f"{wanted}_{count}"
            self._names[key] = name
            # Reserved now and written later: it may refer to itself, or start a long chain.
            self._defs[name] = True
            self._pending.append((name, target))
        return self._names[key]

    def _keywords(self, node: DocumentNode) -> dict[str, Any]:
        written: dict[str, Any] = {}
        for key, child in node.members.items():
            if key == "$ref" or key in _LEFT_OUT or key.startswith("x-"):
                continue
            if key in _ONE:
                written[key] = self.write(child)
            elif key in _LISTS:
                written[key] = [self.write(item) for item in child.items]
            elif key in _MAPS:
                written[key] = {name: self.write(part) for name, part in child.members.items()}
            else:
                written[key] = child.value
        leave_out_other_side(self._documents, node, written, self._side)
        if self._is_old:
            _renew_bounds(written)
        return written

    def _with_null(self, node: DocumentNode, written: dict[str, Any]) -> dict[str, Any]:
        if not self._is_old or node.at("nullable").value is not True:
            return written
        kind = written.get("type")
        if not isinstance(kind, str):
            return {"anyOf": [written, {"type": "null"}]}
        written["type"] = [kind, "null"]
        if isinstance(written.get("enum"), list) and None not in written["enum"]:
            written["enum"] = [*written["enum"], None]
        return written


def _renew_bounds(written: dict[str, Any]) -> None:
    """Rewrite the boolean `exclusiveMinimum` and `exclusiveMaximum` of OpenAPI 3.0 as numbers."""
    for exclusive, inclusive in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        flag = written.get(exclusive)
        if isinstance(flag, bool):
            del written[exclusive]
            if flag and inclusive in written:
                written[exclusive] = written.pop(inclusive)
