"""Bundles each schema of a library with all schemas it refers to, into one self-contained document.

A schema's address is its `$id`, or the address of its file; both name it. The schemas it refers to, directly
or indirectly, are put under its `$defs`, where JSON Schema finds them by their `$id`. The original documents
are not changed. Pure: no I/O, nothing is ever fetched.
"""

from __future__ import annotations

import copy
import posixpath
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from portbook.errors import Finding
from portbook.escaping import escaped
from portbook.model import JSON, JSONObject
from portbook.schema.cache import validator_for
from portbook.schema.engine import BadSchema, Validator
from portbook.schema.references import Document, Path
from portbook.schema.violation_wording import escape_pointer, whole_pointer

__all__ = ["Bundler", "SchemaBundle"]


@dataclass(frozen=True, slots=True)
class _Placed:
    """A schema under its address, and its references to other documents."""

    uri: str
    """The address of its file."""
    address: str
    schema: JSONObject
    references: tuple[tuple[Path, str], ...]


@dataclass(frozen=True, slots=True)
class SchemaBundle:
    """A schema with all schemas it refers to inside it."""

    document: JSONObject
    missing: frozenset[str] = frozenset()
    """The addresses that it refers to and the library does not have."""
    _origins: dict[str, tuple[Path, str]] = field(default_factory=dict[str, tuple[Path, str]])
    """For each added schema, the reference that needs it, and its file."""
    _files: dict[str, str] = field(default_factory=dict[str, str])
    """The addresses of the files of added schemas."""

    def source_of(self, pointer: str) -> tuple[str | None, str]:
        """Return the address of the file that has a place of the bundle, None for its own, and the place."""
        for address, uri in self._files.items():
            top = whole_pointer(("$defs", address))
            if pointer == top or pointer.startswith(f"{top}/"):
                return uri, pointer.removeprefix(top)
        return None, pointer

    def compile(self) -> Validator:
        """Return its validator.

        Raises `BadSchema` where it cannot be compiled; findings in an added file are reported at the
        reference to it.
        """
        try:
            return validator_for(self.document)
        except BadSchema as error:
            raise BadSchema(tuple(map(self._own, error.findings))) from None

    def _own(self, finding: Finding) -> Finding:
        for address, (path, name) in self._origins.items():
            top = escape_pointer(("$defs", address))
            if finding.pointer == top or finding.pointer.startswith(f"{top}/"):
                below = finding.pointer.removeprefix(top) or "(root)"
                message = f"refers to {name}, which cannot be used: {below}: {finding.message}"
                return Finding(escape_pointer(path), message, finding.keyword, finding.schema_pointer)
        return finding


class Bundler:
    """Finds the schemas of a library by any of their addresses, and bundles them."""

    def __init__(self, schemas: Mapping[str, JSONObject]) -> None:
        """Add schemas by the addresses of their files; of two with the same `$id`, the first keeps it."""
        self._files: dict[str, _Placed] = {}
        self._named: dict[str, _Placed] = {}
        self.taken: dict[str, str] = {}
        """Files whose `$id` an earlier file has, each with that `$id`."""
        for uri, schema in schemas.items():
            self.add(uri, schema)

    def add(self, uri: str, schema: JSONObject) -> None:
        """Add a schema by the address of its file."""
        placed, resources = _place(uri, schema)
        self._files[uri] = placed
        for address in (*resources, uri):
            if self._named.setdefault(address, placed) is not placed:
                self.taken.setdefault(uri, address)

    def bundle(self, uri: str, schema: JSONObject | None = None) -> SchemaBundle:
        """Return the schema of the file at `uri`, with all schemas it refers to inside it.

        `schema` replaces the library's own; it may refer to schemas of the library. References to unknown
        schemas stay unchanged: compiling reports them.
        """
        root = self._files[uri] if schema is None else _place(uri, schema)[0]
        needed: dict[str, JSONObject] = {}
        origins: dict[str, tuple[Path, str]] = {}
        files: dict[str, str] = {}
        missing: set[str] = set()
        waiting: deque[tuple[_Placed, Path | None]] = deque([(root, None)])
        while waiting:
            placed, origin = waiting.popleft()
            for path, reference in placed.references:
                address = urldefrag(reference).url
                target = self._named.get(address)
                if target is None:
                    missing.add(address)
                elif target.address != root.address and target.address not in needed:
                    needed[target.address] = self._resolved(target)
                    way = path if origin is None else origin
                    origins[target.address] = (way, _shown(target.uri, root.uri))
                    files[target.address] = target.uri
                    waiting.append((target, way))
        whole = self._resolved(root)
        if needed:
            own = whole.get("$defs")
            definitions: JSON = {
                **(own if isinstance(own, dict) else {}),
                **dict(sorted(needed.items())),
            }
            whole = {**whole, "$defs": definitions}
        return SchemaBundle(whole, frozenset(missing), origins, files)

    def _resolved(self, placed: _Placed) -> JSONObject:
        """Return a schema whose references to other documents use their `$id`."""
        changed: list[tuple[Path, str]] = []
        for path, address in placed.references:
            url, fragment = urldefrag(address)
            target = self._files.get(url)
            if target is not None and target.address != url:
                changed.append((path, f"{target.address}#{fragment}" if fragment else target.address))
        if not changed:
            return placed.schema
        schema = copy.deepcopy(placed.schema)
        for path, address in changed:
            *way, last = path
            place: Any = schema
            for step in way:
                place = place[step]
            place[last] = address
        return schema


def _place(uri: str, schema: JSONObject) -> tuple[_Placed, list[str]]:
    """Return a schema with its absolute address, and the addresses of all resources in it."""
    identifier = schema.get("$id")
    try:
        address = urldefrag(urljoin(uri, identifier)).url if isinstance(identifier, str) else uri
    except ValueError:  # not an address: compiling reports it
        return _Placed(uri, uri, schema, ()), []
    # An `$id` of a wrong type stays: validation by the meta-schema reports it.
    named = (
        schema if identifier is not None and not isinstance(identifier, str) else {**schema, "$id": address}
    )
    try:
        document = Document(named)
        references = tuple(document.outside())
    except ValueError:
        return _Placed(uri, address, named, ()), [address]
    return _Placed(uri, address, named, references), [name for name in document.resources if name]


def _shown(uri: str, near: str) -> str:
    """Return a file's path relative to the folder of the file `near`."""
    path, other = (unquote(urlsplit(one).path) for one in (uri, near))
    return escaped(posixpath.relpath(path, posixpath.dirname(other)))
