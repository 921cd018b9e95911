"""`portbook diff`: how two JSON files differ, or whether a schema change is breaking."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, TextIO
from urllib.parse import unquote, urlsplit

import click

from portbook.assets.compat.counterexample import EVERY_BREAK
from portbook.assets.compat.verdict import Comparison, Compatibility, SchemaBreak, compare, compare_folders
from portbook.assets.json_files import STDIN, CannotRead, read_named
from portbook.assets.json_patch import diff
from portbook.assets.library_folder_paths import find_folders
from portbook.assets.schema_files import SchemaBundle, SchemaFiles, SchemaFolder
from portbook.assets.validate_file import (
    MAX_BYTES,
    FileProblem,
    Report,
    UnusableFile,
    lines_of,
    misspelt_keywords,
    read_document,
    read_schema,
)
from portbook.canonical import json_bytes
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from
from portbook.cli.output_and_errors import claim_stdout, fail_with, say, stop_with, verdict_or_none
from portbook.cli.validate_and_diff_formats import (
    BREAK,
    FORMATS,
    REMOVED,
    UNDECIDED,
    UNUSABLE,
    lines_of_value,
    shown,
    side_by_side,
)
from portbook.escaping import escaped_json
from portbook.wire.source_positions import Span, locate

__all__ = ["CHANGE_FORMATS", "ChangedSchema", "command", "written_changes"]

# How schemas changed, as text, JSON, GitHub's workflow commands and SARIF.
#
# Every break has its place in the files of the new schema, which are read again to find line and column.

CHANGE_FORMATS: Final = ("text", "json", "github", "sarif")

# The colour and the meaning of each verdict.
_MEANING: Final = {
    Compatibility.COMPATIBLE: ("green", "everything that was valid still is"),
    Compatibility.BREAKS: ("red", "this was valid and no longer is:"),
    Compatibility.UNKNOWN: ("yellow", "neither a break nor a proof was found"),
    Compatibility.ADDED: ("green", "the schema is new"),
    Compatibility.REMOVED: ("red", "the schema is gone"),
    Compatibility.UNUSABLE: ("red", "the schema cannot be used"),
}

_UNPROVED: Final = "not proved to allow everything that was valid"

# Bytes of an instance in a message of one line.
_MAX_INSTANCE: Final = 500


class _Located(NamedTuple):
    """A place in a file of the new schema."""

    path: str
    pointer: str
    span: Span | None


@dataclass(frozen=True, slots=True)
class ChangedSchema:
    """A schema in two versions, and its verdict."""

    name: str
    """Its name in two folders; empty for two files."""
    path: str
    """The file of the new version; of the old one where there is no new one."""
    comparison: Comparison
    bundle: SchemaBundle | None = None
    """The new version; None where it was not compared."""
    source: str | None = None
    """The text of `path`, where it can be read only once."""

    def breaks(self) -> list[tuple[_Located, SchemaBreak]]:
        """Return the breaks, in the order of the places in the files."""
        placed = self._placed([each.place for each in self.comparison.breaks])
        found = [(placed[each.place], each) for each in self.comparison.breaks]
        return sorted(found, key=lambda pair: _order(pair[0]))

    def undecided(self) -> list[_Located]:
        """Return the places that are neither proved nor shown to break, in the order of the files."""
        return sorted(self._placed(self.comparison.undecided).values(), key=_order)

    def _placed(self, places: Iterable[str]) -> dict[str, _Located]:
        by_file: dict[str | None, dict[str, str]] = {}
        for place in places:
            uri, pointer = (None, place) if self.bundle is None else self.bundle.source_of(place)
            by_file.setdefault(uri, {})[place] = pointer
        placed: dict[str, _Located] = {}
        for uri, pointers in by_file.items():
            path = self.path if uri is None else _path_of(uri)
            text = self.source if uri is None and self.source is not None else _text_of(path)
            spans = {} if text is None else locate(text, set(pointers.values()))
            placed |= {place: _Located(path, one, spans.get(one)) for place, one in pointers.items()}
        return placed


def written_changes(changes: list[ChangedSchema], form: str) -> str:
    """Return the changes in one of `CHANGE_FORMATS`."""
    if form == "text":
        return "".join(f"{line}\n" for change in changes for line in _in_words(change))
    if form != "json":
        return FORMATS[form](_reports(changes))
    told = [_told(change) for change in changes]
    is_folder = any(change.name for change in changes)
    return escaped_json(json_bytes({"schemas": told} if is_folder else told[0]).decode()) + "\n"


def _order(located: _Located) -> tuple[str, int, int, str]:
    line, column = (0, 0) if located.span is None else located.span[:2]
    return located.path, line, column, located.pointer


def _path_of(uri: str) -> str:
    """Return the path of a file's address, relative to the working directory where it is below it."""
    path = unquote(urlsplit(uri).path)
    near = os.path.relpath(path)
    return path if near.startswith(os.pardir) else near


def _text_of(path: str) -> str | None:
    try:
        return read_named(path, MAX_BYTES).decode()
    except (CannotRead, UnicodeDecodeError):
        return None


# -- data


def _told(change: ChangedSchema) -> dict[str, Any]:
    comparison = change.comparison
    told: dict[str, Any] = {"name": change.name} if change.name else {}
    told["verdict"] = comparison.verdict.value
    if comparison.verdict is Compatibility.BREAKS:
        first = comparison.breaks[0]
        told |= {"instance": first.instance, "errors": _errors(first)}
        told["breaks"] = [
            {**_place(at), "keyword": each.keyword, "instance": each.instance, "errors": _errors(each)}
            for at, each in change.breaks()
        ]
    if comparison.verdict in (Compatibility.BREAKS, Compatibility.UNKNOWN):
        told["undecided"] = [_place(at) for at in change.undecided()]
    elif comparison.verdict is Compatibility.UNUSABLE:
        told["problem"] = comparison.problem
    return told


def _place(at: _Located) -> dict[str, Any]:
    line, column = (None, None) if at.span is None else at.span[:2]
    return {"path": at.pointer, "file": at.path, "line": line, "column": column}


def _errors(each: SchemaBreak) -> list[dict[str, str]]:
    return [{"path": finding.pointer, "msg": finding.message} for finding in each.findings]


# -- words


def _in_words(change: ChangedSchema) -> Iterator[str]:
    comparison = change.comparison
    colour, meaning = _MEANING[comparison.verdict]
    prefix = f"{shown(change.name)}: " if change.name else ""
    yield f"{prefix}{click.style(comparison.verdict.value, fg=colour, bold=True)}: {meaning}"
    if comparison.problem:
        yield shown(comparison.problem)
    for at, each in change.breaks():
        yield f"{_spot(at)}: {shown(_found(each))}"
        yield from (f"  {line}" for line in lines_of_value(each.instance))
    for at in change.undecided():
        yield f"{_spot(at)}: {_UNPROVED}"


def _spot(at: _Located) -> str:
    place = at.path if at.span is None else f"{at.path}:{at.span.line}:{at.span.column}"
    return f"{click.style(shown(place), bold=True)}: {shown(at.pointer) or '(root)'}"


def _found(each: SchemaBreak) -> str:
    """Return what the new schema finds wrong with the instance."""
    return "; ".join(
        f"{finding.pointer}: {finding.message}" if finding.pointer else finding.message
        for finding in each.findings
    )


# -- programs


def _reports(changes: list[ChangedSchema]) -> Iterator[Report]:
    for change in changes:
        for path, problem in _problems(change):
            yield Report(path, change.name, (problem,))


def _problems(change: ChangedSchema) -> Iterator[tuple[str, FileProblem]]:
    """Yield every problem of a changed schema, with its file."""
    comparison = change.comparison
    for at, each in change.breaks():
        text = json_bytes(each.instance).decode()
        instance = text if len(text) <= _MAX_INSTANCE else f"{text[:_MAX_INSTANCE]}…"
        message = f"{instance} was valid and no longer is: {_found(each)}"
        yield at.path, FileProblem(at.pointer, message, at.span, BREAK + each.keyword)
    for at in change.undecided():
        yield at.path, FileProblem(at.pointer, _UNPROVED, at.span, UNDECIDED, is_warning=True)
    _, meaning = _MEANING[comparison.verdict]
    if comparison.verdict is Compatibility.UNKNOWN and not comparison.undecided:
        yield change.path, FileProblem("", meaning, None, UNDECIDED, is_warning=True)
    elif comparison.verdict is Compatibility.REMOVED:
        yield change.path, FileProblem("", meaning, None, REMOVED)
    elif comparison.verdict is Compatibility.UNUSABLE:
        problem = comparison.problem.removeprefix(f"{change.path}: ")
        yield change.path, FileProblem("", problem, None, UNUSABLE)


_EXIT_CODES: Final = {
    Compatibility.COMPATIBLE: ExitCode.SUCCESS,
    Compatibility.ADDED: ExitCode.SUCCESS,
    Compatibility.BREAKS: ExitCode.FAILURE,
    Compatibility.REMOVED: ExitCode.FAILURE,
    Compatibility.UNKNOWN: ExitCode.REFUSED,
    Compatibility.UNUSABLE: ExitCode.INVALID,
}

# Of the exit codes of several schemas, the first of these that one of them has.
_WORST: Final = (ExitCode.INVALID, ExitCode.FAILURE, ExitCode.REFUSED, ExitCode.SUCCESS)


@click.command("diff")
@click.argument("old")
@click.argument("new")
@click.option("--schema", "as_schema", is_flag=True, help="Tell whether a schema change is breaking.")
@click.option(
    "--format",
    "form",
    type=click.Choice(CHANGE_FORMATS),
    help="Output format; github and sarif need --schema.  [default: text on a terminal, otherwise json]",
)
@json_option()
@config_option
def command(
    old: str, new: str, *, as_schema: bool, form: str | None, is_json: bool, config: Path | None
) -> None:
    """Show how two JSON files differ.

    Prints the JSON Patch from OLD to NEW; on a terminal, both sides of each change. One of the two may be -
    for standard input. The exit code is 0 if the files are equal, 1 if they differ, and 2 if one cannot be
    read.

    With --schema the files are schemas. A change breaks (1) if NEW refuses an instance that OLD allows. Every
    break that is found is printed, each with its place in NEW and an instance. A change is compatible (0) if
    there is a proof that no such instance exists. Otherwise it is unknown (3). The places for which neither
    was found are printed. References are resolved in the folder of each file and below. For two folders every
    schema has a verdict, and the worst is the exit code.
    """
    if old == new == STDIN:
        raise click.UsageError("only one of OLD and NEW can be standard input")
    if form in ("github", "sarif") and not as_schema:
        raise click.UsageError(f"--format {form} reports changes of schemas; add --schema")
    if is_json and form not in (None, "json"):
        raise click.UsageError(f"--json and --format {form} contradict each other; use one of them")
    out = claim_stdout()
    with verdict_or_none(out):
        chosen = "json" if is_json else form or ("text" if out.isatty() else "json")
        try:
            if as_schema and Path(old).is_dir() and Path(new).is_dir():
                changes = _compare_folders(_folder(old), _folder(new))
            elif as_schema:
                changes = [_compare_schemas(old, new, SchemaFiles(_library(config), is_deep=True))]
            else:
                status = _compare_documents(old, new, out, is_plain=chosen == "json")
                raise click.exceptions.Exit(status)
        except UnusableFile as unusable:
            raise _unusable(unusable.report, chosen, out) from None
        click.echo(written_changes(changes, chosen), out, nl=False)
        statuses = {_EXIT_CODES[change.comparison.verdict] for change in changes}
        raise click.exceptions.Exit(next(status for status in _WORST if status in statuses))


def _compare_documents(old: str, new: str, out: TextIO, *, is_plain: bool) -> ExitCode:
    before, after = read_document(old), read_document(new)
    patch = diff(before, after)
    if is_plain:
        click.echo(_json_text(patch), out)
    else:
        room = max((shutil.get_terminal_size().columns - 3) // 2, 20)
        for line in side_by_side(before, patch, room):
            click.echo(line, out)
    return ExitCode.FAILURE if patch else ExitCode.SUCCESS


def _compare_schemas(old: str, new: str, files: SchemaFiles) -> ChangedSchema:
    before, after = read_schema(files, old), read_schema(files, new)
    for doubt in misspelt_keywords(new, after.text, after.document):
        say(f"warning: {doubt}")
    sides = [(side.bundle.document, side.validator) for side in (before, after)]
    comparison = compare(sides[0], sides[1], EVERY_BREAK)
    return ChangedSchema("", new, comparison, after.bundle, after.text)


def _compare_folders(old: SchemaFolder, new: SchemaFolder) -> list[ChangedSchema]:
    return [ChangedSchema(*compared) for compared in compare_folders(old, new)]


def _folder(path: str) -> SchemaFolder:
    folder = SchemaFolder(Path(path))
    if not folder.documents and not folder.left_out:
        raise UnusableFile(path, FileProblem("", "the folder holds no .json file", None, "file"))
    return folder


def _library(config: Path | None) -> SchemaFolder | None:
    """Return the folder of schemas that the settings name: its files may refer to each other."""
    try:
        folder, _ = find_folders(settings_from(config).asset_schemas, None)
    except START_ERRORS as error:
        raise stop_with(error) from None
    return None if folder is None else SchemaFolder(folder)


def _unusable(report: Report, form: str, out: TextIO) -> click.exceptions.Exit:
    """Print why there is no verdict: to programs in their format, to people as every other error."""
    if form in FORMATS and form not in ("text", "json"):
        click.echo(FORMATS[form]([report]), out, nl=False)
    return fail_with([shown(line) for line in lines_of(report)], ExitCode.INVALID)


def _json_text(value: Any) -> str:
    return escaped_json(json_bytes(value).decode())
