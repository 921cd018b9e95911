"""Reads the request body of an OpenAPI operation: its content type, its arguments, its parts and fields.

A body of several content types is sent in the first of these that it offers:

1. JSON, which keeps every value as it is: `application/json`, then others such as `…+json`, then any type.
2. `multipart/form-data` if it has a file, which no other form can hold.
3. `application/x-www-form-urlencoded`.
4. `multipart/form-data` without files.
5. Text: `text/plain`, then other texts, XML among them.
6. Binary data: `application/octet-stream`, then others.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any, Final, NamedTuple, cast

from portbook.apis.form_and_file_bodies import file_schema
from portbook.apis.openapi.document_files import DocumentNode, Documents
from portbook.apis.openapi.parameters_and_path_keys import Arguments, NotSupported, style_of
from portbook.apis.openapi.schemas import SchemaWriter, names_of_other_side
from portbook.tools.http_operation import BodyPart, ParameterPlace, Style
from portbook.tools.media_types import (
    BINARY_TYPE,
    JSON_TYPE,
    MULTIPART_TYPE,
    TEXT_TYPE,
    MediaKind,
    essence,
    is_json,
    is_media_type,
    kind_of,
    plain_type,
)

__all__ = ["FileField", "ImportedBody", "files_in", "members_of", "read_body", "read_parts"]

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
    binary = {part.name for part in offer.parts if part.is_binary}
    files = files_in(documents, offer.node, binary) if binary else {}
    is_object = offer.kind is MediaKind.JSON or offer.kind in _FORMS
    node = offer.node.at("schema")
    plain = _plain(documents, node, arguments, may_combine=bool(files)) if is_object else []
    if plain:
        are_open = [_add_members(schemas.write(each), files, arguments) for each in plain]
        # One schema of an `allOf` may require what another one has as read-only.
        unsent = {name for each in plain for name in names_of_other_side(documents, each, "input")}
        arguments.required = [name for name in arguments.required if name not in unsent]
        return ImportedBody(offer.content_type, None, all(are_open), offer.parts)
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


def _add_members(written: dict[str, Any], files: dict[str, FileField], arguments: Arguments) -> bool:
    """Add the members of a body as arguments; return whether it allows further ones."""
    properties = cast("dict[str, Any]", written.get("properties", {}))
    for name in files.keys() & properties.keys():
        properties[name] = _file_argument(properties[name], files[name], arguments)
    arguments.properties.update(properties)
    names = written.get("propertyNames", True)
    if names is not True:
        arguments.names = names if arguments.names is True else {"allOf": [arguments.names, names]}
    # Many documents require members of the body without requiring the body.
    arguments.required += [
        name for name in dict.fromkeys(written.get("required", [])) if name not in arguments.required
    ]
    return written.get("additionalProperties", True) is not False


def _file_argument(written: Any, field: FileField, arguments: Arguments) -> dict[str, Any]:
    """Return the schema of an argument that is a file, from what the document has in its place."""
    given = cast("dict[str, Any]", written) if isinstance(written, dict) else {}
    file = file_schema(given.get("description"), takes_paths=arguments.rules.takes_paths, has_name=True)
    choices: list[dict[str, Any]] = [file] if field.is_single else []
    if field.is_list:
        is_written = given.get("type") in ("array", ["array", "null"])  # else it is a reference to a list
        choices.append({**(given if is_written else {}), "type": "array", "items": file})
    if field.is_nullable:
        choices.append({"type": "null"})
    return choices[0] if len(choices) == 1 else {"anyOf": choices}


def _plain(
    documents: Documents, node: DocumentNode, arguments: Arguments, *, may_combine: bool
) -> list[DocumentNode]:
    """Return the schemas of a body whose members can become arguments; none where they cannot.

    There are several where the body is `allOf` of plain objects, and `may_combine` them: a body that is one
    argument has no files that could be described as such.
    """
    found = documents.resolved(node)
    combined = found.at("allOf").items if may_combine else []
    if not combined:
        has_members = bool(found.at("properties").members)
        return [found] if has_members and _is_plain(found) and _is_new(found, arguments.properties) else []
    own = {key: found.at(key).value for key in found.members if key != "allOf"}
    parts = [documents.resolved(each) for each in combined]
    if own.keys() & {"properties", "required"}:
        parts.append(found._replace(value={"type": "object", **own}))
    taken = set(arguments.properties)
    for part in parts:
        if not _is_plain(part) or part.at("additionalProperties").value is False or not _is_new(part, taken):
            return []
        taken |= part.at("properties").members.keys()
    return parts


def _is_plain(schema: DocumentNode) -> bool:
    keys = {key for key in schema.members if not key.startswith("x-") and key != "example"}
    is_object = schema.text("type") == "object" and bool(keys & {"properties", "required"})
    return is_object and keys <= _PLAIN and not isinstance(schema.at("additionalProperties").value, dict)


def _is_new(schema: DocumentNode, taken: Container[str]) -> bool:
    """Return whether no member of a schema has a name that is taken."""
    return not any(name in taken for name in schema.at("properties").members)


# Reads the fields of a form in OpenAPI: their styles, content types and files.

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
