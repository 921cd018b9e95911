"""Reads every operation of an OpenAPI document (3.0 or 3.1), path by path.

An operation that cannot be read is left out, and stops no other one. Each gets a name of its own: its
`operationId`, or its method and path.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from portbook.apis.left_out import Cause, LeftOutOperation
from portbook.apis.openapi_arguments import ANY_ARGUMENT, ArgumentRules, NotSupported
from portbook.apis.openapi_documents import BadOpenAPI, DocumentNode, Documents
from portbook.apis.openapi_operation import ImportedOperation, OperationReader
from portbook.apis.openapi_schemas import SchemaWriters
from portbook.escaping import escaped
from portbook.tools.operation import METHODS
from portbook.tools.tool_names import MAX_NAME, name_digest, shortened

__all__ = ["read_openapi"]


def read_openapi(
    documents: Documents,
    is_wanted: Callable[[str], bool] = lambda _: True,
    rules: ArgumentRules = ANY_ARGUMENT,
    longest_name: int = MAX_NAME,
    warn: Callable[[str], None] = lambda _: None,
) -> list[ImportedOperation | LeftOutOperation]:
    """Return the operations of a document whose names are wanted, in its order.

    An operation that cannot be imported is left out, and stops no other one. `rules` say what may become an
    argument. A longer name than `longest_name` is shortened. `warn` is told what is served, but not checked.

    Raises `BadOpenAPI` where the document cannot be read, or is not OpenAPI 3.0 or 3.1, nor Swagger 2.0.
    """
    root = documents.root()
    found = re.match(r"3\.[01](?=\.|$)", root.text("openapi") or "")
    if found is None:
        raise root.bad("must be OpenAPI 3.0 or 3.1, or Swagger 2.0; convert an older document first")
    schemas = SchemaWriters(documents, found[0])
    operations = [
        _read(documents, entry, schemas, rules) if isinstance(entry, _Entry) else entry
        for entry in _told_apart(list(_entries(documents, root)), longest_name)
        if is_wanted(entry.name)
    ]
    if unchecked := schemas.unchecked_patterns:
        warn(_unchecked(unchecked, documents.entry))
    return operations


def _unchecked(places: list[str], file: str) -> str:
    what = "pattern is" if len(places) == 1 else "patterns are"
    return (
        f"{len(places)} {what} not checked in {file}, for being no pattern or not one that can be matched in "
        f"linear time; the descriptions have the text; the first is at {escaped(places[0])}"
    )


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
    documents: Documents, entry: _Entry, schemas: SchemaWriters, rules: ArgumentRules
) -> ImportedOperation | LeftOutOperation:
    try:
        reader = OperationReader(documents, schemas, entry.item, entry.node, rules)
        imported = reader.read(entry.name, entry.method, entry.path)
        return imported._replace(file=entry.place.file, pointer=entry.place.pointer)
    except NotSupported as why:
        return entry.left_out(Cause.UNSUPPORTED, str(why))
    except BadOpenAPI as error:
        return entry.left_out(error.cause, str(error))
    except RecursionError:
        return entry.left_out(Cause.INVALID, "nested too deeply")


def _slug(text: str) -> str:
    """Return a tool's name for `getOrderById` or `GET/orders/{id}`: lower case, with underscores."""
    text = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", text)
    text = re.sub(r"([A-Z])([A-Z][a-z])", r"\1_\2", text)
    return re.sub(r"_+", "_", re.sub(r"[^a-z0-9_.]+", "_", text.lower())).strip("_.") or "operation"
