"""Single schema files, each with the schemas that lie beside it: what it refers to is found there."""

from __future__ import annotations

from pathlib import Path

from portbook.assets.bundling import Bundler
from portbook.assets.files import CannotRead, json_files, read_file
from portbook.errors import Refused
from portbook.model import JSONObject
from portbook.schema.cache import validator_for
from portbook.schema.engine import Validator
from portbook.wire.parsing import parse

__all__ = ["SchemaFiles"]


class SchemaFiles:
    """Reads schema files; a folder's are read once."""

    def __init__(self) -> None:
        self._folders: dict[Path, Bundler] = {}

    def read(self, path: Path) -> tuple[JSONObject, Validator]:
        """Return the schema in a file, with all that it refers to inside of it, and compiled.

        Raises `CannotRead` where it is no JSON object, `BadSchema` where it is no schema.
        """
        try:
            document = parse(read_file(path))
        except Refused as refused:
            raise CannotRead(f"not JSON: {refused.findings[0].message}") from None
        if not isinstance(document, dict):
            raise CannotRead("must be an object")
        bundle = self.bundle(path, document)
        return bundle, validator_for(bundle)

    def bundle(self, path: Path, document: JSONObject) -> JSONObject:
        """Return the schema `document` of the file at `path`, with all that it refers to inside of it."""
        place = path.resolve()
        bundler = self._folders.get(place.parent)
        if bundler is None:
            bundler = self._folders[place.parent] = Bundler(dict(_schemas_in(place.parent)))
        return bundler.bundle(place.as_uri(), document)


def _schemas_in(folder: Path) -> list[tuple[str, JSONObject]]:
    schemas: list[tuple[str, JSONObject]] = []
    for found in json_files(folder):
        try:
            document = parse(found.data) if not found.problem else None
        except Refused:
            continue  # whoever refers to it will be told that it is not there
        if isinstance(document, dict):
            schemas.append(((folder / found.path).as_uri(), document))
    return schemas
