"""`Library`: the schemas and examples of two folders, read once.

A schema that cannot be read or compiled is left out, with a warning that names its file and the reason; the
rest are served. Lookups use memory only: a caller's name or path never reaches the file system.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

from portbook.assets.json_files import objects_in
from portbook.assets.library_folder_paths import listed_folder, spelled_folder
from portbook.assets.schema_choice import named_schema
from portbook.assets.schema_files import ALIASES, LeftOut, SchemaFolder, component_of, schema_name, version_of
from portbook.escaping import escaped
from portbook.model import JSON, JSONObject
from portbook.schema.engine import BadSchema, Validator

__all__ = ["EMPTY", "Library", "LibrarySchema", "load_library"]


@dataclass(frozen=True, slots=True)
class LibrarySchema:
    """One schema: its document, and its validator with all schemas it refers to."""

    name: str
    version: str
    path: str
    """As listed: relative to the project's folder where that holds it, otherwise absolute."""
    document: JSONObject
    validator: Validator


@dataclass(frozen=True, slots=True)
class Example:
    """One example, and the name of its schema, which may not exist."""

    component: str
    path: str
    """As listed: relative to the project's folder where that holds it, otherwise absolute."""
    below: str
    """Its path below the folder."""
    document: JSONObject
    schema: str


@dataclass(frozen=True, slots=True)
class Library:
    """The schemas and examples that were read, in the order of listings."""

    schemas: tuple[LibrarySchema, ...] = ()
    examples: tuple[Example, ...] = ()
    warnings: tuple[str, ...] = ()
    folder: SchemaFolder | None = None
    """The folder of the schemas."""
    _schemas: dict[str, LibrarySchema] = field(default_factory=dict[str, LibrarySchema])
    _examples: dict[str, Example] = field(default_factory=dict[str, Example])

    def schema(self, name: str) -> LibrarySchema | None:
        """Return the schema with this name, alias or path, to validate with; None where there is none."""
        return self._schemas.get(ALIASES.get(name, name))

    def named(self, name: str) -> LibrarySchema | None:
        """Return the schema listed under this name or path; None where there is none.

        An alias is used only where no schema has that name.
        """
        return self._schemas.get(name) or self.schema(name)

    def left_out_for(self, asset: JSON, path: str) -> tuple[str, LeftOut] | None:
        """Return the name and the reason of the unusable schema that an asset is meant for, or None."""
        left_out = self.folder.left_out if self.folder is not None else {}
        name = named_schema(asset, path, left_out)
        name = ALIASES.get(name, name)
        return (name, left_out[name]) if name in left_out else None

    def example(self, path: str) -> Example | None:
        """Return the example at `path`, below its folder, with the folder as configured, or as listed."""
        return self._examples.get(path)

    @property
    def names(self) -> list[str]:
        """Return the names of all schemas."""
        return [schema.name for schema in self.schemas]

    def schema_for(self, asset: JSON, path: str) -> str:
        """Return the name of the schema that an asset is meant for, whether it exists or not.

        Its member `schema` may also be the path of a schema's file.
        """
        said = asset.get("schema") if isinstance(asset, dict) else None
        if isinstance(said, str) and said in self._schemas:
            return self._schemas[said].name
        return named_schema(asset, path, self.names)


EMPTY = Library()


def load_library(schemas: Path | None, examples: Path | None, home: Path = Path()) -> Library:
    """Read the two folders; each may be None. Listed paths are relative to `home`, the project's folder."""
    folder = SchemaFolder(schemas, home) if schemas is not None else None
    compiled = _compile(folder) if folder is not None else []
    by_name = {schema.name: schema for _, schema in compiled}
    library = Library(
        schemas=tuple(
            sorted(by_name.values(), key=lambda schema: (schema.name, schema.version, schema.path))
        ),
        warnings=tuple(folder.warnings) if folder is not None else (),
        folder=folder,
        # A name wins over a path, because a file's path may equal a schema's name.
        _schemas=_by_path(schemas, home, compiled) | by_name,
    )
    return library if examples is None else _with_examples(library, examples, home)


def _by_path(
    folder: Path | None, home: Path, compiled: list[tuple[str, LibrarySchema]]
) -> dict[str, LibrarySchema]:
    """Return schemas by their paths: with the folder as configured, below the folder, and as listed."""
    folders = [] if folder is None else spelled_folder(folder, home)
    configured = {start + path: schema for start in folders for path, schema in compiled}
    return configured | dict(compiled) | {schema.path: schema for _, schema in compiled}


def _compile(folder: SchemaFolder) -> list[tuple[str, LibrarySchema]]:
    """Return the compiled schemas of a folder with their paths below it."""
    compiled: list[tuple[str, LibrarySchema]] = []
    for path, document in folder.documents.items():
        try:
            validator = folder.bundle(path).compile()
        except BadSchema as error:
            finding = error.findings[0]
            folder.leave_out(path, f"{finding.pointer or '(root)'}: {finding.message}")
            continue
        schema = LibrarySchema(
            schema_name(path), version_of(document), folder.shown(path), document, validator
        )
        compiled.append((path, schema))
    return compiled


def _with_examples(library: Library, folder: Path, home: Path) -> Library:
    warnings: list[str] = []
    listed = listed_folder(folder, home)

    def leave_out(path: str, reason: str) -> None:
        warnings.append(f"{escaped((listed / path).as_posix(), 1024)}: {escaped(reason, 1024)}")

    found = [
        Example(
            component_of(path), (listed / path).as_posix(), path, document, library.schema_for(document, path)
        )
        for path, document in objects_in(folder, leave_out)
    ]
    return replace(
        library,
        examples=tuple(sorted(found, key=lambda example: (example.component, example.path))),
        warnings=(*library.warnings, *warnings),
        _examples={start + each.below: each for start in spelled_folder(folder, home) for each in found}
        | {example.path: example for example in found}
        | {example.below: example for example in found},
    )
