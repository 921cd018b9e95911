"""`Checker`: validates one file and reports its problems with their places in the source.

A file whose name ends in `.schema.json` is checked as a schema, with the schemas it refers to; so is a file
of the library that names no other schema. Any other file is an asset, and is validated by the schema that it
names or that the operator chose.

- `read_schema`: a schema file that a person names: ready to use, or every problem of it with its place.
- `misspelt_keywords`: keywords of a schema that are one slip away from those of JSON Schema. A schema may
  hold any keyword, and one that is unknown is never checked: a misspelt one allows everything, and nobody is
  told.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from portbook.assets.json_files import STDIN, CannotRead, read_named, read_walked
from portbook.assets.library import Library, LibrarySchema
from portbook.assets.schema_choice import SCHEMA_REFERENCE
from portbook.assets.schema_files import SchemaBundle, SchemaFiles
from portbook.assets.validate_asset import explain, without_reference
from portbook.errors import Finding, Refused
from portbook.escaping import escaped
from portbook.model import JSON, JSONObject
from portbook.schema.engine import BadSchema, Validator
from portbook.schema.violation_wording import UNEXPECTED, shorten, whole_pointer
from portbook.text.did_you_mean import did_you_mean
from portbook.wire.parsing import DUPLICATE_KEY, parse
from portbook.wire.source_positions import Span, locate, name_before, span_at

__all__ = [
    "MAX_BYTES",
    "Checker",
    "File",
    "FileProblem",
    "Report",
    "UnusableFile",
    "lines_of",
    "misspelt_keywords",
    "placed",
    "read_document",
    "read_schema",
]

# The limit of one file; it is named on the command line, so it may be larger than a library's files.
MAX_BYTES: Final = 64 * 1024 * 1024

# The user waits for the result, so an explanation may take long.
_EFFORT: Final = 1_000_000

_NO_FOLDER: Final = "no folder of schemas is set; use --schemas, assets.schemas or SYN_SCHEMAS_DIR"

_POSITION: Final = re.compile(r" \(line (\d+), column (\d+)\)$")


class FileProblem(NamedTuple):
    """One problem of a file."""

    pointer: str
    message: str
    span: Span | None
    """Its place in the source; None where the file could not be read."""
    rule: str
    """The keyword of the schema that is violated, or what else is wrong: `file`, `json` or `schema`."""
    is_warning: bool = False


class Report(NamedTuple):
    """The result of checking one file."""

    path: str
    schema: str
    """The name of the schema that it was validated by; empty where there is none."""
    problems: tuple[FileProblem, ...] = ()
    is_checked: bool = True
    """False where there is no verdict: it is not JSON, or there is no usable schema."""


class File(NamedTuple):
    """A file to check."""

    path: str
    folder: str | None = None
    """The searched folder, which links may not leave; None where the file was named on the command line."""
    problem: str = ""
    """Why it cannot be read."""


class _Found(NamedTuple):
    schema: str
    findings: tuple[Finding, ...]
    is_checked: bool = True


class Checker:
    """Checks files by the schemas of a library; with `only`, assets by that schema, whatever they name."""

    def __init__(self, library: Library, only: LibrarySchema | None = None) -> None:
        self._library = library
        self._only = only
        self._files = SchemaFiles(library.folder)
        self._places: dict[str, bool] = {}

    def check(self, file: File) -> Report:
        """Return the report of one file."""
        path = file.path
        try:
            data = _bytes_of(file)
        except CannotRead as reason:
            return Report(path, "", (FileProblem("", str(reason), None, "file"),), is_checked=False)
        try:
            document = parse(data)
        except Refused as refused:
            return Report(path, "", (not_json(data, refused.findings[0].message),), is_checked=False)
        if self._is_schema(path, document):
            found = _Found("", self._check_schema(path, document))
        else:
            found = self._check_asset(path, document)
        if not found.findings:
            return Report(path, found.schema)
        errors = {(finding.pointer, finding.message): finding.keyword for finding in found.findings}
        return Report(path, found.schema, placed(errors, data.decode(), document), found.is_checked)

    def schema_files(self, reports: Iterable[Report]) -> list[File]:
        """Return the files of unusable schemas that kept assets from being validated."""
        left_out = self._library.folder.left_out if self._library.folder is not None else {}
        names = {report.schema for report in reports if not report.is_checked and report.schema in left_out}
        return [File(_near(left_out[name].path)) for name in sorted(names)]

    def _is_schema(self, path: str, document: JSON) -> bool:
        if path.endswith(".schema.json"):
            return True
        folder = self._library.folder
        if folder is None or self._only is not None or path == STDIN or not self._is_of_library(path):
            return False
        schema = self._library.schema(self._library.schema_for(document, _file_name(path)))
        if schema is not None:
            return schema.path == folder.listed(Path(path).resolve())
        return not (isinstance(document, dict) and ("schema" in document or SCHEMA_REFERENCE in document))

    def _is_of_library(self, path: str) -> bool:
        """Return whether a file is in the library's folder, or below it."""
        where = os.path.dirname(path)  # noqa: PTH120 - per file, and ten times faster
        if where not in self._places:
            folder = self._library.folder
            self._places[where] = folder is not None and folder.has(Path(where).resolve())
        return self._places[where]

    def _check_asset(self, path: str, asset: JSON) -> _Found:
        if self._only is None and self._library.folder is None:
            return _unchecked("", _NO_FOLDER)
        name = "" if self._only is not None else self._library.schema_for(asset, _file_name(path))
        schema = self._only or self._library.schema(name)
        if schema is None:
            if (left_out := self._library.left_out_for(asset, _file_name(path))) is not None:
                name, (_, reason) = left_out
                return _unchecked(name, f"its schema {name[:60]!r} cannot be used: {reason}")
            return _Found(name, (_whole(f"meant for the schema {name[:60]!r}, which does not exist"),))
        asset = without_reference(asset)
        is_allowed = schema.validator.allows(asset)
        return _Found(schema.name, () if is_allowed else explain(schema, asset, _EFFORT))

    def _check_schema(self, path: str, document: JSON) -> tuple[Finding, ...]:
        if not isinstance(document, dict):
            return (_whole("a schema must be an object"),)
        try:
            self._files.bundle(path, document).compile()
        except BadSchema as error:
            return error.findings
        return ()


def _unchecked(name: str, reason: str) -> _Found:
    return _Found(name, (_whole(reason),), is_checked=False)


def _whole(message: str) -> Finding:
    return Finding("", message, "", "")


def _file_name(path: str) -> str:
    return os.path.basename(path)  # noqa: PTH119 - per file, and ten times faster


def _near(path: str) -> str:
    """Return a path relative to the working directory where it is below it, as CI reports expect."""
    near = os.path.relpath(path)
    return path if near.startswith(os.pardir) else near


def _bytes_of(file: File) -> bytes:
    if file.problem:
        raise CannotRead(file.problem)
    if file.folder is None:
        return read_named(file.path, MAX_BYTES)
    return read_walked(file.path, file.folder, MAX_BYTES)


_NOWHERE: Final = Span(0, 0, "", 0, 0, 0)


def placed(errors: dict[tuple[str, str], str], source: str, document: JSON) -> tuple[FileProblem, ...]:
    """Return problems with their places in `source`: that of the name for an unexpected property."""
    spans = locate(source, {pointer for pointer, _ in errors})
    names = {one: name for one in errors if (name := _unexpected(*one, document)) is not None}
    at_names = locate(source, set(names.values()), are_names=True) if names else {}
    problems = [
        FileProblem(*one, at_names[names[one]] if one in names else spans[one[0]], errors[one] or "schema")
        for one in sorted(errors)
    ]
    return tuple(sorted(problems, key=lambda problem: (problem.span or _NOWHERE)[:2]))


def _unexpected(pointer: str, message: str, document: JSON) -> str | None:
    """Return the pointer to the first unexpected property that a message names, or None."""
    if not message.startswith(UNEXPECTED):
        return None
    said, _ = json.JSONDecoder().raw_decode(message, len(UNEXPECTED))
    value: Any = document
    try:
        for step in pointer.split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            value = value[int(name) if isinstance(value, list) else name]
        # Messages truncate long names.
        found = next(name for name in value if shorten(name) == shorten(said))
    except (LookupError, TypeError, ValueError, StopIteration):  # the pointer was truncated or guessed
        return None
    return pointer + whole_pointer((found,))


def not_json(data: bytes, message: str) -> FileProblem:
    """Return the problem of a file that the parser refused with `message`."""
    position = _POSITION.search(message)
    if position is None:
        return FileProblem("", f"not JSON: {message}", None, "json")
    line, column = int(position[1]), int(position[2])
    said = message[: position.start()]
    # The parser counts bytes, reports count characters.
    before = data.split(b"\n")[line - 1][:column].decode("utf-8", "replace")
    # The parser notices a name that is there already when it has read it.
    place = name_before if said == DUPLICATE_KEY else span_at
    return FileProblem(
        "", f"not JSON: {said}", place(data.decode("utf-8", "replace"), line, len(before)), "json"
    )


# A schema file that a person names.


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


# Misspelt keywords.

# Their value is a schema, a list of schemas, or both by the draft; a map of schemas.
_SCHEMAS: Final = frozenset(
    (
        *("not", "if", "then", "else", "allOf", "anyOf", "oneOf", "items", "prefixItems", "additionalItems"),
        *("unevaluatedItems", "contains", "contentSchema", "propertyNames"),
        *("additionalProperties", "unevaluatedProperties"),
    )
)
_MAPS: Final = frozenset(
    ("properties", "patternProperties", "dependentSchemas", "dependencies", "$defs", "definitions")
)
_KNOWN: Final = frozenset(
    (
        *(*_SCHEMAS, *_MAPS, "type", "const", "enum", "required", "dependentRequired"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"),
        *("minItems", "maxItems", "uniqueItems", "minContains", "maxContains"),
        *("minProperties", "maxProperties", "title", "description", "default", "examples"),
        *("deprecated", "readOnly", "writeOnly", "id", "$id", "$schema", "$ref", "$anchor", "$comment"),
        *("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "$recursiveAnchor", "$vocabulary"),
        # Of OpenAPI, for whose schemas they mean something.
        *("example", "nullable", "discriminator", "xml", "externalDocs"),
    )
)
# Shorter ones are a slip away from too many words that people choose themselves.
_SHORTEST: Final = 4


def misspelt_keywords(path: str, text: str, document: JSONObject) -> list[str]:
    """Return each misspelt keyword of the schema in a file, with its place and what was meant."""
    found = dict(_found(document, ""))
    spans = locate(text, found.keys(), are_names=True)
    return [
        f"{path}:{spans[pointer].line}:{spans[pointer].column}: {escaped(pointer)}: "
        f"JSON Schema has no such keyword, and it is not checked; {did_you_mean(meant, (meant,))}"
        for pointer, meant in found.items()
        if pointer in spans
    ]


def _found(schema: JSON, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(schema, list):
        for number, each in enumerate(schema):
            yield from _found(each, f"{pointer}/{number}")
    if not isinstance(schema, dict):
        return
    for keyword, value in schema.items():
        below = f"{pointer}/{keyword.replace('~', '~0').replace('/', '~1')}"
        if keyword in _SCHEMAS:
            yield from _found(value, below)
        elif keyword in _MAPS and isinstance(value, dict):
            for name, each in value.items():
                yield from _found(each, f"{below}/{name.replace('~', '~0').replace('/', '~1')}")
        elif keyword not in _KNOWN and (meant := _meant(keyword)) is not None:
            yield below, meant


def _meant(keyword: str) -> str | None:
    near = (known for known in sorted(_KNOWN) if len(known) >= _SHORTEST and _is_one_slip(keyword, known))
    return next(near, None)


def _is_one_slip(given: str, known: str) -> bool:
    """Return whether two words differ in one letter, in the order of two, or in upper and lower case."""
    given, known = given.lower(), known.lower()
    start = 0
    while start < min(len(given), len(known)) and given[start] == known[start]:
        start += 1
    a, b = given[start:], known[start:]
    return a == b or a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])
