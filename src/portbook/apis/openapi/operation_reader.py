"""Reads one operation of an OpenAPI document (3.0 or 3.1) for a tool.

Parameters keep their places and serialization styles. The members of a body become arguments where the body
is a plain object; otherwise the body is one argument. The schema of the 2xx responses is the output schema.

A document often comes from a third party: its paths and content types must pass the same checks as the
operator's, because both become part of requests.
"""

from __future__ import annotations

from typing import NamedTuple

from portbook.apis.left_out_operations import Cause, LeftOutOperation
from portbook.apis.openapi.document_files import DocumentNode, Documents
from portbook.apis.openapi.imported_arguments import ArgumentRules, Arguments, NotSupported
from portbook.apis.openapi.parameters import read_parameters
from portbook.apis.openapi.path_keys import read_path_key, with_query
from portbook.apis.openapi.request_bodies import read_body
from portbook.apis.openapi.responses import ImportedResult, read_responses
from portbook.apis.openapi.schemas import SchemaWriters
from portbook.apis.openapi.security_schemes import Requirement
from portbook.apis.openapi.servers import Server
from portbook.model import JSONObject
from portbook.tools.http_operation import BodyPart, Parameter, problem_of_path
from portbook.tools.media_types import JSON_TYPE

__all__ = ["ImportedOperation", "OperationHead", "OperationReader"]


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
