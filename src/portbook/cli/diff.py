"""`portbook diff`: what is different between two files, or whether a schema's change breaks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, TextIO

import click

from portbook.assets.checking import MAX_BYTES
from portbook.assets.compatibility import Comparison, Verdict, compare
from portbook.assets.diff import diff
from portbook.assets.files import CannotRead, read_file
from portbook.assets.schema_files import SchemaFiles
from portbook.canonical import json_bytes
from portbook.cli.options import claim_stdout, say
from portbook.errors import Refused
from portbook.model import JSON, JSONObject
from portbook.schema.engine import BadSchema, Validator
from portbook.wire.parsing import parse

__all__ = ["command"]

_STATUS: Final = {Verdict.COMPATIBLE: 0, Verdict.BREAKS: 1, Verdict.UNKNOWN: 3}

# Lines of a value that are shown on either side; a whole document would hide where it is different.
_MAX_LINES: Final = 12


@click.command("diff")
@click.argument("old", type=click.Path(path_type=Path))
@click.argument("new", type=click.Path(path_type=Path))
@click.option("--schema", "as_schema", is_flag=True, help="Tell whether a change of a schema breaks.")
@click.option("--json", "as_json", is_flag=True, help="JSON, even on a terminal.")
def command(old: Path, new: Path, *, as_schema: bool, as_json: bool) -> None:
    """Show what is different between two JSON files.

    Prints the JSON Patch that leads from OLD to NEW; on a terminal, both sides of each change. The exit
    status is 0 where nothing is different, 1 where something is, 2 where a file cannot be read.

    With --schema the files are schemas: it breaks (1) where NEW refuses what OLD allows, and then an
    instance shows it; it is compatible (0) where that is proved not to be; it is unknown (3) where neither
    could be shown.
    """
    out = claim_stdout()
    is_plain = as_json or not out.isatty()
    if as_schema:
        comparison = compare(_schema(old), _schema(new))
        click.echo(_as_json(comparison) if is_plain else "\n".join(_in_words(comparison)), out)
        raise click.exceptions.Exit(_STATUS[comparison.verdict])
    before, after = _document(old), _document(new)
    patch = diff(before, after)
    if is_plain:
        click.echo(json_bytes(patch).decode(), out)
    else:
        _show(before, patch, out)
    raise click.exceptions.Exit(1 if patch else 0)


def _document(path: Path) -> JSON:
    try:
        return parse(read_file(path, MAX_BYTES))
    except CannotRead as reason:
        raise _trouble(path, str(reason)) from None
    except Refused as refused:
        raise _trouble(path, f"not JSON: {refused.findings[0].message}") from None


def _schema(path: Path) -> tuple[JSONObject, Validator]:
    try:
        return SchemaFiles().read(path)
    except CannotRead as reason:
        raise _trouble(path, str(reason)) from None
    except BadSchema as error:
        finding = error.findings[0]
        raise _trouble(path, f"{finding.pointer or '(root)'}: {finding.message}") from None


def _trouble(path: Path, reason: str) -> click.exceptions.Exit:
    say(f"error: {path}: {reason}")
    return click.exceptions.Exit(2)


# -- a schema's change


def _as_json(comparison: Comparison) -> str:
    told: dict[str, Any] = {"verdict": comparison.verdict.value}
    if comparison.verdict is Verdict.BREAKS:
        errors = [{"path": finding.pointer, "msg": finding.message} for finding in comparison.findings]
        told |= {"instance": comparison.instance, "errors": errors}
    return json_bytes(told).decode()


def _in_words(comparison: Comparison) -> Iterator[str]:
    if comparison.verdict is Verdict.COMPATIBLE:
        yield click.style("compatible", fg="green", bold=True) + ": everything that was valid still is"
    elif comparison.verdict is Verdict.UNKNOWN:
        yield click.style("unknown", fg="yellow", bold=True) + ": neither a break nor a proof was found"
    else:
        yield click.style("breaks", fg="red", bold=True) + ": this was valid, and no longer is:"
        yield from (f"  {line}" for line in _lines(comparison.instance))
        yield from (f"{finding.pointer or '(root)'}: {finding.message}" for finding in comparison.findings)


# -- side by side


def _show(before: JSON, patch: list[JSONObject], out: TextIO) -> None:
    room = max((shutil.get_terminal_size().columns - 3) // 2, 20)
    for operation in patch:
        path = str(operation["path"])
        click.echo(click.style(path or "(root)", bold=True), out)
        left = [] if operation["op"] == "add" else _lines(_value(before, path))
        right = [] if operation["op"] == "remove" else _lines(operation["value"])
        for ours, theirs in zip_longest(left, right, fillvalue=""):
            old = click.style(_cell(ours, room), fg="red")
            click.echo(f"{old} │ {click.style(_cell(theirs, room).rstrip(), fg='green')}", out)


def _lines(value: JSON) -> list[str]:
    lines = json.dumps(value, indent=2, ensure_ascii=False).splitlines()
    return lines if len(lines) <= _MAX_LINES else [*lines[: _MAX_LINES - 1], f"… {len(lines)} lines"]


def _cell(text: str, room: int) -> str:
    shown = "".join(character if character.isprintable() else "·" for character in text)
    return shown.ljust(room) if len(shown) <= room else shown[: room - 1] + "…"


def _value(document: Any, path: str) -> Any:
    for part in path.split("/")[1:]:
        document = document[part.replace("~1", "/").replace("~0", "~")]
    return document
