"""`portbook audit export`: records as JSON Lines or CSV."""

from __future__ import annotations

from pathlib import Path

import click

from portbook.audit.journal import EXECUTION_STREAM
from portbook.cli.audit_formats import CsvWriter
from portbook.cli.audit_options import audit_options, opened_log, record_filter, records_of
from portbook.cli.output_and_errors import claim_stdout, print_json

__all__ = ["verb"]


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
    is_wanted = record_filter(since, until, tools, status)
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
