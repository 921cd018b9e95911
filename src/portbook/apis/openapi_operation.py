"""Reads one operation of an OpenAPI document (3.0 or 3.1) for a tool.

Parameters keep their places and serialization styles. The members of a JSON body become arguments where the
body is a plain object; otherwise the body is one argument. The schema of the 2xx responses is the output
schema.

A document often comes from a third party: its paths and content types must pass the same checks as the
operator's, because both become part of requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain, count
from typing import Any, Final, NamedTuple, cast

from portbook.apis.left_out import Cause, LeftOutOperation
from portbook.apis.openapi_documents import DocumentNode, Documents
from portbook.apis.openapi_schemas import SchemaWriter
from portbook.escaping import escaped
from portbook.model import JSONObject
from portbook.tools.operation import (
    Parameter,
    ParameterPlace,
    Style,
    is_media_type,
    problem_of_path,
    split_path,
)

__all__ = ["ImportedOperation", "NotSupported", "OperationReader"]

_JSON: Final = "application/json"
# Parameters that OpenAPI ignores, because other parts of the document describe them.
_IGNORED_HEADERS: Final = frozenset({"accept", "authorization", "content-type"})
# A body schema with only these keywords can be split into arguments without losing a rule.
_PLAIN: Final = frozenset({"type", "properties", "required", "additionalProperties", "title", "description"})
_ARGUMENT: Final = re.compile(r"[^A-Za-z0-9_.-]+")
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


class ImportedOperation(NamedTuple):
    """One operation of a document."""

    name: str
    description: str
    method: str
    path: str
    parameters: tuple[Parameter, ...]
    body: str | None
    has_body: bool
    request: str
    """The content type of the body."""
    response: str
    input_schema: JSONObject
    output_schema: JSONObject | bool
    file: str = ""
    pointer: str = ""
    """The operation's JSON Pointer in `file`."""

    def left_out(self, cause: Cause, sentence: str) -> LeftOutOperation:
        """Return why this operation is left out after all."""
        return LeftOutOperation(self.name, self.file, self.pointer, self.method, cause, sentence)


class _Body(NamedTuple):
    content_type: str | None = None
    """None where there is no body."""
    argument: str | None = None
    """The argument that is the whole body, if there is one."""
    is_open: bool = False
    """Whether it allows members that are not described."""


class NotSupported(Exception):
    """An operation needs an unsupported feature."""


class OperationReader:
    """Reads one operation."""

    def __init__(
        self,
        documents: Documents,
        version: str,
        item: DocumentNode,
        node: DocumentNode,
        is_argument_header: Callable[[str], bool],
    ) -> None:
        self._documents = documents
        self._is_argument_header = is_argument_header
        self._item = item
        self._node = node
        self._input = SchemaWriter(documents, version, "input")
        self._output = SchemaWriter(documents, version, "output")
        self._properties: dict[str, Any] = {}
        self._required: list[str] = []

    def read(self, name: str, method: str, path: str) -> ImportedOperation:
        """Return the operation of `method` and `path` for the tool `name`.

        Raises `NotSupported` or `BadOpenAPI` where it cannot be one.
        """
        problem = problem_of_path(path)
        if problem is not None:
            raise NotSupported(f"its path {problem}")
        parameters = tuple(self._parameters(path))
        body = self._read_body()
        schema: dict[str, Any] = {"type": "object", "properties": self._properties}
        if self._required:
            schema["required"] = self._required
        if not body.is_open:
            schema["additionalProperties"] = False
        nothing: tuple[dict[str, Any], str] = ({"type": "null"}, _JSON)
        output, response = nothing if method == "HEAD" else self._read_responses()
        request = body.content_type or _JSON
        if not (is_media_type(request) and is_media_type(response)):
            raise NotSupported("it names a content type that is not valid in a header")
        return ImportedOperation(
            name,
            self._describe(method, path),
            method,
            path,
            parameters,
            body.argument,
            body.content_type is not None,
            request,
            response,
            self._input.with_definitions(schema),
            output,
        )

    def _describe(self, method: str, path: str) -> str:
        words = [self._node.text("summary") or self._item.text("summary"), self._node.text("description")]
        return "\n\n".join(word.strip() for word in words if word) or f"{method} {path}"

    # -- parameters

    def _parameters(self, path: str) -> Iterator[Parameter]:
        found: dict[tuple[str, str], DocumentNode] = {}
        for node in (*self._item.at("parameters").items, *self._node.at("parameters").items):
            parameter = self._documents.resolved(node)
            place, name = parameter.text("in"), parameter.text("name")
            if place is None or name is None:
                raise parameter.bad("a parameter needs name and in")
            found[place, name] = parameter  # the operation's own parameter replaces the path's
        in_template = split_path(path)[1]
        for (place, name), parameter in found.items():
            is_required = parameter.at("required").value is True
            if place == "cookie" and is_required:
                raise NotSupported("it needs a cookie, and cookies are not supported")
            if place == "cookie" or (place == "header" and not self._is_argument(name)):
                continue
            if place not in ("path", "query", "header") or (place == "path" and name not in in_template):
                raise parameter.bad("a parameter is in the path (and its template), query, header or cookie")
            yield self._add(parameter, ParameterPlace(place), name, is_required=is_required)
        missing = [name for name in in_template if ("path", name) not in found]
        if missing:
            raise self._node.bad("its path has a name in braces that no parameter describes")

    def _is_argument(self, header: str) -> bool:
        return header.lower() not in _IGNORED_HEADERS and self._is_argument_header(header)

    def _add(self, node: DocumentNode, place: ParameterPlace, name: str, *, is_required: bool) -> Parameter:
        content = node.at("content").members
        schema_node, style = node.at("schema"), self._style(node, place)
        if content:
            media, inside = next(iter(content.items()))
            if not _is_json(media):
                raise NotSupported(f"a parameter is {escaped(media)}, and only JSON is supported")
            schema_node, style = inside.at("schema"), Style.JSON
        schema = True if schema_node.value is None else self._input.write(schema_node)
        words = node.text("description")
        if words and isinstance(schema, dict) and "description" not in schema:
            schema = {**cast("dict[str, Any]", schema), "description": words}
        argument = self._unused(_ARGUMENT.sub("_", name).strip("_") or "argument", place)
        self._properties[argument] = schema
        if is_required or place is ParameterPlace.PATH:
            self._required.append(argument)
        return Parameter(argument, place, name, style)

    def _style(self, node: DocumentNode, place: ParameterPlace) -> Style:
        style = node.text("style") or ("form" if place is ParameterPlace.QUERY else "simple")
        explode = node.at("explode").value
        key = (place.value, style, explode if isinstance(explode, bool) else style == "form")
        if key not in _STYLES:
            raise NotSupported(f"a parameter has the style {escaped(style)}, which is not supported")
        return _STYLES[key]

    def _unused(self, wanted: str, place: ParameterPlace | str) -> str:
        """Return an unused argument name: the one wanted, with its place, or also with a number."""
        placed = f"{wanted}_{place}"
        names = chain((wanted, placed), (f"{placed}_{number}" for number in count(2)))
        return next(name for name in names if name not in self._properties)

    # -- the body

    def _read_body(self) -> _Body:
        body = self._documents.resolved(self._node.at("requestBody"))
        if not isinstance(body.value, dict):
            return _Body()
        content = body.at("content").members
        is_required = body.at("required").value is True
        media = next((name for name in content if _is_json(name)), None)
        if media is None:
            if is_required:
                raise NotSupported("its body is not JSON")
            return _Body()
        node = content[media].at("schema")
        plain = self._plain(node)
        if plain is not None:
            written = self._input.write(plain)
            self._properties.update(written.get("properties", {}))
            # Many documents require members of the body without requiring the body.
            self._required += written.get("required", [])
            return _Body(
                _plain_type(media), None, is_open=written.get("additionalProperties", True) is not False
            )
        argument = self._unused("body", "argument")
        self._properties[argument] = True if node.value is None else self._input.write(node)
        if is_required:
            self._required.append(argument)
        return _Body(_plain_type(media), argument)

    def _plain(self, node: DocumentNode) -> DocumentNode | None:
        """Return the schema of a body whose members can become arguments, or None."""
        found = self._documents.resolved(node)
        keys = {key for key in found.members if not key.startswith("x-") and key != "example"}
        members = found.at("properties").members
        is_plain = (
            bool(members)
            and keys <= _PLAIN
            and found.text("type") == "object"
            and not isinstance(found.at("additionalProperties").value, dict)
            and members.keys().isdisjoint(self._properties)
        )
        return found if is_plain else None

    # -- the result

    def _read_responses(self) -> tuple[Any, str]:
        """Return the schema and the content type of the result."""
        schemas: list[Any] = []
        response: str | None = None
        is_known = True
        for status, node in self._node.at("responses").members.items():
            if not status.startswith("2"):
                continue
            content = self._documents.resolved(node).at("content").members
            media = next((name for name in content if _is_json(name)), next(iter(content), None))
            if media is None:
                schemas.append({"type": "null"})
                continue
            if response is not None and _is_json(response) is not _is_json(media):
                raise NotSupported("its responses have several content types")
            response = response or _plain_type(media)
            schema = content[media].at("schema")
            if not _is_json(media):
                schemas.append({"type": "string"})
            elif schema.value is None:
                is_known = False
            else:
                schemas.append(self._output.write(schema))
        if not schemas or not is_known:
            return True, response or _JSON
        distinct = [schema for index, schema in enumerate(schemas) if schema not in schemas[:index]]
        written = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
        return self._output.with_definitions(written), response or _JSON


def _is_json(media: str) -> bool:
    essence = _essence(media)
    return essence in (_JSON, "*/*") or essence.endswith("+json")


def _plain_type(media: str) -> str:
    """Return the content type to send; JSON where the document allows any."""
    essence = _essence(media)
    return _JSON if essence == "*/*" else essence


def _essence(media: str) -> str:
    return media.partition(";")[0].strip().lower()
