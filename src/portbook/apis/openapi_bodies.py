"""Reads the request body of an OpenAPI operation: its content type, and its arguments."""

from __future__ import annotations

from typing import Final, NamedTuple

from portbook.apis.openapi_arguments import Arguments, NotSupported
from portbook.apis.openapi_documents import DocumentNode, Documents
from portbook.apis.openapi_schemas import SchemaWriter
from portbook.tools.media_types import is_json, plain_type

__all__ = ["ImportedBody", "read_body"]

# A body schema with only these keywords can be split into arguments without losing a rule.
_PLAIN: Final = frozenset({"type", "properties", "required", "additionalProperties", "title", "description"})


class ImportedBody(NamedTuple):
    """The body of an operation, as its document describes it."""

    content_type: str | None = None
    """None where there is no body."""
    argument: str | None = None
    """The argument that is the whole body, if there is one."""
    is_open: bool = False
    """Whether it allows members that are not described."""


def read_body(
    documents: Documents, operation: DocumentNode, arguments: Arguments, schemas: SchemaWriter
) -> ImportedBody:
    """Return the body of an operation, and add its `arguments`.

    Raises `NotSupported` where a required body cannot be sent.
    """
    body = documents.resolved(operation.at("requestBody"))
    if not isinstance(body.value, dict):
        return ImportedBody()
    content = body.at("content").members
    is_required = body.at("required").value is True
    media = next((name for name in content if is_json(name)), None)
    if media is None:
        if is_required:
            raise NotSupported("its body is not JSON")
        return ImportedBody()
    node = content[media].at("schema")
    plain = _plain(documents, node, arguments)
    if plain is not None:
        written = schemas.write(plain)
        arguments.properties.update(written.get("properties", {}))
        # Many documents require members of the body without requiring the body.
        arguments.required += written.get("required", [])
        is_open = written.get("additionalProperties", True) is not False
        return ImportedBody(plain_type(media), None, is_open=is_open)
    schema = True if node.value is None else schemas.write(node)
    argument = arguments.add("body", "argument", schema, is_required=is_required)
    return ImportedBody(plain_type(media), argument)


def _plain(documents: Documents, node: DocumentNode, arguments: Arguments) -> DocumentNode | None:
    """Return the schema of a body whose members can become arguments, or None."""
    found = documents.resolved(node)
    keys = {key for key in found.members if not key.startswith("x-") and key != "example"}
    members = found.at("properties").members
    is_plain = (
        bool(members)
        and keys <= _PLAIN
        and found.text("type") == "object"
        and not isinstance(found.at("additionalProperties").value, dict)
        and members.keys().isdisjoint(arguments.properties)
    )
    return found if is_plain else None
