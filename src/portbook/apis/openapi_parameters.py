"""Reads the parameters of an OpenAPI operation: their places, styles and schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, cast

from portbook.apis.openapi_arguments import Arguments, NotSupported
from portbook.apis.openapi_documents import DocumentNode, Documents
from portbook.apis.openapi_schemas import SchemaWriter
from portbook.escaping import escaped
from portbook.tools.media_types import is_json
from portbook.tools.operation import Parameter, ParameterPlace, Style, split_path

__all__ = ["read_parameters"]

# Parameters that OpenAPI ignores, because other parts of the document describe them.
_IGNORED_HEADERS: Final = frozenset({"accept", "authorization", "content-type"})
_STYLES: Final = {
    ("query", "form", True): Style.SPREAD,
    ("query", "form", False): Style.COMMA,
    ("query", "spaceDelimited", True): Style.REPEAT,
    ("query", "spaceDelimited", False): Style.SPACE,
    ("query", "pipeDelimited", True): Style.REPEAT,
    ("query", "pipeDelimited", False): Style.PIPE,
    ("query", "deepObject", True): Style.DEEP,
    ("query", "deepObject", False): Style.DEEP,
    ("path", "simple", False): Style.COMMA,
    ("path", "simple", True): Style.COMMA,
    ("header", "simple", False): Style.COMMA,
    ("header", "simple", True): Style.COMMA,
}


def read_parameters(
    documents: Documents,
    item: DocumentNode,
    operation: DocumentNode,
    path: str,
    arguments: Arguments,
    schemas: SchemaWriter,
    is_argument_header: Callable[[str], bool],
) -> tuple[Parameter, ...]:
    """Return the parameters of an operation and of its path item, and add their `arguments`.

    Raises `NotSupported` where one cannot be sent, `BadOpenAPI` where one is not described as it must be.
    """
    return tuple(
        _parameters(documents, item, operation, split_path(path)[1], arguments, schemas, is_argument_header)
    )


def _parameters(
    documents: Documents,
    item: DocumentNode,
    operation: DocumentNode,
    in_template: list[str],
    arguments: Arguments,
    schemas: SchemaWriter,
    is_argument_header: Callable[[str], bool],
) -> Iterator[Parameter]:
    found: dict[tuple[str, str], DocumentNode] = {}
    for node in (*item.at("parameters").items, *operation.at("parameters").items):
        parameter = documents.resolved(node)
        place, name = parameter.text("in"), parameter.text("name")
        if place is None or name is None:
            raise parameter.bad("a parameter needs name and in")
        found[place, name] = parameter  # the operation's own parameter replaces the path's
    for (place, name), parameter in found.items():
        is_required = parameter.at("required").value is True
        if place == "cookie" and is_required:
            raise NotSupported("it needs a cookie, and cookies are not supported")
        is_ignored = name.lower() in _IGNORED_HEADERS or not is_argument_header(name)
        if place == "cookie" or (place == "header" and is_ignored):
            continue
        if place not in ("path", "query", "header") or (place == "path" and name not in in_template):
            raise parameter.bad("a parameter is in the path (and its template), query, header or cookie")
        yield _read(parameter, ParameterPlace(place), name, arguments, schemas, is_required=is_required)
    if any(("path", name) not in found for name in in_template):
        raise operation.bad("its path has a name in braces that no parameter describes")


def _read(
    node: DocumentNode,
    place: ParameterPlace,
    name: str,
    arguments: Arguments,
    schemas: SchemaWriter,
    *,
    is_required: bool,
) -> Parameter:
    content = node.at("content").members
    schema_node, style = node.at("schema"), _style(node, place)
    if content:
        media, inside = next(iter(content.items()))
        if not is_json(media):
            raise NotSupported(f"a parameter is {escaped(media)}, and only JSON is supported")
        schema_node, style = inside.at("schema"), Style.JSON
    schema = True if schema_node.value is None else schemas.write(schema_node)
    words = node.text("description")
    if words and isinstance(schema, dict) and "description" not in schema:
        schema = {**cast("dict[str, Any]", schema), "description": words}
    is_required = is_required or place is ParameterPlace.PATH
    return Parameter(arguments.add(name, place, schema, is_required=is_required), place, name, style)


def _style(node: DocumentNode, place: ParameterPlace) -> Style:
    style = node.text("style") or ("form" if place is ParameterPlace.QUERY else "simple")
    explode = node.at("explode").value
    key = (place.value, style, explode if isinstance(explode, bool) else style == "form")
    if key not in _STYLES:
        raise NotSupported(f"a parameter has the style {escaped(style)}, which is not supported")
    return _STYLES[key]
