"""`portbook audit tail`, `show` and `export`: the records of the log, as words, JSON Lines or CSV.

Also what every verb of `portbook audit` begins with: its options, and the log that these name.
"""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TextIO, TypeVar

import click

from portbook.audit.call_records import basis_of, call_data, outcome_of, records_of_call, request_id_of
from portbook.audit.journal import EXECUTION_STREAM
from portbook.audit.log_reader_and_follower import (
    Follower,
    Located,
    files_in,
    lines_from_end,
    record_of,
    records_in,
    stream_folder,
)
from portbook.cli.exit_codes import ExitCode
from portbook.cli.options import START_ERRORS, config_option, json_option, log_dir_option, settings_from
from portbook.cli.output_and_errors import claim_stdout, fail, print_data, print_json, say, stop_with
from portbook.escaping import escaped, escaped_json, escaped_lines
from portbook.globs import matches
from portbook.model import JSON, JSONObject
from portbook.settings import Settings
from portbook.tools.tool_names import TOOL_PREFIX

__all__ = [
    "COLUMNS",
    "CsvWriter",
    "audit_options",
    "export",
    "in_a_line",
    "in_lines",
    "opened_log",
    "show",
    "tail",
]

# What every verb of `portbook audit` begins with: its options, and the log that these name.

_F = TypeVar("_F", bound=Callable[..., Any])


def audit_options(function: _F) -> _F:
    """Add the options of every verb that reads the log."""
    for option in (
        json_option(),
        config_option,
        log_dir_option("Folder of the records.  [default: runs]"),
    ):
        function = option(function)
    return function


@contextmanager
def opened_log(config: Path | None, log_dir: Path | None) -> Generator[Settings]:
    """Yield the settings in force; a log that cannot be read ends the verb with a message.

    Raises `Exit` where the settings cannot be used, or the log is missing or cannot be read.
    """
    try:
        settings = settings_from(config, log_dir)
        if not settings.log_dir.is_dir():
            said = f"{settings.log_dir}: no such folder; name the folder of the records with --log-dir"
            raise fail(said, ExitCode.INVALID)
        yield settings
    except BrokenPipeError:  # the reader of our output has closed it
        raise
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None


def records_of(log_dir: Path, stream: str) -> Iterator[Located]:
    """Yield a stream's records, with a warning for each line that is not a record.

    Raises `OSError` where a file cannot be read.
    """

    def warn(file: str, line: int) -> None:
        say(f"warning: {escaped(file)}:{line}: not a record; skipped")

    return records_in(stream_folder(log_dir, stream), warn)


# `portbook audit tail`: print the newest records, and follow the log.


# How long --follow sleeps between two reads.
_POLL_S: Final = 0.2


@click.command("tail")
@click.option(
    "-n",
    "count",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Number of records to print first.",
)
@click.option("-f", "--follow", is_flag=True, help="Keep printing new records until Ctrl-C.")
@audit_options
def tail(count: int, *, follow: bool, log_dir: Path | None, config: Path | None, is_json: bool) -> None:
    """Print the newest records of all runs, the newest last."""
    out = claim_stdout()
    with opened_log(config, log_dir) as settings:
        folder = stream_folder(settings.log_dir, EXECUTION_STREAM)
        follower = Follower(folder)
        _print_records(_newest(folder, count), out, is_json=is_json)
        try:
            while follow:
                _print_records(follower.read(), out, is_json=is_json)
                time.sleep(_POLL_S)
        except KeyboardInterrupt:  # the usual way to end it
            return


def _newest(folder: Path, count: int) -> list[JSONObject]:
    """Return the newest records of all files: several processes may be writing."""
    newest: list[JSONObject] = []
    for path in files_in(folder):
        found, others = _last_in(path, count)
        newest += found
        if others:
            lines = "line is not a record" if others == 1 else "lines are not records"
            say(f"warning: {escaped(path.name)}: {others} {lines}; skipped; `portbook audit verify` has more")
    newest.sort(key=lambda record: str(record.get("timestamp")))
    return newest[max(len(newest) - count, 0) :]


def _last_in(path: Path, count: int) -> tuple[list[JSONObject], int]:
    """Return the last records of a file, and how many lines among them are none."""
    found: list[JSONObject] = []
    others = 0
    lines = lines_from_end(path)
    while len(found) < count and (line := next(lines, None)) is not None:
        record = record_of(line)
        if not record:
            others += 1
        else:
            found.append(record)
    found.reverse()
    return found, others


def _print_records(records: list[JSONObject], out: TextIO, *, is_json: bool) -> None:
    for record in records:
        print_data(record, [in_a_line(record)], out, is_json=is_json)
    out.flush()


# `portbook audit show`: every record of one call, and its outcome.


@click.command("show")
@click.argument("identifier", metavar="ID")
@audit_options
def show(identifier: str, *, log_dir: Path | None, config: Path | None, is_json: bool) -> None:
    """Show every record of a call, and its outcome.

    ID is a request id, or the number of a record in the newest run. A call with only an intent on record is
    still running, or its process died: then the outcome is unknown.
    """
    out = claim_stdout()
    with opened_log(config, log_dir) as settings:
        root = settings.log_dir
        request = request_id_of(root, identifier)
        found = records_of_call(root, request)
        outcome, basis = outcome_of(root, found), basis_of(root, found)
    if not any(found.values()):
        raise fail(f"there is no record of {escaped(identifier)}; `portbook audit tail` shows the newest")
    words = [f"outcome: {outcome}"]
    for stream, records in found.items():
        for located in records:
            words += [f"{stream}: {escaped(located.file)}:{located.line}", *in_lines(located.record)]
    if basis is not None:
        words += ["basis:", *in_lines(basis)]
    print_data(call_data(request, found, outcome, basis), words, out, is_json=is_json)


# `portbook audit export`: records as JSON Lines or CSV.

COLUMNS: Final = (
    *("seq", "prev", "timestamp", "session_id", "trace_id", "request_id", "tool_id", "endpoint", "domain"),
    *("method", "agent_step", "attempt", "status_code", "latency_ms", "error_class", "redaction_applied"),
    *("decision", "rule", "caller", "approval_id", "effect", "input_bytes", "output_bytes"),
    *("arguments", "hash", "record_version", "basis", "hmac"),
    *("difference", "missing_servers", "output_checked", "confined"),
)

# A spreadsheet runs a cell that begins so as a formula; the last four are full-width forms of the first.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


@click.command("export")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "csv"]),
    default="jsonl",
    show_default=True,
    help="Output format.",
)
@click.option("--since", metavar="TIME", help="Start at this time: ISO 8601, UTC if it names no zone.")
@click.option("--until", metavar="TIME", help="End before this time.")
@click.option(
    "--tool", "tools", metavar="PATTERN", multiple=True, help="Only tools that match; * matches any name."
)
@click.option("--status", metavar="STATUS", help="Only success, failure, or an HTTP status such as 403.")
@audit_options
def export(
    form: str,
    *,
    since: str | None,
    until: str | None,
    tools: tuple[str, ...],
    status: str | None,
    log_dir: Path | None,
    config: Path | None,
    is_json: bool,
) -> None:
    """Write the records of all runs to standard output, run by run."""
    is_wanted = _record_filter(since, until, tools, status)
    out = claim_stdout()
    with opened_log(config, log_dir) as settings:
        rows = CsvWriter(out) if form == "csv" and not is_json else None
        for located in records_of(settings.log_dir, EXECUTION_STREAM):
            if not is_wanted(located.record):
                continue
            if rows:
                rows.write(located.record)
            else:
                print_json(located.record, out)


# Which records a command is about: by time, tool and status.


def _status_of(record: JSONObject) -> str:
    """Return whether the call of a record succeeded."""
    return "failure" if "error_class" in record else "success"


def _record_filter(
    since: str | None, until: str | None, tools: tuple[str, ...], status: str | None
) -> Callable[[JSONObject], bool]:
    """Return what a record must be: between two times, of these tools, with this status."""
    first, end = _asked("--since", since), _asked("--until", until)
    patterns = [pattern.removeprefix(TOOL_PREFIX) for pattern in tools]
    if status is not None and status not in ("success", "failure") and not status.isdecimal():
        raise click.UsageError("--status is success, failure or a number such as 403")

    def is_wanted(record: JSONObject) -> bool:
        at = _moment(str(record.get("timestamp")))
        if (first and (at is None or at < first)) or (end and (at is None or at >= end)):
            return False
        if patterns and not matches(patterns, str(record.get("tool_id")).removeprefix(TOOL_PREFIX)):
            return False
        return status is None or status in (_status_of(record), str(record.get("status_code")))

    return is_wanted


def _asked(option: str, text: str | None) -> datetime | None:
    moment = None if text is None else _moment(text)
    if text is not None and moment is None:
        raise click.UsageError(f"{option} is a time such as 2026-01-31 or 2026-01-31T09:30:00Z")
    return moment


def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


# Records as CSV.


class CsvWriter:
    """Writes records as CSV: a header, then a row each."""

    def __init__(self, out: TextIO) -> None:
        self._writer = csv.writer(out, lineterminator="\n")
        self._writer.writerow(COLUMNS)

    def write(self, record: JSONObject) -> None:
        """Write one record."""
        self._writer.writerow([_cell(record.get(name)) for name in COLUMNS])


def _cell(value: JSON) -> str | float:
    """Return a value as a cell that no spreadsheet runs as a formula."""
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return escaped_json(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    text = escaped_lines(value)
    return f"'{text}" if value.startswith(_FORMULA) else text


# Records of the execution log in words, as `portbook audit` prints them: one line, a list of members.


def in_a_line(record: JSONObject) -> str:
    """Return the main members of a record on one line."""
    parts = [
        _shown(record.get("timestamp")),
        _shown(record.get("status_code")).rjust(3),
        _shown(record.get("tool_id")).removeprefix("mcp.tool:"),
        _shown(record.get("error_class") or (None if record.get("status_code") is None else "OK")),
        f"{_shown(record.get('latency_ms'))} ms",
        _shown(record.get("decision")),
        _shown(record.get("caller")),
        _shown(record.get("request_id")),
    ]
    return "  ".join(parts)


def in_lines(record: JSONObject) -> Iterator[str]:
    """Yield one line for each member of a record, and for each member of an object in it."""
    for name, value in _flat(record, ""):
        yield f"  {escaped(name, 64)}: {_shown(value)}"


def _flat(value: JSONObject, prefix: str) -> Iterator[tuple[str, JSON]]:
    for name, item in value.items():
        if isinstance(item, dict) and item:
            yield from _flat(item, f"{prefix}{name}.")
        else:
            yield prefix + name, item


def _shown(value: JSON) -> str:
    if value is None:
        return "-"
    return escaped(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
