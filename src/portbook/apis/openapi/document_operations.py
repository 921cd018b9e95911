"""Reads every operation of an OpenAPI document (3.0 or 3.1), path by path.

An operation that cannot be read is left out, and stops no other one. Each gets a name of its own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

from portbook.apis.left_out_operations import Cause, LeftOutOperation
from portbook.apis.openapi.document_files import BadOpenAPI, DocumentNode, Documents
from portbook.apis.openapi.imported_arguments import ANY_ARGUMENT, ArgumentRules, NotSupported
from portbook.apis.openapi.operation_names import ImportedNames, own_name, plain_name
from portbook.apis.openapi.operation_reader import ImportedOperation, OperationHead, OperationReader
from portbook.apis.openapi.schemas import SchemaWriters
from portbook.apis.openapi.security_schemes import read_requirement
from portbook.apis.openapi.servers import ServerChooser
from portbook.escaping import escaped
from portbook.tools.http_methods import METHODS

__all__ = ["operation_names", "read_openapi"]


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
