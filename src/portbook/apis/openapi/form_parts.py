"""Reads the fields of a form in OpenAPI: their styles, content types and files."""

from __future__ import annotations

from typing import Final

from portbook.apis.openapi.document_files import DocumentNode, Documents
from portbook.apis.openapi.parameters import style_of
from portbook.tools.media_types import MediaKind, is_json, is_media_type, kind_of, plain_type
from portbook.tools.operation import BodyPart, ParameterPlace, Style

__all__ = ["members_of", "read_parts"]

_COMBINED: Final = ("allOf", "anyOf", "oneOf")
# How deep schemas are combined; a schema that combines itself ends here, too.
_MAX_DEPTH: Final = 8
_STYLED: Final = ("style", "explode", "allowReserved")


def read_parts(documents: Documents, media: DocumentNode, *, is_multipart: bool) -> tuple[BodyPart, ...]:
    """Return the fields of the form that a media type object describes.

    Raises `NotSupported` where a field has a style that forms do not have.
    """
    encoding = media.at("encoding")
    return tuple(
        _part(documents, name, schema, encoding.at(name), is_multipart=is_multipart)
        for name, schema in members_of(documents, media.at("schema")).items()
    )


def members_of(documents: Documents, schema: DocumentNode) -> dict[str, DocumentNode]:
    """Return the properties of a schema, and of the schemas that it combines."""
    return _members(documents, schema, _MAX_DEPTH, set())


def _members(
    documents: Documents, schema: DocumentNode, depth: int, seen: set[tuple[str, str]]
) -> dict[str, DocumentNode]:
    found = documents.resolved(schema)
    if (found.file, found.pointer) in seen:  # each schema once: references may fan out
        return {}
    seen.add((found.file, found.pointer))
    members: dict[str, DocumentNode] = {}
    if depth:
        for keyword in _COMBINED:
            for inner in found.at(keyword).items:
                members |= _members(documents, inner, depth - 1, seen)
    return members | found.at("properties").members


def _part(
    documents: Documents, name: str, schema: DocumentNode, encoding: DocumentNode, *, is_multipart: bool
) -> BodyPart:
    """Return how a field is written.

    1. With a style, the style decides, and a content type is ignored (OpenAPI 3.1.1, 4.8.15.1.2).
    2. Without one, the content type does.
    3. Without both, its schema: binary data is a file. Its values decide the rest.
    """
    if any(encoding.at(key).value is not None for key in _STYLED):
        is_reserved = encoding.at("allowReserved").value is True
        return BodyPart(name, style_of(encoding, ParameterPlace.QUERY), allows_reserved=is_reserved)
    content_type = _content_type(encoding)
    is_binary = is_multipart and _is_binary(documents, schema, content_type)
    if content_type is not None and is_json(content_type) and not is_binary:
        return BodyPart(name, Style.JSON, content_type)
    return BodyPart(name, Style.REPEAT, content_type if is_multipart else None, is_binary)


def _content_type(encoding: DocumentNode) -> str | None:
    """Return the first content type of a list such as `image/png, image/*`."""
    first = plain_type((encoding.text("contentType") or "").partition(",")[0])
    return first if is_media_type(first) else None


def _is_binary(documents: Documents, schema: DocumentNode, content_type: str | None) -> bool:
    found = documents.resolved(schema)
    if found.text("type") == "array":
        return _is_binary(documents, found.at("items"), content_type)
    encoded, media = found.text("contentEncoding"), found.text("contentMediaType")
    if found.text("format") == "binary" or encoded == "binary":
        return True
    if encoded is not None or found.text("format") is not None:
        return False  # such as base64, which is sent as it is
    is_text = found.text("type") in (None, "string")
    named = media or content_type
    return is_text and named is not None and kind_of(named) is MediaKind.BINARY
