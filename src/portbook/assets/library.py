"""The library: the schemas and examples of two folders, read once and never again.

A schema that cannot be read or compiled is left out with a warning that names its file and the reason; the
others are served. What is looked up is looked up in memory: a name or a path of a caller's never reaches
the file system.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final, cast

from portbook.assets.bundling import Bundler
from portbook.assets.files import CannotRead, json_files
from portbook.assets.naming import ALIASES, component_of, named_schema, schema_name, version_of
from portbook.errors import Refused
from portbook.model import JSON, JSONObject
from portbook.schema.cache import validator_for
from portbook.schema.engine import BadSchema, Validator
from portbook.wire.parsing import parse

__all__ = ["EMPTY", "Example", "Library", "Schema", "find_folders", "load_library"]


@dataclass(frozen=True, slots=True)
class Schema:
    """One schema: as it is in its file, and compiled with all that it refers to."""

    name: str
    version: str
    path: str
    """As it is listed: the folder as it was named, and the file below it."""
    document: JSONObject
    validator: Validator


@dataclass(frozen=True, slots=True)
class Example:
    """One example, and the name of the schema that it is one of; there need not be such a schema."""

    component: str
    path: str
    """As it is listed: the folder as it was named, and the file below it."""
    below: str
    """The file below its folder."""
    document: JSONObject
    schema: str


@dataclass(frozen=True, slots=True)
class Library:
    """What was read. Both listings are in their final order."""

    schemas: tuple[Schema, ...] = ()
    examples: tuple[Example, ...] = ()
    warnings: tuple[str, ...] = ()
    _schemas: dict[str, Schema] = field(default_factory=dict[str, Schema])
    _examples: dict[str, Example] = field(default_factory=dict[str, Example])

    def schema(self, name: str) -> Schema | None:
        """Return the schema of this name, or alias, or in the file at this path; None for none."""
        return self._schemas.get(ALIASES.get(name, name))

    def example(self, path: str) -> Example | None:
        """Return the example in the file at `path`, below its folder or as it is listed; None for none."""
        return self._examples.get(path)

    @property
    def names(self) -> list[str]:
        """Return the names of all schemas."""
        return [schema.name for schema in self.schemas]

    def schema_for(self, asset: JSON, path: str) -> str:
        """Return the name of the schema that the asset in a file is meant for, whether it is there or not."""
        said = asset.get("schema") if isinstance(asset, dict) else None
        if isinstance(said, str) and said in self._schemas:
            return said
        return named_schema(asset, path, self.names)


EMPTY = Library()

# Where the asset specification's schemas and examples lie, in a checkout that has them as a submodule.
_SUBMODULE: Final = Path("libs/synesthetic-schemas")


def find_folders(schemas: Path | None, examples: Path | None) -> tuple[Path | None, Path | None]:
    """Return the folders of a library: those that are named, else those of the submodule, if it is there."""
    return (
        schemas or _if_there(_SUBMODULE / "jsonschema"),
        examples or _if_there(_SUBMODULE / "examples"),
    )


def _if_there(folder: Path) -> Path | None:
    return folder if folder.is_dir() else None


def load_library(schemas: Path | None, examples: Path | None) -> Library:
    """Read the two folders, either of which may be missing."""
    warnings: list[str] = []
    compiled = _compile(schemas, warnings) if schemas is not None else []
    by_name = {schema.name: schema for _, schema in compiled}
    found = list(_examples(examples, list(by_name), warnings)) if examples is not None else []
    # A name wins over a path: a file in another folder may be called as a schema is.
    return Library(
        schemas=tuple(
            sorted(by_name.values(), key=lambda schema: (schema.name, schema.version, schema.path))
        ),
        examples=tuple(
            sorted((example for _, example in found), key=lambda example: (example.component, example.path))
        ),
        warnings=tuple(warnings),
        _schemas=dict(compiled) | {schema.path: schema for _, schema in compiled} | by_name,
        _examples={example.path: example for _, example in found} | dict(found),
    )


def _compile(folder: Path, warnings: list[str]) -> list[tuple[str, Schema]]:
    """Return the schemas of a folder by their paths below it."""
    documents = _by_name(dict(_objects(folder, warnings)), folder, warnings)
    top = folder.resolve()
    addresses = {path: (top / path).as_uri() for path in documents}
    bundler = Bundler({addresses[path]: document for path, document in documents.items()})
    compiled: list[tuple[str, Schema]] = []
    for path, document in documents.items():
        shown = _shown(folder, path)
        if addresses[path] in bundler.taken:
            warnings.append(f"{shown}: another schema has the same $id; references to it lead there")
        try:
            validator = validator_for(bundler.bundle(addresses[path]))
        except BadSchema as error:
            finding = error.findings[0]
            warnings.append(f"{shown}: {finding.pointer or '(root)'}: {finding.message}")
            continue
        schema = Schema(schema_name(path), version_of(document), shown, document, validator)
        compiled.append((path, schema))
    return compiled


def _by_name(documents: dict[str, JSONObject], folder: Path, warnings: list[str]) -> dict[str, JSONObject]:
    """Leave out `tone.json` where there is `tone.schema.json`: a name stands for one schema."""
    kept: dict[str, str] = {}
    for path in sorted(documents, key=lambda path: (not path.endswith(".schema.json"), path)):
        other = kept.setdefault(schema_name(path), path)
        if other != path:
            warnings.append(f"{_shown(folder, path)}: {other} has the same name; rename one")
    return {path: documents[path] for path in sorted(kept.values())}


def _examples(folder: Path, names: list[str], warnings: list[str]) -> Iterator[tuple[str, Example]]:
    for path, document in _objects(folder, warnings):
        schema = named_schema(document, path, names)
        yield path, Example(component_of(path), _shown(folder, path), path, document, schema)


def _objects(folder: Path, warnings: list[str]) -> Iterator[tuple[str, JSONObject]]:
    """Yield the JSON objects in a folder's files; the contracts of schemas and examples know nothing else."""
    try:
        for found in json_files(folder):
            try:
                document: JSON = _parsed(found.data, found.problem)
            except CannotRead as reason:
                warnings.append(f"{_shown(folder, found.path)}: {reason}")
            else:
                yield found.path, cast("JSONObject", document)
    except CannotRead as reason:
        warnings.append(f"{folder}: {reason}")


def _parsed(data: bytes, problem: str) -> JSON:
    if problem:
        raise CannotRead(problem)
    try:
        document = parse(data)
    except Refused as refused:
        raise CannotRead(f"not JSON: {refused.findings[0].message}") from None
    if not isinstance(document, dict):
        raise CannotRead("must be an object")
    return document


def _shown(folder: Path, path: str) -> str:
    return (PurePosixPath(folder.as_posix()) / path).as_posix()
