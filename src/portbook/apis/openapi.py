"""Reads an OpenAPI document (3.0 or 3.1) into operations for tools.

Parameters keep their places and serialization styles. The members of a JSON body become arguments where the
body is a plain object; otherwise the body is one argument. The schema of the 2xx responses is the output
schema. Operations that need unsupported features (forms, files, cookies) are skipped with a reason.

A document often comes from a third party: its paths and content types must pass the same checks as the
operator's, because both become part of requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from portbook.apis.openapi_arguments import ANY_ARGUMENT, ArgumentRules, Arguments, NotSupported
from portbook.apis.openapi_bodies import read_body
from portbook.apis.openapi_documents import DocumentNode, Documents
from portbook.apis.openapi_parameters import read_parameters
from portbook.apis.openapi_responses import read_responses
from portbook.apis.openapi_schemas import SchemaWriter
from portbook.model import JSONObject
from portbook.tools.media_types import JSON_TYPE, is_media_type
from portbook.tools.operation import METHODS, Parameter, problem_of_path

__all__ = ["ImportedOperation", "Skipped", "read_openapi"]


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


class Skipped(NamedTuple):
    """An operation that cannot be a tool, with the reason."""

    name: str
    reason: str


def read_openapi(
    documents: Documents,
    is_wanted: Callable[[str], bool] = lambda _: True,
    rules: ArgumentRules = ANY_ARGUMENT,
) -> list[ImportedOperation | Skipped]:
    """Return the operations of a document whose names are wanted, in its order.

    `rules` say what may become an argument.

    Raises `BadOpenAPI` where it is not OpenAPI 3.0 or 3.1, or a reference has no target.
    """
    root = documents.root()
    found = re.match(r"3\.[01](?=\.|$)", root.text("openapi") or "")
    if found is None:
        raise root.bad("must be OpenAPI 3.0 or 3.1; convert an older document first")
    try:
        return list(_operations(documents, root, found[0], is_wanted, rules))
    except RecursionError:
        raise root.bad("nested too deeply") from None


def _operations(
    documents: Documents,
    root: DocumentNode,
    version: str,
    is_wanted: Callable[[str], bool],
    rules: ArgumentRules,
) -> Iterator[ImportedOperation | Skipped]:
    for path, item in root.at("paths").members.items():
        resolved = documents.resolved(item)
        for method in METHODS:
            node = resolved.at(method.lower())
            if not isinstance(node.value, dict):
                continue
            name = _slug(node.text("operationId") or f"{method}{path}")
            if not is_wanted(name):
                continue
            try:
                reader = _Reader(documents, version, resolved, node, rules)
                yield reader.read(name, method, path)
            except NotSupported as why:
                yield Skipped(name, str(why))


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
