"""`portbook check`: everything that `portbook serve` would refuse or warn of, at once."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from portbook.app.assemble import App, assemble
from portbook.audit.log_writer import NoSink
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from, toolsets_argument
from portbook.cli.served_counts import served_counts
from portbook.cli.terminal import claim_stdout, print_json, problems_of, say
from portbook.escaping import escaped_lines
from portbook.settings import Settings
from portbook.text.late_pattern import late_pattern

__all__ = ["command"]

_PLACE: Final = late_pattern(r"(?P<file>.+?):(?P<line>\d+):(?P<column>\d+): (?P<message>.+)", re.DOTALL)


class _Checked(NamedTuple):
    errors: list[str]
    warnings: list[str]
    app: App | None = None


@click.command("check")
@toolsets_argument
@json_option("Print JSON: errors and warnings, each with file, line and column.")
@config_option
def command(toolsets: tuple[str, ...], *, is_json: bool, config: Path | None) -> None:
    """Check settings, toolsets and documents, and print everything that `serve` would refuse or warn of.

    TOOLSETS are Python files or modules with a Toolset. The exit code is 0 if there is nothing to say, 1 if
    there are warnings alone, and 2 if `serve` would refuse to start.
    """
    out = claim_stdout()
    checked = _check(config, toolsets)
    if is_json:
        errors, warnings = ([_as_data(each) for each in texts] for texts in checked[:2])
        print_json({"ok": not checked.errors, "errors": errors, "warnings": warnings}, out, is_ascii=True)
    else:
        for kind, texts in (("error", checked.errors), ("warning", checked.warnings)):
            for text in texts:
                click.echo(escaped_lines(_line(kind, text)), out)
        say(_summary(checked))
    raise click.exceptions.Exit(_exit_code(checked))


def _check(config: Path | None, toolsets: tuple[str, ...]) -> _Checked:
    try:
        settings = settings_from(config, toolsets=toolsets)
        # Without records and without a door: nothing is written, and nobody can call.
        app = assemble(settings, is_exposed=_is_exposed(settings), sink=NoSink(), is_server=True)
    except (*START_ERRORS, OSError) as error:
        return _Checked(problems_of(error), [])
    asyncio.run(app.close())
    return _Checked(_unwritable(settings), list(app.warnings), app)


def _is_exposed(settings: Settings) -> bool:
    from portbook.doors.http.server.listeners import is_loopback  # late: only here

    return not is_loopback(settings.host)


def _unwritable(settings: Settings) -> list[str]:
    """Return the folders that could not be written: the first that exists on the way to each decides."""
    wanted = {("audit", "log_dir"): settings.log_dir, ("store", "path"): settings.store_path.parent}
    found: list[str] = []
    for path, folder in wanted.items():
        whole = Path.cwd() / folder
        existing = next(each for each in (whole, *whole.parents) if each.exists())
        if not (existing.is_dir() and os.access(existing, os.W_OK)):
            found.append(
                str(settings.complain(path, f"cannot be written below {existing}; check its rights"))
            )
    return found


def _exit_code(checked: _Checked) -> ExitCode:
    if checked.errors:
        return ExitCode.INVALID
    return ExitCode.FAILURE if checked.warnings else ExitCode.SUCCESS


def _summary(checked: _Checked) -> str:
    if checked.app is None or checked.errors or checked.warnings:
        return f"{_counted(checked.errors, 'error')}, {_counted(checked.warnings, 'warning')}"
    return f"nothing to say; `portbook serve` would serve {served_counts(checked.app.catalog)}"


def _counted(texts: list[str], noun: str) -> str:
    return f"{len(texts)} {noun}" if len(texts) == 1 else f"{len(texts)} {noun}s"


def _line(kind: str, text: str) -> str:
    """Return a problem as compilers print one: the place, the kind, the message."""
    found = _PLACE.fullmatch(text)
    if found is None:
        return f"{kind}: {text}"
    return f"{found['file']}:{found['line']}:{found['column']}: {kind}: {found['message']}"


def _as_data(text: str) -> dict[str, Any]:
    found = _PLACE.fullmatch(text)
    if found is None:
        return {"file": None, "line": None, "column": None, "message": text}
    line, column = int(found["line"]), int(found["column"])
    return {"file": found["file"], "line": line, "column": column, "message": found["message"]}
