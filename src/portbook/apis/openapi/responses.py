"""Reads the responses of an OpenAPI operation: the schema and the content types of its result.

The 2xx responses describe the result; without one, `default` does, which then covers success, too (beside a
2xx, it describes errors in nearly every document). Of a response with several content types, the first of
these is wanted: JSON, text, binary data. Text beside it is accepted, too, unless its schema is not that of a
string: then it is the same data in another notation.

A response without content may have any body, or none. A status that forbids a body (204, 205) means null.

The schema of the result allows what any response does, so that no answer breaks what is announced of the
tool. Where the responses differ, each has a schema of its own beside it.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from portbook.apis.openapi.document_files import DocumentNode, Documents
from portbook.apis.openapi.parameters_and_path_keys import NotSupported
from portbook.apis.openapi.schemas import SchemaWriter
from portbook.canonical import canonical_bytes, is_same_json
from portbook.tools.media_types import (
    ANY_TYPE,
    JSON_TYPE,
    MediaKind,
    essence,
    is_json,
    is_media_range,
    kind_of,
)

__all__ = ["ImportedResult", "read_responses"]

_NULL: Final[dict[str, Any]] = {"type": "null"}
_TEXT: Final[dict[str, Any]] = {"type": "string"}
# How binary data is given beside results of other kinds; alone, it is content of its own.
_BINARY: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"content_type": _TEXT, "base64": {"type": "string", "contentEncoding": "base64"}},
    "required": ["content_type", "base64"],
}
_WITHOUT_BODY: Final = ("204", "205")
_RANKS: Final = {MediaKind.JSON: 0, MediaKind.TEXT: 1, MediaKind.FORM: 1}


class ImportedResult(NamedTuple):
    """The result of an operation, as its document describes it."""

    schema: Any
    content_type: str = JSON_TYPE
    other_types: tuple[str, ...] = ()
    """Further content types that a response may have; the last may be any."""
    by_status: tuple[tuple[str, Any], ...] = ()
    """The schemas of single statuses, as the document names them, where they differ."""


class _ResponseOffer(NamedTuple):
    """The content type that is wanted of one response."""

    media: str
    node: DocumentNode

    @property
    def rank(self) -> tuple[int, bool]:
        """Return its place in the order of the module's docstring; a wildcard is the last of its kind."""
        return _RANKS.get(kind_of(self.media), 2), self.media.endswith("*")


def read_responses(documents: Documents, operation: DocumentNode, schemas: SchemaWriter) -> ImportedResult:
    """Return the result of an operation.

    Raises `NotSupported` where no content type of a response can be accepted.
    """
    wanted = {
        status: _wanted(response.at("content").members)
        for status, response in _successes(documents, operation).items()
    }
    offers = sorted((offer for each in wanted.values() for offer in each), key=lambda offer: offer.rank)
    if not offers:
        return ImportedResult(True, other_types=(ANY_TYPE,))
    types = list(dict.fromkeys(_accepted(offer.media) for offer in offers))
    if ANY_TYPE in types or any(_is_undescribed(*each) for each in wanted.items()):
        types = [each for each in types if each != ANY_TYPE] + [ANY_TYPE]
    if kind_of(offers[0].media) not in _RANKS:  # nothing but binary data, which is content
        return ImportedResult(True, types[0], tuple(types[1:]))
    first = types[0] if types[0] != ANY_TYPE else JSON_TYPE
    others = tuple(each for each in types if each != first)
    written = {status: _alternatives(status, each, schemas) for status, each in wanted.items()}
    united = _united([schema for each in written.values() for schema in each], schemas)
    one, *more = written.values()
    by_status: tuple[tuple[str, Any], ...] = ()
    if not all(is_same_json(each, one) for each in more):
        by_status = tuple((status, _united(each, schemas)) for status, each in written.items())
    return ImportedResult(united, first, others, by_status)


def _successes(documents: Documents, operation: DocumentNode) -> dict[str, DocumentNode]:
    found = operation.at("responses").members
    successes = {status: node for status, node in found.items() if status.startswith("2")}
    chosen = successes or {status: node for status, node in found.items() if status == "default"}
    return {status: documents.resolved(node) for status, node in chosen.items()}


def _is_undescribed(status: str, offers: list[_ResponseOffer]) -> bool:
    """Return whether a response may have any body: the document says nothing of one."""
    return not offers and status not in _WITHOUT_BODY


def _wanted(content: dict[str, DocumentNode]) -> list[_ResponseOffer]:
    """Return the content types that are wanted of one response; none where it has no content."""
    if not content:
        return []
    offers = [_ResponseOffer(essence(media), node) for media, node in content.items()]
    acceptable = [offer for offer in offers if is_media_range(offer.media)]
    if not acceptable:
        raise NotSupported("it names a content type that is not valid in a header")
    best = min(acceptable, key=lambda offer: offer.rank)
    return [best, *(offer for offer in acceptable if offer is not best and _is_text(offer))]


def _is_text(offer: _ResponseOffer) -> bool:
    """Return whether the data of a text type is a string also by its schema, if it has one."""
    schema = offer.node.at("schema")
    return kind_of(offer.media) is MediaKind.TEXT and (
        schema.value is None or schema.at("type").value == "string"
    )


def _accepted(media: str) -> str:
    """Return the content type to accept: any JSON counts as every other, so one of them is enough."""
    return JSON_TYPE if media == "application/*" else media


def _schema(offer: _ResponseOffer, schemas: SchemaWriter) -> Any:
    if is_json(offer.media):
        node = offer.node.at("schema")
        return True if node.value is None else schemas.write(node)
    return _TEXT if kind_of(offer.media) in _RANKS else _BINARY


def _alternatives(status: str, offers: list[_ResponseOffer], schemas: SchemaWriter) -> list[Any]:
    """Return the schemas of what one response may be."""
    if offers:
        return [_schema(offer, schemas) for offer in offers]
    return [True if _is_undescribed(status, offers) else _NULL]


def _united(written: list[Any], schemas: SchemaWriter) -> Any:
    """Return the schema of results that one of `written` allows."""
    if any(schema is True for schema in written):
        return True
    # By their bytes: Python takes 1 for true.
    distinct = list({canonical_bytes(schema): schema for schema in written}.values())
    return schemas.with_definitions(distinct[0] if len(distinct) == 1 else {"anyOf": distinct})
