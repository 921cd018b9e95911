"""Reads the request body of an OpenAPI operation: its content type, its arguments, its parts.

A body of several content types is sent in the first of these that it offers:

1. JSON, which keeps every value as it is: `application/json`, then others such as `…+json`, then any type.
2. `multipart/form-data` if it has a file, which no other form can hold.
3. `application/x-www-form-urlencoded`.
4. `multipart/form-data` without files.
5. Text: `text/plain`, then other texts, XML among them.
6. Binary data: `application/octet-stream`, then others.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, cast

from portbook.apis.bodies.file_arguments import file_schema
from portbook.apis.openapi.document_files import DocumentNode, Documents
from portbook.apis.openapi.form_parts import members_of, read_parts
from portbook.apis.openapi.imported_arguments import Arguments, NotSupported
from portbook.apis.openapi.schemas import SchemaWriter
from portbook.tools.media_types import (
    BINARY_TYPE,
    JSON_TYPE,
    MULTIPART_TYPE,
    TEXT_TYPE,
    MediaKind,
    essence,
    is_media_type,
    kind_of,
    plain_type,
)
from portbook.tools.operation import BodyPart

__all__ = ["ImportedBody", "read_body"]

# A body schema with only these keywords can be split into arguments without losing a rule.
_PLAIN: Final = frozenset({"type", "properties", "required", "additionalProperties", "title", "description"})
_RANKS: Final = {MediaKind.JSON: 1, MediaKind.FORM: 3, MediaKind.MULTIPART: 4, MediaKind.TEXT: 5}
_LAST_RANK: Final = 6
_FIRST_OF_KIND: Final = frozenset({JSON_TYPE, TEXT_TYPE, BINARY_TYPE})
_FORMS: Final = frozenset({MediaKind.FORM, MediaKind.MULTIPART})


class ImportedBody(NamedTuple):
    """The body of an operation, as its document describes it."""

    content_type: str | None = None
    """None where there is no body."""
    argument: str | None = None
    """The argument that is the whole body, if there is one."""
    is_open: bool = False
    """Whether it allows members that are not described."""
    parts: tuple[BodyPart, ...] = ()
    """The fields of a form."""


class _BodyOffer(NamedTuple):
    """One content type of a body, and how it would be sent."""

    content_type: str
    is_any: bool
    """Whether the document has a wildcard there."""
    node: DocumentNode
    kind: MediaKind
    parts: tuple[BodyPart, ...]

    @property
    def rank(self) -> tuple[int, bool, bool]:
        """Return its place in the order that the module's docstring gives."""
        has_file = self.kind is MediaKind.MULTIPART and any(part.is_binary for part in self.parts)
        place = 2 if has_file else _RANKS.get(self.kind, _LAST_RANK)
        return place, self.is_any, self.content_type not in _FIRST_OF_KIND


def read_body(
    documents: Documents, operation: DocumentNode, arguments: Arguments, schemas: SchemaWriter
) -> ImportedBody:
    """Return the body of an operation, and add its `arguments`.

    Raises `NotSupported` where no content type that it offers can be sent.
    """
    body = documents.resolved(operation.at("requestBody"))
    content = body.at("content").members
    if not content:
        return ImportedBody()
    offers = [_offer(documents, media, node) for media, node in content.items()]
    sendable = [offer for offer in offers if offer is not None]
    if not sendable:
        raise NotSupported("no content type of its body can be sent")
    offer = min(sendable, key=lambda each: each.rank)
    is_required = body.at("required").value is True
    if not is_required and _is_empty_form(documents, offer):
        return ImportedBody()
    return _read_offer(documents, offer, arguments, schemas, is_required=is_required)


def _offer(documents: Documents, media: str, node: DocumentNode) -> _BodyOffer | None:
    """Return a content type as an offer, or None where it cannot be sent."""
    content_type = plain_type(media)
    kind = kind_of(content_type)
    is_other_multipart = kind is MediaKind.MULTIPART and content_type != MULTIPART_TYPE
    if not is_media_type(content_type) or is_other_multipart:
        return None
    parts = read_parts(documents, node, is_multipart=kind is MediaKind.MULTIPART) if kind in _FORMS else ()
    return _BodyOffer(content_type, essence(media).endswith("*"), node, kind, parts)


def _is_empty_form(documents: Documents, offer: _BodyOffer) -> bool:
    """Return whether a body is a form without fields: some generators write one for every operation."""
    schema = documents.resolved(offer.node.at("schema"))
    is_closed = not schema.at("additionalProperties").value
    return offer.kind in _FORMS and bool(schema.members) and not offer.parts and is_closed


def _read_offer(
    documents: Documents,
    offer: _BodyOffer,
    arguments: Arguments,
    schemas: SchemaWriter,
    *,
    is_required: bool,
) -> ImportedBody:
    node = offer.node.at("schema")
    is_object = offer.kind is MediaKind.JSON or offer.kind in _FORMS
    plain = _plain(documents, node, arguments) if is_object else None
    if plain is not None:
        written = schemas.write(plain)
        properties = cast("dict[str, Any]", written.get("properties", {}))
        _describe_files(properties, offer.parts, arguments)
        arguments.properties.update(properties)
        arguments.names = written.get("propertyNames", True)
        # Many documents require members of the body without requiring the body.
        arguments.required += [
            name for name in dict.fromkeys(written.get("required", [])) if name not in arguments.required
        ]
        is_open = written.get("additionalProperties", True) is not False
        return ImportedBody(offer.content_type, None, is_open, offer.parts)
    schema = _whole_schema(documents, offer, arguments, schemas)
    argument = arguments.add("body", "argument", schema, is_required=is_required)
    return ImportedBody(offer.content_type, argument, parts=offer.parts)


def _whole_schema(
    documents: Documents, offer: _BodyOffer, arguments: Arguments, schemas: SchemaWriter
) -> Any:
    """Return the schema of a body that is one argument."""
    node = offer.node.at("schema")
    found = documents.resolved(node)
    if offer.kind is MediaKind.BINARY:
        words = found.text("description")
        return file_schema(words, takes_paths=arguments.rules.takes_paths, has_name=False)
    if offer.kind is MediaKind.TEXT and (not found.members or _is_structure(documents, found)):
        return {"type": "string", "description": f"The body, as text of the type {offer.content_type}."}
    if node.value is None:
        return {"type": "object"} if offer.kind in _FORMS else True
    return schemas.write(node)


def _is_structure(documents: Documents, schema: DocumentNode) -> bool:
    """Return whether a schema describes an object or a list: of a text, the caller writes it as such."""
    return schema.text("type") in ("object", "array") or bool(members_of(documents, schema))


def _describe_files(properties: dict[str, Any], parts: tuple[BodyPart, ...], arguments: Arguments) -> None:
    for part in parts:
        schema = properties.get(part.name)
        if not part.is_binary or not isinstance(schema, dict):
            continue
        given = cast("dict[str, Any]", schema)
        file = file_schema(given.get("description"), takes_paths=arguments.rules.takes_paths, has_name=True)
        is_list = given.get("type") == "array"
        properties[part.name] = {**given, "items": file} if is_list else file


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
