"""Reads the responses of an OpenAPI operation: the schema and the content type of its result."""

from __future__ import annotations

from typing import Any

from portbook.apis.openapi_arguments import NotSupported
from portbook.apis.openapi_documents import DocumentNode, Documents
from portbook.apis.openapi_schemas import SchemaWriter
from portbook.tools.media_types import JSON_TYPE, is_json, plain_type

__all__ = ["read_responses"]


def read_responses(documents: Documents, operation: DocumentNode, schemas: SchemaWriter) -> tuple[Any, str]:
    """Return the schema and the content type of the result."""
    written: list[Any] = []
    response: str | None = None
    is_known = True
    for status, node in operation.at("responses").members.items():
        if not status.startswith("2"):
            continue
        content = documents.resolved(node).at("content").members
        media = next((name for name in content if is_json(name)), next(iter(content), None))
        if media is None:
            written.append({"type": "null"})
            continue
        if response is not None and is_json(response) is not is_json(media):
            raise NotSupported("its responses have several content types")
        response = response or plain_type(media)
        schema = content[media].at("schema")
        if not is_json(media):
            written.append({"type": "string"})
        elif schema.value is None:
            is_known = False
        else:
            written.append(schemas.write(schema))
    if not written or not is_known:
        return True, response or JSON_TYPE
    distinct = [schema for index, schema in enumerate(written) if schema not in written[:index]]
    one = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
    return schemas.with_definitions(one), response or JSON_TYPE
