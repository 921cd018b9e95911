"""Reads an OpenAPI document (3.0 or 3.1) into operations for tools.

Parameters keep their places and serialization styles. The members of a JSON body become arguments where the
body is a plain object; otherwise the body is one argument. The schema of the 2xx responses is the output
schema. Operations that need unsupported features (forms, files, cookies) are left out with a reason.

A document often comes from a third party: its paths and content types must pass the same checks as the
operator's, because both become part of requests.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from portbook.apis.left_out import Cause, LeftOutOperation
from portbook.apis.openapi_arguments import ANY_ARGUMENT, ArgumentRules, Arguments, NotSupported
from portbook.apis.openapi_bodies import read_body
from portbook.apis.openapi_documents import BadOpenAPI, DocumentNode, Documents
from portbook.apis.openapi_parameters import read_parameters
from portbook.apis.openapi_responses import read_responses
from portbook.apis.openapi_schemas import SchemaWriter
from portbook.model import JSONObject
from portbook.tools.media_types import JSON_TYPE, is_media_type
from portbook.tools.operation import METHODS, Parameter, problem_of_path
from portbook.tools.tool_names import MAX_NAME, name_digest, shortened

__all__ = ["ImportedOperation", "read_openapi"]


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


def read_openapi(
    documents: Documents,
    is_wanted: Callable[[str], bool] = lambda _: True,
    rules: ArgumentRules = ANY_ARGUMENT,
    longest_name: int = MAX_NAME,
) -> list[ImportedOperation | LeftOutOperation]:
    """Return the operations of a document whose names are wanted, in its order.

    An operation that cannot be imported is left out, and stops no other one. `rules` say what may become an
    argument. A longer name than `longest_name` is shortened.

    Raises `BadOpenAPI` where the document cannot be read, or is not OpenAPI 3.0 or 3.1.
    """
    root = documents.root()
    found = re.match(r"3\.[01](?=\.|$)", root.text("openapi") or "")
    if found is None:
        raise root.bad("must be OpenAPI 3.0 or 3.1; convert an older document first")
    return [
        entry if isinstance(entry, LeftOutOperation) else _read(documents, entry, found[0], rules)
        for entry in _told_apart(list(_entries(documents, root)), longest_name)
        if is_wanted(entry.name)
    ]


class _Entry(NamedTuple):
    """One operation of the document, not yet read."""

    name: str
    method: str
    path: str
    item: DocumentNode
    node: DocumentNode
    place: DocumentNode
    """Where the path has the operation; it is `node` unless it is a reference to it."""

    def left_out(self, cause: Cause, sentence: str) -> LeftOutOperation:
        return LeftOutOperation(self.name, self.place.file, self.place.pointer, self.method, cause, sentence)


def _entries(documents: Documents, root: DocumentNode) -> Iterator[_Entry | LeftOutOperation]:
    for path, item in root.at("paths").members.items():
        try:
            resolved = documents.resolved(item)
        except BadOpenAPI as error:
            yield LeftOutOperation(_slug(path), item.file, item.pointer, None, error.cause, str(error))
            continue
        for method in METHODS:
            place = resolved.at(method.lower())
            if not isinstance(place.value, dict):
                continue
            try:
                node = documents.resolved(place)
            except BadOpenAPI as error:
                name = _slug(f"{method}{path}")
                yield LeftOutOperation(name, place.file, place.pointer, method, error.cause, str(error))
                continue
            name = _slug(node.text("operationId") or f"{method}{path}")
            yield _Entry(name, method, path, resolved, node, place)


def _told_apart(entries: list[_Entry | LeftOutOperation], longest: int) -> list[_Entry | LeftOutOperation]:
    """Return the entries with distinct names of at most `longest` characters.

    All operations of one name get a digest of their method and path: a rule for the name must not silently
    mean one of them.
    """
    counts = Counter(entry.name for entry in entries)

    def name_of(entry: _Entry | LeftOutOperation) -> str:
        if counts[entry.name] == 1 or isinstance(entry, LeftOutOperation):
            return shortened(entry.name, longest)
        return shortened(f"{entry.name}_{name_digest(f'{entry.method} {entry.path}')}", longest)

    return [
        entry._replace(name=name_of(entry))
        if isinstance(entry, _Entry)
        else replace(entry, name=name_of(entry))
        for entry in entries
    ]


def _read(
    documents: Documents, entry: _Entry, version: str, rules: ArgumentRules
) -> ImportedOperation | LeftOutOperation:
    try:
        reader = _Reader(documents, version, entry.item, entry.node, rules)
        imported = reader.read(entry.name, entry.method, entry.path)
        return imported._replace(file=entry.place.file, pointer=entry.place.pointer)
    except NotSupported as why:
        return entry.left_out(Cause.UNSUPPORTED, str(why))
    except BadOpenAPI as error:
        return entry.left_out(error.cause, str(error))
    except RecursionError:
        return entry.left_out(Cause.INVALID, "nested too deeply")


class _Reader:
    """Reads one operation."""

    def __init__(
        self,
        documents: Documents,
        version: str,
        item: DocumentNode,
        node: DocumentNode,
        rules: ArgumentRules,
    ) -> None:
        self._documents = documents
        self._rules = rules
        self._item = item
        self._node = node
        self._input = SchemaWriter(documents, version, "input")
        self._output = SchemaWriter(documents, version, "output")

    def read(self, name: str, method: str, path: str) -> ImportedOperation:
        problem = problem_of_path(path)
        if problem is not None:
            raise NotSupported(f"its path {problem}")
        arguments = Arguments(self._rules)
        parameters = read_parameters(self._documents, self._item, self._node, path, arguments, self._input)
        body = read_body(self._documents, self._node, arguments, self._input)
        nothing: tuple[dict[str, Any], str] = ({"type": "null"}, JSON_TYPE)
        is_head = method == "HEAD"
        output, response = nothing if is_head else read_responses(self._documents, self._node, self._output)
        request = body.content_type or JSON_TYPE
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
            self._input.with_definitions(arguments.as_schema(is_open=body.is_open)),
            output,
        )

    def _describe(self, method: str, path: str) -> str:
        words = [self._node.text("summary") or self._item.text("summary"), self._node.text("description")]
        return "\n\n".join(word.strip() for word in words if word) or f"{method} {path}"


def _slug(text: str) -> str:
    """Return a tool's name for `getOrderById` or `GET/orders/{id}`: lower case, with underscores."""
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text)
    text = re.sub(r"([A-Z])([A-Z][a-z])", r"\1_\2", text)
    return re.sub(r"_+", "_", re.sub(r"[^a-z0-9_.]+", "_", text.lower())).strip("_.") or "operation"
