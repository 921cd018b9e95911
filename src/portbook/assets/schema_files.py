"""Schema files: the files that they refer to, as one document each; their names and versions.

- `SchemaFiles`: a file in a library's folder can refer to any file of that folder. Any other file can refer
  to files in or below its own folder: those named by path are read when needed. For one named by `$id`, the
  files beside it are searched, and with `is_deep` those below its folder too.
- `Bundler`: each schema with all schemas it refers to, as one self-contained document. A schema's address is
  its `$id`, or the address of its file; both name it. The schemas it refers to, directly or indirectly, are
  put under its `$defs`, where JSON Schema finds them by their `$id`. The original documents are not changed,
  and nothing is ever fetched.
- Names of schemas and examples, from their file names, and versions of schemas.
"""

from __future__ import annotations

import copy
import posixpath
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

from portbook.assets.json_files import CannotRead, json_files, objects_in, parsed_object, read_below
from portbook.assets.library_folder_paths import listed_folder
from portbook.errors import Finding
from portbook.escaping import escaped
from portbook.model import JSON, JSONObject
from portbook.schema.engine import BadSchema, Validator, validator_for
from portbook.schema.references import Document
from portbook.schema.references import Path as PathInSchema
from portbook.schema.violation_wording import escape_pointer, whole_pointer

__all__ = [
    "ALIASES",
    "ASSET",
    "Bundler",
    "LeftOut",
    "SchemaBundle",
    "SchemaFiles",
    "SchemaFolder",
    "component_of",
    "schema_name",
    "version_of",
]


class LeftOut(NamedTuple):
    """A schema that cannot be used."""

    path: str
    """Its path, in the form of listings."""
    reason: str


class SchemaFolder:
    """The schemas of a library's folder, read once, on first use."""

    def __init__(self, folder: Path, home: Path = Path()) -> None:
        """Use the schemas of `folder`; their listed paths are relative to `home` where it holds them."""
        self.warnings: list[str] = []
        """Warnings about files that are left out; complete once `documents` was read."""
        self.left_out: dict[str, LeftOut] = {}
        """Unusable schemas, by the names that they would have."""
        self._folder = folder
        self._top = folder.resolve()
        self._listed = listed_folder(folder, home)

    @cached_property
    def documents(self) -> dict[str, JSONObject]:
        """The schemas by their paths below the folder: one for each name."""
        documents = dict(objects_in(self._folder, self.leave_out))
        kept: dict[str, str] = {}
        # A name means one schema: `tone.json` is left out where there is `tone.schema.json`.
        for path in sorted(documents, key=lambda path: (not path.endswith(".schema.json"), path)):
            other = kept.setdefault(schema_name(path), path)
            if other != path:
                self.warn(path, f"{escaped(other)} has the same name; rename one")
        return {path: documents[path] for path in sorted(kept.values())}

    @cached_property
    def _bundler(self) -> Bundler:
        return Bundler({self._uri(path): document for path, document in self.documents.items()})

    def has(self, place: Path) -> bool:
        """Return whether a file, given by its resolved path, is below this folder."""
        return place.is_relative_to(self._top)

    def listed(self, place: Path) -> str:
        """Return the listed path of a file below this folder, given by its resolved path."""
        return self.shown(place.relative_to(self._top).as_posix())

    def bundle(self, path: str) -> SchemaBundle:
        """Return the schema at a path below the folder, with all schemas it refers to."""
        uri = self._uri(path)
        if uri in self._bundler.taken:
            self.warn(path, "an earlier schema has the same $id; references resolve to that one")
        return self._bundler.bundle(uri)

    def bundle_of(self, place: Path, document: JSONObject) -> SchemaBundle:
        """Return `document`, read from a file of this folder, with all schemas it refers to."""
        return self._bundler.bundle(place.as_uri(), document)

    def leave_out(self, path: str, reason: str) -> None:
        """Record that the file at a path below the folder cannot be used, with the reason."""
        self.left_out.setdefault(schema_name(path), LeftOut(self.shown(path), reason))
        self.warn(path, escaped(reason, 1024))

    def warn(self, path: str, problem: str) -> None:
        """Add a warning about the file at a path below the folder."""
        self.warnings.append(f"{escaped(self.shown(path), 1024)}: {problem}")

    def shown(self, path: str) -> str:
        """Return the listed path of a file below the folder."""
        return (self._listed / path).as_posix()

    def _uri(self, path: str) -> str:
        return (self._top / path).as_uri()


class SchemaFiles:
    """Reads single schema files; the library's folder is read only for its own files."""

    def __init__(self, library: SchemaFolder | None = None, *, is_deep: bool = False) -> None:
        self._library = library
        self._is_deep = is_deep
        self._beside: dict[Path, list[tuple[str, JSONObject]]] = {}

    def bundle(self, path: str, document: JSONObject) -> SchemaBundle:
        """Return the schema `document` of the file at `path`, with all schemas it refers to inside it."""
        place = Path(path).resolve()
        if self._library is not None and self._library.has(place):
            return self._library.bundle_of(place, document)
        bundler = Bundler({})
        looked_for: set[str] = set()
        while True:
            bundle = bundler.bundle(place.as_uri(), document)
            wanted = bundle.missing - looked_for
            if not wanted:
                return bundle
            looked_for |= wanted
            for uri, found in self._find(wanted, place.parent):
                bundler.add(uri, found)

    def _find(self, wanted: frozenset[str], folder: Path) -> list[tuple[str, JSONObject]]:
        """Return the files at these addresses; where one is not a file's address, all in the folder."""
        found: list[tuple[str, JSONObject]] = []
        for address in sorted(wanted):
            if address.startswith("file:"):
                try:
                    path = Path(unquote(urlsplit(address).path)).relative_to(folder)
                    found.append((address, parsed_object(read_below(folder, str(path)))))
                except (CannotRead, ValueError):
                    continue  # missing: compiling reports it
        if not all(address.startswith("file:") for address in wanted):
            found += self._all_in(folder)
        return found

    def _all_in(self, folder: Path) -> list[tuple[str, JSONObject]]:
        if folder not in self._beside:
            found: list[tuple[str, JSONObject]] = []
            try:
                for file in json_files(folder, is_deep=self._is_deep):
                    try:
                        found.append(((folder / file.path).as_uri(), parsed_object(file.data)))
                    except CannotRead:
                        continue
            except CannotRead:  # the folder cannot be listed
                found = []
            self._beside[folder] = found
        return self._beside[folder]


# One document per schema.


@dataclass(frozen=True, slots=True)
class _Placed:
    """A schema under its address, and its references to other documents."""

    uri: str
    """The address of its file."""
    address: str
    schema: JSONObject
    references: tuple[tuple[PathInSchema, str], ...]


@dataclass(frozen=True, slots=True)
class SchemaBundle:
    """A schema with all schemas it refers to inside it."""

    document: JSONObject
    missing: frozenset[str] = frozenset()
    """The addresses that it refers to and the library does not have."""
    _origins: dict[str, tuple[PathInSchema, str]] = field(default_factory=dict[str, tuple[PathInSchema, str]])
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
        origins: dict[str, tuple[PathInSchema, str]] = {}
        files: dict[str, str] = {}
        missing: set[str] = set()
        waiting: deque[tuple[_Placed, PathInSchema | None]] = deque([(root, None)])
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
        changed: list[tuple[PathInSchema, str]] = []
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


# Names and versions.

# The schema that validates assets before they are sent to a backend.
ASSET: Final = "synesthetic-asset"

# Aliases of schemas.
ALIASES: Final = {"nested-synesthetic-asset": ASSET}

_SUFFIXES: Final = (".schema.json", ".json")


def schema_name(path: str) -> str:
    """Return the name of the schema in the file at `path`: the path below its folder, without suffix."""
    suffix = next((suffix for suffix in _SUFFIXES if path.endswith(suffix)), "")
    return path.removesuffix(suffix)


def component_of(path: str) -> str:
    """Return the component of the example at `path`: its file name up to the first dot."""
    return PurePosixPath(path).name.split(".", 1)[0]


# The version of a schema: what it says, or what the path of its `$id` says.

_VERSION: Final = re.compile(r"v?(\d+\.\d+(?:\.\d+)?(?:[-+][0-9A-Za-z.-]+)?)", re.ASCII)


def version_of(document: JSONObject) -> str:
    """Return the `version` of a schema, or the one in the path of its `$id`; empty for none."""
    version = document.get("version")
    if isinstance(version, str | int | float) and not isinstance(version, bool):
        return str(version)
    identifier = document.get("$id")
    parts = identifier.split("/")[:-1] if isinstance(identifier, str) else []
    return next((found[1] for part in reversed(parts) if (found := _VERSION.fullmatch(part))), "")
