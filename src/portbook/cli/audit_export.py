"""`portbook audit export`: records as JSON Lines or CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

import click

from portbook.audit.journal import EXECUTION_STREAM
from portbook.cli.audit_options import audit_options, opened_log, records_of
from portbook.cli.output_and_errors import claim_stdout, print_json
from portbook.escaping import escaped_json, escaped_lines
from portbook.globs import matches
from portbook.model import JSON, JSONObject
from portbook.tools.tool_names import TOOL_PREFIX

__all__ = ["COLUMNS", "CsvWriter", "verb"]

COLUMNS: Final = (
    *("seq", "prev", "timestamp", "session_id", "trace_id", "request_id", "tool_id", "endpoint", "domain"),
    *("method", "agent_step", "attempt", "status_code", "latency_ms", "error_class", "redaction_applied"),
    *("decision", "rule", "caller", "approval_id", "effect", "input_bytes", "output_bytes"),
    *("arguments", "hash", "record_version", "basis"),
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
def verb(
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
