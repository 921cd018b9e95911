"""One file checked, as a person wants to hear of it: what is wrong, and where in the file.

A file whose name ends in `.schema.json` is a schema and is checked as one, with those that it refers to. Any
other is an asset, and is checked by the schema that it names or that was asked for.
"""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple

from portbook.assets.files import CannotRead, read_named, read_walked
from portbook.assets.library import Library, Schema
from portbook.assets.positions import Span, locate, span_at
from portbook.assets.schema_files import SchemaFiles
from portbook.assets.validate import explain, without_reference
from portbook.errors import Finding, Refused
from portbook.model import JSON
from portbook.schema.engine import BadSchema
from portbook.wire.parsing import parse

__all__ = ["MAX_BYTES", "Checker", "File", "Problem", "Report"]

# What one file may have: a person names it, so it may be larger than what a library holds.
MAX_BYTES: Final = 64 * 1024 * 1024

# Whoever checks a file waits for the answer: explaining it may take as long as it takes.
_EFFORT: Final = 1_000_000

_POSITION: Final = re.compile(r" \(line (\d+), column (\d+)\)$")


class Problem(NamedTuple):
    """One thing that is wrong with a file."""

    pointer: str
    message: str
    span: Span | None
    """Where; None where the file could not even be read."""


class Report(NamedTuple):
    """What is to be said of one file."""

    path: str
    schema: str
    """The name of the schema that it was checked by; empty where there is none."""
    problems: tuple[Problem, ...] = ()
    is_json: bool = True


class File(NamedTuple):
    """A file that is to be checked."""

    path: str
    folder: str | None = None
    """The folder that it was found in, which no link may lead out of; None where a person named it."""
    problem: str = ""
    """Why there is nothing to read."""


class Checker:
    """Checks files by the schemas of a library, or assets by one, whatever they name."""

    def __init__(self, library: Library, only: Schema | None = None) -> None:
        self._library = library
        self._only = only
        self._files = SchemaFiles(library.folder)

    def check(self, file: File) -> Report:
        """Return the report of one file."""
        path = file.path
        try:
            data = _read(file)
        except CannotRead as reason:
            return Report(path, "", (Problem("", str(reason), None),), is_json=False)
        try:
            document = parse(data)
        except Refused as refused:
            return Report(path, "", (_not_json(data, refused.findings[0].message),), is_json=False)
        if path.endswith(".schema.json"):
            name, findings = "", self._check_schema(path, document)
        else:
            name, findings = self._check_asset(path, document)
        if not findings:
            return Report(path, name)
        spans = locate(data.decode(), {finding.pointer for finding in findings})
        told = sorted({(finding.pointer, finding.message) for finding in findings})
        problems = [Problem(pointer, message, spans[pointer]) for pointer, message in told]
        problems.sort(key=lambda problem: (problem.span or _NOWHERE)[:2])
        return Report(path, name, tuple(problems))

    def _check_asset(self, path: str, asset: JSON) -> tuple[str, tuple[Finding, ...]]:
        schema = self._only
        if schema is None:
            name = self._library.schema_for(asset, os.path.basename(path))  # noqa: PTH119 - per file, and ten times faster
            schema = self._library.schema(name)
            if schema is None:
                return name, (Finding("", f"meant for the schema {name[:60]!r}, which is not there", "", ""),)
        asset = without_reference(asset)
        is_allowed = schema.validator.allows(asset)
        return schema.name, () if is_allowed else explain(schema, asset, _EFFORT)

    def _check_schema(self, path: str, document: JSON) -> tuple[Finding, ...]:
        if not isinstance(document, dict):
            return (Finding("", "a schema must be an object here", "", ""),)
        try:
            self._files.bundle(path, document).compile()
        except BadSchema as error:
            return error.findings
        return ()


def _read(file: File) -> bytes:
    if file.problem:
        raise CannotRead(file.problem)
    if file.folder is None:
        return read_named(file.path, MAX_BYTES)
    return read_walked(file.path, file.folder, MAX_BYTES)


_NOWHERE: Final = Span(0, 0, "", 0, 0)


def _not_json(data: bytes, message: str) -> Problem:
    position = _POSITION.search(message)
    if position is None:
        return Problem("", f"not JSON: {message}", None)
    line, column = int(position[1]), int(position[2])
    # The parser counts bytes, people count characters.
    before = data.split(b"\n")[line - 1][:column].decode("utf-8", "replace")
    span = span_at(data.decode("utf-8", "replace"), line, len(before))
    return Problem("", f"not JSON: {message[: position.start()]}", span)
