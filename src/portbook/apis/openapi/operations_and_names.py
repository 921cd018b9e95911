"""Reads every operation of an OpenAPI document (3.0 or 3.1), path by path.

An operation that cannot be read is left out, and stops no other one. Each gets a name of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from portbook.apis.left_out_operations import Cause, LeftOutOperation
from portbook.apis.openapi.document_files import BadOpenAPI, DocumentNode, Documents
from portbook.apis.openapi.parameters_and_path_keys import (
    ANY_ARGUMENT,
    ArgumentRules,
    Arguments,
    NotSupported,
    read_parameters,
    read_path_key,
    with_query,
)
from portbook.apis.openapi.request_bodies import read_body
from portbook.apis.openapi.responses import ImportedResult, read_responses
from portbook.apis.openapi.schemas import SchemaWriters
from portbook.apis.openapi.security_schemes_and_credentials import Requirement, read_requirement
from portbook.apis.openapi.servers import Server, ServerChooser
from portbook.escaping import escaped
from portbook.model import JSONObject
from portbook.tools.http_methods import METHODS
from portbook.tools.http_operation import BodyPart, Parameter, problem_of_path
from portbook.tools.media_types import JSON_TYPE
from portbook.tools.tool_names import MAX_NAME, name_digest, shortened

__all__ = [
    "ImportedNames",
    "ImportedOperation",
    "OperationHead",
    "OperationReader",
    "operation_names",
    "own_name",
    "plain_name",
    "read_openapi",
]

# Names of operations as tools: `operationId`, or method and path; no two alike.


@dataclass(frozen=True, slots=True)
class ImportedNames:
    """How the operations of a document are named."""

    longest: int = MAX_NAME
    """A longer name is shortened."""
    shared: frozenset[str] = frozenset()
    """Names that another document of the gateway has, too."""
    document: str = ""
    """The document, as the settings name it: it tells operations with a shared name apart."""

    def distinct(self, name: str, place: str, count: int) -> str:
        """Return the name of the operation at `place`, such as `GET /orders`; `count` of them share `name`.

        All operations of one name get a digest of their place, and of their document where that is what tells
        them apart: a rule for the name must not silently mean one of them.
        """
        if name in self.shared:
            name = f"{name}_{name_digest(f'{self.document} {place}')}"
        elif count > 1:
            name = f"{name}_{name_digest(place)}"
        return self.fitting(name)

    def fitting(self, name: str) -> str:
        """Return the name, shortened where it is too long."""
        return shortened(name, self.longest)


def own_name(operation_id: str | None, method: str, path: str) -> str:
    """Return the name of an operation before it is told apart: its `operationId`, or method and path."""
    return plain_name(operation_id or f"{method}{path}")


def plain_name(text: str) -> str:
    """Return a tool's name for `getOrderById` or `GET/orders/{id}`: lower case, with underscores."""
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text)
    text = re.sub(r"([A-Z])([A-Z][a-z])", r"\1_\2", text)
    return re.sub(r"_+", "_", re.sub(r"[^a-z0-9_.]+", "_", text.lower())).strip("_.") or "operation"


_OWN_NAMES: Final = ImportedNames()
# Members of a path item that are not operations.
_OF_PATH_ITEM: Final = frozenset({"$ref", "summary", "description", "servers", "parameters"})
_READ_METHODS: Final = frozenset(method.lower() for method in METHODS)


def read_openapi(
    documents: Documents,
    is_wanted: Callable[[OperationHead], bool] = lambda _: True,
    rules: ArgumentRules = ANY_ARGUMENT,
    names: ImportedNames = _OWN_NAMES,
    servers: ServerChooser | None = None,
    warn: Callable[[str], None] = lambda _: None,
) -> list[ImportedOperation | LeftOutOperation]:
    """Return the operations of a document that are wanted, in its order.

    An operation that cannot be imported is left out, and stops no other one. `rules` say what may become an
    argument, `servers` chooses the base URL of each. `warn` is told what is served, but not checked.

    Raises `BadOpenAPI` where the document cannot be read, or is not OpenAPI 3.0 or 3.1, nor Swagger 2.0.
    """
    root = documents.root()
    servers = servers or ServerChooser(root)
    schemas = SchemaWriters(documents, _version(root))
    operations = [
        entry if isinstance(entry, LeftOutOperation) else _read(documents, entry, schemas, rules, servers)
        for entry in _told_apart(list(_entries(documents, root)), names)
        if is_wanted(_head(entry))
    ]
    if unchecked := schemas.unchecked_patterns:
        warn(_unchecked(unchecked, documents.entry))
    return operations


def _version(root: DocumentNode) -> str:
    """Return `3.0` or `3.1`; in YAML, it is often a number."""
    written = root.at("openapi").value
    text = str(written) if isinstance(written, str | float) else ""
    found = re.match(r"3\.[01](?=\.|$)", text)
    if found is not None:
        return found[0]
    if re.match(r"(?:3\.[1-9]|[4-9]|[1-9][0-9])", text):
        raise root.bad("is OpenAPI newer than supported: 3.0, 3.1; convert it to one of these")
    raise root.bad("must be OpenAPI 3.0 or 3.1, or Swagger 2.0; convert an older document first")


def _unchecked(places: list[str], file: str) -> str:
    what = "pattern is" if len(places) == 1 else "patterns are"
    return (
        f"{len(places)} {what} not checked in {file}, for being no pattern or not one that can be matched in "
        f"linear time; the descriptions have the text; the first is at {escaped(places[0])}"
    )


def operation_names(documents: Documents) -> list[str]:
    """Return the names of a document's operations, as they are before they are told apart.

    Raises `BadOpenAPI` where the document cannot be read.
    """
    return [entry.name for entry in _entries(documents, documents.root())]


class _Entry(NamedTuple):
    """One operation of the document, not yet read."""

    name: str
    method: str
    path: str
    item: DocumentNode
    node: DocumentNode
    place: DocumentNode
    """Where the path has the operation; it is `node` unless it is a reference to it."""
    own_name: str
    """Its name before it is told apart from others."""

    @property
    def places(self) -> tuple[str, ...]:
        return _places(self.path, self.method)

    def left_out(self, cause: Cause, sentence: str) -> LeftOutOperation:
        file, pointer = self.place.file, self.place.pointer
        return LeftOutOperation(self.name, file, pointer, self.method, cause, sentence, self.places)


def _entries(documents: Documents, root: DocumentNode) -> Iterator[_Entry | LeftOutOperation]:
    for path, item in root.at("paths").members.items():
        if _is_extension(path):
            continue
        try:
            resolved = documents.resolved(item)
            if not isinstance(resolved.value, dict):
                raise item.bad("a path must be an object")
        except BadOpenAPI as error:
            yield LeftOutOperation(
                plain_name(path), item.file, item.pointer, None, error.cause, str(error), _places(path)
            )
            continue
        for method in METHODS:
            if method.lower() in resolved.value:
                yield _entry(documents, path, resolved, method)
        yield from _other_members(path, resolved)


def _entry(documents: Documents, path: str, item: DocumentNode, method: str) -> _Entry | LeftOutOperation:
    place = item.at(method.lower())
    try:
        node = documents.resolved(place)
        if not isinstance(node.value, dict):
            raise place.bad("an operation must be an object")
    except BadOpenAPI as error:
        name = plain_name(f"{method}{path}")
        return LeftOutOperation(
            name, place.file, place.pointer, method, error.cause, str(error), _places(path, method)
        )
    name = own_name(node.text("operationId"), method, path)
    return _Entry(name, method, path, item, node, place, name)


def _other_members(path: str, item: DocumentNode) -> Iterator[LeftOutOperation]:
    """Yield what a path has beside its operations: `trace`, a method in capitals, or a misspelt one."""
    for key, node in item.members.items():
        if key in _OF_PATH_ITEM or key in _READ_METHODS or _is_extension(key):
            continue
        cause, sentence = Cause.UNSUPPORTED, "its method is not supported"
        if key.lower() in _READ_METHODS:
            cause, sentence = Cause.INVALID, "a method must be in lower case"
        name, method = plain_name(f"{key}{path}"), key.upper()
        yield LeftOutOperation(
            name, node.file, node.pointer, method, cause, str(node.bad(sentence)), _places(path, method)
        )


def _is_extension(key: str) -> bool:
    return key.startswith("x-")


def _told_apart(
    entries: list[_Entry | LeftOutOperation], names: ImportedNames
) -> list[_Entry | LeftOutOperation]:
    """Return the entries with distinct names."""
    counts = Counter(entry.name for entry in entries)
    told: list[_Entry | LeftOutOperation] = []
    for entry in entries:
        if isinstance(entry, _Entry):
            place = f"{entry.method} {entry.path}"
            told.append(entry._replace(name=names.distinct(entry.name, place, counts[entry.name])))
        else:
            told.append(replace(entry, name=names.fitting(entry.name)))
    return told


def _read(
    documents: Documents, entry: _Entry, schemas: SchemaWriters, rules: ArgumentRules, servers: ServerChooser
) -> ImportedOperation | LeftOutOperation:
    try:
        reader = OperationReader(documents, schemas, entry.item, entry.node, rules)
        imported = reader.read(entry.name, entry.method, entry.path)
        head = _head(entry)
        return imported._replace(
            file=entry.place.file,
            pointer=entry.place.pointer,
            places=entry.places,
            own_name=entry.own_name,
            tags=head.tags or (),
            is_deprecated=head.is_deprecated,
            requirement=read_requirement(documents.root(), entry.node),
            server=servers.choose(entry.item, entry.node),
        )
    except NotSupported as why:
        return entry.left_out(Cause.UNSUPPORTED, str(why))
    except BadOpenAPI as error:
        return entry.left_out(error.cause, str(error))
    except RecursionError:
        return entry.left_out(Cause.INVALID, "nested too deeply")


def _head(entry: _Entry | LeftOutOperation) -> OperationHead:
    if isinstance(entry, LeftOutOperation):
        return OperationHead(entry.name, places=entry.places)
    tags = tuple(item.value for item in entry.node.at("tags").items if isinstance(item.value, str))
    is_deprecated = entry.node.at("deprecated").value is True
    return OperationHead(entry.name, tags, is_deprecated, entry.places, entry.own_name)


def _places(path: str, method: str | None = None) -> tuple[str, ...]:
    return tuple(f"{each} {path}" for each in (METHODS if method is None else (method,)))


# Reads one operation of an OpenAPI document (3.0 or 3.1) for a tool.
#
# Parameters keep their places and serialization styles. The members of a body become arguments where the
# body is a plain object; otherwise the body is one argument. The schema of the 2xx responses is the output
# schema.
#
# A document often comes from a third party: its paths and content types must pass the same checks as the
# operator's, because both become part of requests.


class OperationHead(NamedTuple):
    """What is known of an operation before it is read: enough to tell whether it is wanted."""

    name: str
    tags: tuple[str, ...] | None = None
    """None where they are not known, because the operation cannot be read."""
    is_deprecated: bool = False
    places: tuple[str, ...] = ()
    """Its method and path, such as `GET /orders/{id}`; every method where the path cannot be read."""
    own_name: str = ""
    """Its name before a digest told it apart, and before it was shortened."""


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
    parts: tuple[BodyPart, ...] = ()
    """The fields of a body that is a form."""
    headers: tuple[tuple[str, str], ...] = ()
    """Headers of every request, beside those of parameters."""
    other_responses: tuple[str, ...] = ()
    """Further content types that a response may have."""
    outputs_by_status: tuple[tuple[str, JSONObject | bool], ...] = ()
    """The output schemas of single statuses, where they differ."""
    output_problem: str | None = None
    """Why its result cannot be checked against the output schema, or None where it can."""
    file: str = ""
    pointer: str = ""
    """The operation's JSON Pointer in `file`."""
    places: tuple[str, ...] = ()
    """Its method and path, as the document has them."""
    own_name: str = ""
    """Its name before a digest told it apart, and before it was shortened."""
    tags: tuple[str, ...] = ()
    is_deprecated: bool = False
    requirement: Requirement = ()
    """The security schemes that it requires."""
    server: Server | None = None
    """Where the document says that it is called, if it does."""

    def left_out(self, cause: Cause, sentence: str) -> LeftOutOperation:
        """Return why this operation is left out after all."""
        return LeftOutOperation(self.name, self.file, self.pointer, self.method, cause, sentence, self.places)


class OperationReader:
    """Reads one operation."""

    def __init__(
        self,
        documents: Documents,
        schemas: SchemaWriters,
        item: DocumentNode,
        node: DocumentNode,
        rules: ArgumentRules,
    ) -> None:
        self._documents = documents
        self._rules = rules
        self._item = item
        self._node = node
        self._input = schemas.input
        self._output = schemas.output

    def read(self, name: str, method: str, path: str) -> ImportedOperation:
        """Return the operation of `method` and `path` for the tool `name`.

        Raises `NotSupported` or `BadOpenAPI` where it cannot be one.
        """
        key = read_path_key(path)
        problem = problem_of_path(key.path)
        if problem is not None:
            raise NotSupported(f"its path {problem}")
        arguments = Arguments(self._rules)
        parameters = read_parameters(self._documents, self._item, self._node, key, arguments, self._input)
        body = read_body(self._documents, self._node, arguments, self._input)
        if method == "HEAD":
            result = ImportedResult({"type": "null"})
        else:
            result = read_responses(self._documents, self._node, self._output)
        taken = self._input.with_definitions(arguments.as_schema(is_open=body.is_open))
        if (problem := self._input.problem_of(taken)) is not None:
            raise self._node.bad(f"its input schema {problem}", Cause.INPUT_SCHEMA)
        return ImportedOperation(
            name,
            self._describe(method, path),
            method,
            with_query(key.path, arguments.fixed_query),
            parameters,
            body.argument,
            body.content_type is not None,
            body.content_type or JSON_TYPE,
            result.content_type,
            taken,
            result.schema,
            body.parts,
            tuple(arguments.fixed_headers.items()),
            result.other_types,
            result.by_status,
            self._problem_of(result),
        )

    def _problem_of(self, result: ImportedResult) -> str | None:
        """Return why a result cannot be checked, or None where it can be."""
        schemas = (result.schema, *(schema for _, schema in result.by_status))
        return next(filter(None, map(self._output.problem_of, schemas)), None)

    def _describe(self, method: str, path: str) -> str:
        words = [self._node.text("summary") or self._item.text("summary"), self._node.text("description")]
        return "\n\n".join(word.strip() for word in words if word) or f"{method} {path}"
