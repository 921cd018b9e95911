"""`portbook diff`: how two JSON files differ, or whether a schema change is breaking."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, TextIO

import click

from portbook.assets.check_file import MAX_BYTES
from portbook.assets.compat.verdict import Comparison, Compatibility, compare, compare_folders
from portbook.assets.documents import parsed
from portbook.assets.files import STDIN, CannotRead, read_named
from portbook.assets.json_patch import diff
from portbook.assets.library_folders import find_folders
from portbook.assets.schema_files import SchemaFiles, SchemaFolder
from portbook.canonical import json_bytes
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from
from portbook.cli.reports import shown, width_of
from portbook.cli.terminal import claim_stdout, fail, stop_with, verdict_or_none
from portbook.escaping import escaped_json
from portbook.model import JSON, JSONObject
from portbook.schema.engine import BadSchema, Validator

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

# The colour and the meaning of each verdict.
_MEANING: Final = {
    Compatibility.COMPATIBLE: ("green", "everything that was valid still is"),
    Compatibility.BREAKS: ("red", "this was valid and no longer is:"),
    Compatibility.UNKNOWN: ("yellow", "neither a break nor a proof was found"),
    Compatibility.ADDED: ("green", "the schema is new"),
    Compatibility.REMOVED: ("red", "the schema is gone"),
    Compatibility.UNUSABLE: ("red", "the schema cannot be used"),
}

# Lines of a value that are shown on either side; a whole document would hide the difference.
_MAX_LINES: Final = 12


@click.command("diff")
@click.argument("old")
@click.argument("new")
@click.option("--schema", "as_schema", is_flag=True, help="Tell whether a schema change is breaking.")
@json_option()
@config_option
def command(old: str, new: str, *, as_schema: bool, is_json: bool, config: Path | None) -> None:
    """Show how two JSON files differ.

    Prints the JSON Patch from OLD to NEW; on a terminal, both sides of each change. One of the two may be -
    for standard input. The exit code is 0 if the files are equal, 1 if they differ, and 2 if one cannot be
    read.

    With --schema the files are schemas. A change breaks (1) if NEW refuses an instance that OLD allows, which
    is printed. It is compatible (0) if there is a proof that no such instance exists. Otherwise it is unknown
    (3), and the place where the proof ended is printed. References are resolved in the folder of each file
    and below. For two folders every schema has a verdict, and the worst is the exit code.
    """
    if old == new == STDIN:
        raise click.UsageError("only one of OLD and NEW can be standard input")
    out = claim_stdout()
    with verdict_or_none(out):
        is_plain = is_json or not out.isatty()
        if as_schema and Path(old).is_dir() and Path(new).is_dir():
            status = _compare_folders(_folder(old), _folder(new), out, is_plain=is_plain)
        elif as_schema:
            status = _compare_schemas(
                old, new, SchemaFiles(_library(config), is_deep=True), out, is_plain=is_plain
            )
        else:
            status = _compare_documents(old, new, out, is_plain=is_plain)
        raise click.exceptions.Exit(status)


def _compare_documents(old: str, new: str, out: TextIO, *, is_plain: bool) -> ExitCode:
    before, after = _document(old), _document(new)
    patch = diff(before, after)
    if is_plain:
        click.echo(_json_text(patch), out)
    else:
        _show(before, patch, out)
    return ExitCode.FAILURE if patch else ExitCode.SUCCESS


def _compare_schemas(old: str, new: str, files: SchemaFiles, out: TextIO, *, is_plain: bool) -> ExitCode:
    comparison = compare(_schema(files, old), _schema(files, new))
    click.echo(_json_text(_told(comparison)) if is_plain else "\n".join(_in_words(comparison)), out)
    return _EXIT_CODES[comparison.verdict]


def _compare_folders(old: SchemaFolder, new: SchemaFolder, out: TextIO, *, is_plain: bool) -> ExitCode:
    changes = list(compare_folders(old, new))
    if is_plain:
        click.echo(_json_text({"schemas": [{"name": name, **_told(one)} for name, one in changes]}), out)
    else:
        for name, comparison in changes:
            click.echo("\n".join(_in_words(comparison, f"{shown(name)}: ")), out)
    statuses = {_EXIT_CODES[comparison.verdict] for _, comparison in changes}
    return next(status for status in _WORST if status in statuses)


def _folder(path: str) -> SchemaFolder:
    folder = SchemaFolder(Path(path))
    if not folder.documents and not folder.left_out:
        raise _trouble(path, "the folder holds no .json file")
    return folder


def _library(config: Path | None) -> SchemaFolder | None:
    """Return the folder of schemas that the settings name: its files may refer to each other."""
    try:
        folder, _ = find_folders(settings_from(config).asset_schemas, None)
    except START_ERRORS as error:
        raise stop_with(error) from None
    return None if folder is None else SchemaFolder(folder)


def _document(path: str) -> JSON:
    try:
        return parsed(read_named(path, MAX_BYTES))
    except CannotRead as reason:
        raise _trouble(path, str(reason)) from None


def _schema(files: SchemaFiles, path: str) -> tuple[JSONObject, Validator]:
    try:
        _, bundle, validator = files.read(path, MAX_BYTES)
    except CannotRead as reason:
        raise _trouble(path, str(reason)) from None
    except BadSchema as error:
        finding = error.findings[0]
        raise _trouble(path, f"{finding.pointer or '(root)'}: {finding.message}") from None
    return bundle.document, validator


def _trouble(path: str, reason: str) -> click.exceptions.Exit:
    return fail(f"{shown(path)}: {shown(reason)}", ExitCode.INVALID)


def _json_text(value: Any) -> str:
    return escaped_json(json_bytes(value).decode())


# -- a schema's change


def _told(comparison: Comparison) -> dict[str, Any]:
    told: dict[str, Any] = {"verdict": comparison.verdict.value}
    if comparison.verdict is Compatibility.BREAKS:
        errors = [{"path": finding.pointer, "msg": finding.message} for finding in comparison.findings]
        told |= {"instance": comparison.instance, "errors": errors}
    elif comparison.verdict is Compatibility.UNKNOWN:
        told["undecided"] = [] if comparison.undecided is None else [{"path": comparison.undecided}]
    elif comparison.verdict is Compatibility.UNUSABLE:
        told["problem"] = comparison.problem
    return told


def _in_words(comparison: Comparison, prefix: str = "") -> Iterator[str]:
    colour, meaning = _MEANING[comparison.verdict]
    yield f"{prefix}{click.style(comparison.verdict.value, fg=colour, bold=True)}: {meaning}"
    if comparison.undecided is not None:
        yield f"{shown(comparison.undecided) or '(root)'}: not proved to allow everything that was valid"
    if comparison.problem:
        yield shown(comparison.problem)
    if comparison.verdict is Compatibility.BREAKS:
        yield from (f"  {line}" for line in _lines(comparison.instance))
        yield from (
            f"{shown(finding.pointer) or '(root)'}: {shown(finding.message)}"
            for finding in comparison.findings
        )


# -- side by side


def _show(before: JSON, patch: list[JSONObject], out: TextIO) -> None:
    room = max((shutil.get_terminal_size().columns - 3) // 2, 20)
    for operation in patch:
        path = str(operation["path"])
        click.echo(click.style(shown(path) or "(root)", bold=True), out)
        left = [] if operation["op"] == "add" else _lines(_value(before, path))
        right = [] if operation["op"] == "remove" else _lines(operation["value"])
        for ours, theirs in zip_longest(left, right, fillvalue=""):
            old = click.style(_cell(ours, room), fg="red")
            click.echo(f"{old} │ {click.style(_cell(theirs, room).rstrip(), fg='green')}", out)


def _lines(value: JSON) -> list[str]:
    lines = escaped_json(json.dumps(value, indent=2, ensure_ascii=False)).split("\n")
    return lines if len(lines) <= _MAX_LINES else [*lines[: _MAX_LINES - 1], f"… {len(lines)} lines"]


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
