"""Reads the parameters of an OpenAPI operation: their places, styles and schemas.

`Arguments` collects the arguments of the operation, from its parameters and its body. `read_path_key` takes
the key apart that an operation has in `paths`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain, count
from typing import Any, Final, NamedTuple, cast
from urllib.parse import quote

from portbook.apis.openapi.document_files import DocumentNode, Documents
from portbook.apis.openapi.schemas import SchemaWriter
from portbook.escaping import escaped
from portbook.tools.http_operation import Parameter, ParameterPlace, Style, is_token, split_path
from portbook.tools.media_types import MediaKind, is_json, kind_of

__all__ = [
    "ANY_ARGUMENT",
    "ArgumentRules",
    "Arguments",
    "NotSupported",
    "PathKey",
    "read_parameters",
    "read_path_key",
    "style_of",
    "with_query",
]

# Parameters that OpenAPI ignores, because other parts of the document describe them.
_IGNORED_HEADERS: Final = frozenset({"accept", "authorization", "content-type"})
# By place, style and explode.
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
    ("path", "simple", True): Style.PAIRS,
    ("path", "label", False): Style.LABEL,
    ("path", "label", True): Style.LABEL_EXPLODED,
    ("path", "matrix", False): Style.MATRIX,
    ("path", "matrix", True): Style.MATRIX_EXPLODED,
    ("header", "simple", False): Style.COMMA,
    ("header", "simple", True): Style.PAIRS,
    ("cookie", "form", False): Style.COMMA,
    ("cookie", "form", True): Style.SPREAD,
    ("cookie", "cookie", False): Style.COMMA,
    ("cookie", "cookie", True): Style.SPREAD,
}
# What can be written into a header.
_PRINTABLE: Final = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_DEFAULTS: Final = {"query": "form", "cookie": "form", "path": "simple", "header": "simple"}


def read_parameters(
    documents: Documents,
    item: DocumentNode,
    operation: DocumentNode,
    key: PathKey,
    arguments: Arguments,
    schemas: SchemaWriter,
) -> tuple[Parameter, ...]:
    """Return the parameters of an operation and of its path item, and add their `arguments`.

    A required parameter with one allowed value is no argument: `arguments` has it as fixed.

    Raises `NotSupported` where one cannot be sent, `BadOpenAPI` where one is not described as it must be.
    """
    for header, value in key.headers.items():
        is_credential = ("header", header.lower()) in arguments.rules.credentials
        if is_credential or not arguments.rules.is_argument_header(header) or not _PRINTABLE.fullmatch(value):
            raise NotSupported("its path stands for a header that cannot be sent")
        arguments.fixed_headers[header] = value
    arguments.fixed_query.update(key.query)
    return tuple(_parameters(documents, item, operation, key, arguments, schemas))


def _parameters(
    documents: Documents,
    item: DocumentNode,
    operation: DocumentNode,
    key: PathKey,
    arguments: Arguments,
    schemas: SchemaWriter,
) -> Iterator[Parameter]:
    found = _declared(documents, item, operation, key)
    in_template = split_path(key.path)[1]
    said_by_path = {("header", header.lower()) for header in key.headers} | {
        ("query", name) for name in key.query
    }
    for (place, name), parameter in found.items():
        if (place, name.lower() if place == "header" else name) in said_by_path:
            continue  # sent twice, the argument could win over what the tool is named for
        is_required = parameter.at("required").value is True
        if place not in _DEFAULTS or (place == "path" and name not in in_template):
            raise parameter.bad("a parameter is in the path (and its template), query, header or cookie")
        if not _may_be_argument(place, name, arguments.rules):
            continue
        only = _only_value(documents, parameter, place) if is_required else None
        if only is not None:
            (arguments.fixed_headers if place == "header" else arguments.fixed_query)[name] = only
            continue
        yield _read(parameter, ParameterPlace(place), name, arguments, schemas, is_required=is_required)
    yield from _of_key(key, found.keys() | arguments.rules.credentials, arguments)
    if any(("path", name) not in found for name in in_template):
        raise operation.bad("its path has a name in braces that no parameter describes")


def _declared(
    documents: Documents, item: DocumentNode, operation: DocumentNode, key: PathKey
) -> dict[tuple[str, str], DocumentNode]:
    """Return the parameters that the document describes, by place and name."""
    found: dict[tuple[str, str], DocumentNode] = {}
    for node in (*_list_of(item), *_list_of(operation)):
        parameter = documents.resolved(node)
        place, name = parameter.text("in"), parameter.text("name")
        if place is None or name is None:
            raise parameter.bad("a parameter needs name and in")
        if place in ("path", "query") and name in key.in_query:
            place, name = "query", key.in_query[name]
        found[place, name] = parameter  # the operation's own parameter replaces the path's
    return found


def _of_key(key: PathKey, known: AbstractSet[tuple[str, str]], arguments: Arguments) -> Iterator[Parameter]:
    """Yield what the key has in braces in its query and no parameter describes: a required text."""
    for name in key.in_query.values():
        if ("query", name) not in known:
            argument = arguments.add(name, "query", {"type": "string"}, is_required=True)
            yield Parameter(argument, ParameterPlace.QUERY, name, Style.SPREAD)


def _list_of(owner: DocumentNode) -> list[DocumentNode]:
    parameters = owner.at("parameters")
    if not isinstance(parameters.value, list | None):
        raise parameters.bad("parameters must be a list")
    return parameters.items


def _only_value(documents: Documents, parameter: DocumentNode, place: str) -> str | None:
    """Return the text of the one value that a parameter of a query or a header allows, or None."""
    schema = documents.resolved(parameter.at("schema"))
    allowed = schema.at("enum").value
    values = allowed if isinstance(allowed, list) else [schema.at("const").value]
    if place not in ("query", "header") or len(values) != 1:
        return None
    (value,) = values
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int) and _PRINTABLE.fullmatch(str(value)) else None


def _may_be_argument(place: str, name: str, rules: ArgumentRules) -> bool:
    if (place, name.lower() if place == "header" else name) in rules.credentials:
        return False
    if place == "header":
        return name.lower() not in _IGNORED_HEADERS and rules.is_argument_header(name)
    if place == "cookie":
        if not is_token(name):
            raise NotSupported("a cookie has a name that is not valid in a header")
        return rules.takes_cookies
    return True


def _read(
    node: DocumentNode,
    place: ParameterPlace,
    name: str,
    arguments: Arguments,
    schemas: SchemaWriter,
    *,
    is_required: bool,
) -> Parameter:
    schema_node, style = _serialized(node, place)
    schema = True if schema_node.value is None else schemas.write(schema_node)
    words = node.text("description")
    if words and isinstance(schema, dict) and "description" not in schema:
        schema = {**cast("dict[str, Any]", schema), "description": words}
    is_required = is_required or place is ParameterPlace.PATH
    argument = arguments.add(name, place, schema, is_required=is_required)
    return Parameter(argument, place, name, style, node.at("allowReserved").value is True)


def _serialized(node: DocumentNode, place: ParameterPlace) -> tuple[DocumentNode, Style]:
    """Return the schema of a parameter, and how its values are written: by content type, or by style."""
    for media, inside in node.at("content").members.items():
        if is_json(media):
            return inside.at("schema"), Style.JSON
        if kind_of(media) is not MediaKind.TEXT:
            raise NotSupported(f"a parameter is {escaped(media)}, and only JSON and text are supported")
        return inside.at("schema"), Style.COMMA
    return node.at("schema"), style_of(node, place)


def style_of(node: DocumentNode, place: ParameterPlace) -> Style:
    """Return the style of a parameter, or of a member of a form.

    Raises `NotSupported` where its place does not have the style, `BadOpenAPI` where it is not a text.
    """
    given = node.at("style").value
    if not isinstance(given, str | None):
        raise node.bad("the style of a parameter must be a text")
    style = given or _DEFAULTS[place.value]
    explode = node.at("explode").value
    key = (place.value, style, explode if isinstance(explode, bool) else style in ("form", "cookie"))
    if key not in _STYLES:
        raise NotSupported(f"a parameter has the style {escaped(style)}, which is not supported")
    return _STYLES[key]


# `Arguments`: the arguments of one imported operation, collected from its parameters and its body.
#
# `ArgumentRules` is what the operator lets callers choose.

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.-]+")


class NotSupported(Exception):
    """An operation needs an unsupported feature; the message says which."""


def _any_header(name: str) -> bool:
    return bool(name)


@dataclass(frozen=True, slots=True)
class ArgumentRules:
    """What may become an argument of an imported operation."""

    is_argument_header: Callable[[str], bool] = _any_header
    """Returns whether an argument may set the header."""
    takes_cookies: bool = True
    """Whether arguments may set cookies; not where the operator sets the Cookie header."""
    credentials: frozenset[tuple[str, str]] = frozenset()
    """Places and names that credentials of the operator have; headers in lower case."""
    takes_paths: bool = False
    """Whether a file may be given by its path in the operator's folder."""


ANY_ARGUMENT: Final = ArgumentRules()


class Arguments:
    """The properties of a tool's input schema, as far as they are known."""

    __slots__ = ("fixed_headers", "fixed_query", "names", "properties", "required", "rules")

    def __init__(self, rules: ArgumentRules) -> None:
        self.rules = rules
        self.properties: dict[str, Any] = {}
        self.required: list[str] = []
        self.names: Any = True
        """The schema of the names of further arguments."""
        # What each request has, whatever the arguments: nobody has to ask for the only value there is.
        self.fixed_headers: dict[str, str] = {}
        self.fixed_query: dict[str, str] = {}

    def add(self, wanted: str, place: str, schema: Any, *, is_required: bool) -> str:
        """Add an argument and return its name: the one wanted, with its place, or also with a number."""
        plain = _UNSAFE.sub("_", wanted).strip("_") or "argument"
        placed = f"{plain}_{place}"
        names = chain((plain, placed), (f"{placed}_{number}" for number in count(2)))
        name = next(name for name in names if name not in self.properties)
        self.properties[name] = schema
        if is_required:
            self.required.append(name)
        return name

    def as_schema(self, *, is_open: bool) -> dict[str, Any]:
        """Return the schema of all arguments; an open one allows further ones."""
        schema: dict[str, Any] = {"type": "object", "properties": self.properties}
        if self.required:
            schema["required"] = self.required
        if not is_open:
            schema["additionalProperties"] = False
        elif self.names is not True:
            schema["propertyNames"] = self.names
        return schema


# A key of `paths` in an OpenAPI document, taken apart.
#
# OpenAPI wants a plain path. Documents have more, to tell apart operations of one path:
#
# | key | what it means |
# | --- | --- |
# | `/#X-Amz-Target=Queue.Send` | the path `/`; each request has this header |
# | `/#Action=Send&Version=1` | the path `/`; each request has this in its query |
# | `/files/{id}#shared` | the path `/files/{id}`; the rest is only part of the operation's name |
# | `/alerts?lat={lat}` | the path `/alerts`; the argument `lat` goes into the query, described or not |

_BRACED: Final = re.compile(r"([^={}&?]+)=\{([^{}]+)\}")
# What a fragment stands for: with this name, the query of AWS's query protocol; with these, headers.
_QUERY_NAME: Final = "Action"
_HEADER_PREFIX: Final = "x-"


class PathKey(NamedTuple):
    """A path, and what its key says beside it."""

    path: str
    """With the query that the key fixes, without a fragment."""
    in_query: dict[str, str]
    """The name in the query of each name in braces that the key has there."""
    headers: dict[str, str]
    """The headers that the key's fragment stands for."""
    query: dict[str, str]
    """What the key's fragment stands for in the query."""


def read_path_key(key: str) -> PathKey:
    """Return the parts of a key of `paths`."""
    before, _, fragment = key.partition("#")
    path, _, query = before.partition("?")
    in_query: dict[str, str] = {}
    kept: list[str] = []
    for pair in query.split("&") if query else ():
        found = _BRACED.fullmatch(pair)
        if found is None:
            kept.append(pair)
        else:
            in_query[found[2]] = found[1]
    pairs = dict(part.split("=", 1) for part in fragment.split("&") if "=" in part)
    headers = {name: value for name, value in pairs.items() if name.lower().startswith(_HEADER_PREFIX)}
    in_fragment = {name: value for name, value in pairs.items() if name not in headers}
    return PathKey(
        f"{path}?{'&'.join(kept)}" if kept else path,
        in_query,
        headers,
        in_fragment if _QUERY_NAME in in_fragment else {},
    )


def with_query(path: str, pairs: dict[str, str]) -> str:
    """Return `path` with these pairs at the end of its query."""
    added = "&".join(f"{quote(name, safe='')}={quote(value, safe='')}" for name, value in pairs.items())
    if not added:
        return path
    return f"{path}{'&' if '?' in path else '?'}{added}"
