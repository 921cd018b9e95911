"""Reads the fields of a form in OpenAPI: their styles, content types and files."""

from __future__ import annotations

from collections.abc import Container
from typing import Final, NamedTuple

from portbook.apis.openapi.document_files import DocumentNode, Documents
from portbook.apis.openapi.parameters import style_of
from portbook.tools.http_operation import BodyPart, ParameterPlace, Style
from portbook.tools.media_types import MediaKind, is_json, is_media_type, kind_of, plain_type

__all__ = ["FileField", "files_in", "members_of", "read_parts"]

_COMBINED: Final = ("allOf", "anyOf", "oneOf")
# How deep schemas are combined; a schema that combines itself ends here, too.
_MAX_DEPTH: Final = 8
_STYLED: Final = ("style", "explode", "allowReserved")


class FileField(NamedTuple):
    """What a field that is a file may be."""

    is_single: bool = False
    is_list: bool = False
    is_nullable: bool = False


# What was found of a schema, by its file and pointer.
_Known = dict[tuple[str, str], FileField | None]


def files_in(documents: Documents, media: DocumentNode, names: Container[str]) -> dict[str, FileField]:
    """Return what the fields of these `names`, which are files, may be in the form of a media type object."""
    encoding = media.at("encoding")
    found = {
        name: _file_field(documents, schema, _content_type(encoding.at(name)), {})
        for name, schema in members_of(documents, media.at("schema")).items()
        if name in names
    }
    return {name: field for name, field in found.items() if field is not None}


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
    is_binary = is_multipart and _file_field(documents, schema, content_type, {}) is not None
    if content_type is not None and is_json(content_type) and not is_binary:
        return BodyPart(name, Style.JSON, content_type)
    return BodyPart(name, Style.REPEAT, content_type if is_multipart else None, is_binary)


def _content_type(encoding: DocumentNode) -> str | None:
    """Return the first content type of a list such as `image/png, image/*`."""
    first = plain_type((encoding.text("contentType") or "").partition(",")[0])
    return first if is_media_type(first) else None


def _file_field(
    documents: Documents, schema: DocumentNode, content_type: str | None, known: _Known
) -> FileField | None:
    """Return what a file may be, or None where a field is none.

    A list of files is one, too. So is what combines files: `allOf` with one of them, `anyOf` and `oneOf` of
    nothing else but null.
    """
    found = documents.resolved(schema)
    place = (found.file, found.pointer)
    if place not in known:  # each schema once: references may fan out, or lead back
        known[place] = None
        known[place] = _read_file_field(documents, found, content_type, known)
    return known[place]


def _read_file_field(
    documents: Documents, found: DocumentNode, content_type: str | None, known: _Known
) -> FileField | None:
    types = _types(found)
    is_nullable = "null" in types or found.at("nullable").value is True
    if "array" in types:
        inner = _file_field(documents, found.at("items"), content_type, known)
        return None if inner is None else FileField(is_list=True, is_nullable=is_nullable)
    combined = _combined_files(documents, found, content_type, known)
    if combined is not None:
        return combined._replace(is_nullable=is_nullable or combined.is_nullable)
    return FileField(is_single=True, is_nullable=is_nullable) if _is_data(found, content_type) else None


def _combined_files(
    documents: Documents, schema: DocumentNode, content_type: str | None, known: _Known
) -> FileField | None:
    for keyword in _COMBINED:
        inner = [documents.resolved(each) for each in schema.at(keyword).items]
        values = [each for each in inner if _types(each) != {"null"}]
        fields = [_file_field(documents, each, content_type, known) for each in values]
        files = [field for field in fields if field is not None]
        if files and (keyword == "allOf" or len(files) == len(fields)):
            return FileField(
                any(each.is_single for each in files),
                any(each.is_list for each in files),
                len(values) < len(inner) or any(each.is_nullable for each in files),
            )
    return None


def _types(schema: DocumentNode) -> set[str]:
    """Return the types that a schema names: one, a list of them, or none."""
    given = schema.at("type").value
    return {each for each in (given if isinstance(given, list) else [given]) if isinstance(each, str)}


def _is_data(schema: DocumentNode, content_type: str | None) -> bool:
    """Return whether a schema describes binary data, by its own words or by its content type."""
    encoded, media = schema.text("contentEncoding"), schema.text("contentMediaType")
    if schema.text("format") == "binary" or encoded == "binary":
        return True
    if encoded is not None or schema.text("format") is not None:
        return False  # such as base64, which is sent as it is
    is_text = _types(schema) <= {"string", "null"} and not any(schema.at(key).items for key in _COMBINED)
    named = media or content_type
    return is_text and named is not None and kind_of(named) is MediaKind.BINARY
