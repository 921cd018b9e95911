"""Schema files, and the files that they refer to.

A file in a library's folder can refer to any file of that folder. Any other file can refer to files in or
below its own folder: those named by path are read when needed. For one named by `$id`, the files beside it
are searched, and with `is_deep` those below its folder too.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from portbook.assets.bundled_schemas import Bundler, SchemaBundle
from portbook.assets.json_files import CannotRead, json_files, objects_in, parsed_object, read_below
from portbook.assets.library_folder_paths import listed_folder
from portbook.assets.schema_names_and_versions import schema_name
from portbook.escaping import escaped
from portbook.model import JSONObject

__all__ = ["LeftOut", "SchemaFiles", "SchemaFolder"]


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
