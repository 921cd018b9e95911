"""`portbook diff`: how two JSON files differ, or whether a schema change is breaking."""

from __future__ import annotations

import shutil
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, TextIO

import click

from portbook.assets.check_file import FileProblem, Report
from portbook.assets.compat.counterexample import EVERY_BREAK
from portbook.assets.compat.verdict import Compatibility, compare, compare_folders
from portbook.assets.files import STDIN
from portbook.assets.json_patch import diff
from portbook.assets.library_folders import find_folders
from portbook.assets.misspelt_keywords import misspelt_keywords
from portbook.assets.schema_files import SchemaFiles, SchemaFolder
from portbook.assets.schema_source import UnusableFile, lines_of, read_document, read_schema
from portbook.canonical import json_bytes
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from
from portbook.cli.reports import FORMATS, shown, width_of
from portbook.cli.schema_change_report import CHANGE_FORMATS, ChangedSchema, lines_of_value, written_changes
from portbook.cli.terminal import claim_stdout, fail_with, say, stop_with, verdict_or_none
from portbook.escaping import escaped_json
from portbook.model import JSON, JSONObject

__all__ = ["command"]

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
        _show(before, patch, out)
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


# -- side by side


def _show(before: JSON, patch: list[JSONObject], out: TextIO) -> None:
    room = max((shutil.get_terminal_size().columns - 3) // 2, 20)
    for operation in patch:
        path = str(operation["path"])
        click.echo(click.style(shown(path) or "(root)", bold=True), out)
        left = [] if operation["op"] == "add" else lines_of_value(_value(before, path))
        right = [] if operation["op"] == "remove" else lines_of_value(operation["value"])
        for ours, theirs in zip_longest(left, right, fillvalue=""):
            old = click.style(_cell(ours, room), fg="red")
            click.echo(f"{old} │ {click.style(_cell(theirs, room).rstrip(), fg='green')}", out)


def _cell(text: str, room: int) -> str:
    """Return `text` in exactly `room` columns, cut where it is longer."""
    width = width_of(text)
    if width <= room:
        return text + " " * (room - width)
    kept = text[: room - 1]
    while width_of(kept) > room - 1:
        kept = kept[:-1]
    return kept + "…" + " " * (room - 1 - width_of(kept))


def _value(document: Any, path: str) -> Any:
    for part in path.split("/")[1:]:
        document = document[part.replace("~1", "/").replace("~0", "~")]
    return document
