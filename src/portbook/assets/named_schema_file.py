"""A schema file that a person names: ready to use, or every problem of it with its place."""

from __future__ import annotations

from typing import NamedTuple

from portbook.assets.bundled_schemas import SchemaBundle
from portbook.assets.json_files import CannotRead, read_named
from portbook.assets.schema_files import SchemaFiles
from portbook.assets.validate_file import MAX_BYTES, FileProblem, Report, not_json, placed
from portbook.errors import Refused
from portbook.model import JSON, JSONObject
from portbook.schema.engine import BadSchema, Validator
from portbook.wire.parsing import parse

__all__ = ["SchemaSource", "UnusableFile", "lines_of", "read_document", "read_schema"]


class UnusableFile(Exception):
    """A file that is no JSON, or no schema; the report says why, and where."""

    def __init__(self, path: str, *problems: FileProblem) -> None:
        super().__init__()
        self.report = Report(path, "", problems, is_checked=False)


class SchemaSource(NamedTuple):
    """A schema: its text, and what it is with the schemas that it refers to."""

    text: str
    document: JSONObject
    bundle: SchemaBundle
    validator: Validator


def read_document(path: str) -> JSON:
    """Return the JSON in a file.

    Raises `UnusableFile` where there is none.
    """
    return _read(path)[1]


def read_schema(files: SchemaFiles, path: str) -> SchemaSource:
    """Return the schema in a file.

    Raises `UnusableFile` where it cannot be used.
    """
    text, document = _read(path)
    if not isinstance(document, dict):
        raise UnusableFile(path, *placed({("", "a schema must be an object"): ""}, text, document))
    try:
        bundle = files.bundle(path, document)
        return SchemaSource(text, document, bundle, bundle.compile())
    except CannotRead as reason:
        raise UnusableFile(path, FileProblem("", str(reason), None, "file")) from None
    except BadSchema as error:
        found = {(finding.pointer, finding.message): finding.keyword for finding in error.findings}
        raise UnusableFile(path, *placed(found, text, document)) from None


def lines_of(report: Report) -> list[str]:
    """Return the problems of a file, each as one text that begins with its place."""
    lines: list[str] = []
    for problem in report.problems:
        span = problem.span
        place = report.path if span is None else f"{report.path}:{span.line}:{span.column}"
        # A file that cannot be parsed has no places of its own.
        pointer = "" if problem.rule in ("file", "json") else f"{problem.pointer or '(root)'}: "
        lines.append(f"{place}: {pointer}{problem.message}")
    return lines


def _read(path: str) -> tuple[str, JSON]:
    try:
        data = read_named(path, MAX_BYTES)
    except CannotRead as reason:
        raise UnusableFile(path, FileProblem("", str(reason), None, "file")) from None
    try:
        return data.decode("utf-8", "replace"), parse(data)
    except Refused as refused:
        raise UnusableFile(path, not_json(data, refused.findings[0].message)) from None
