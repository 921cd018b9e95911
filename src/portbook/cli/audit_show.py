"""`portbook audit show`: every record of one call, and its outcome."""

from __future__ import annotations

from pathlib import Path

import click

from portbook.audit.call_records import basis_of, call_data, outcome_of, records_of_call, request_id_of
from portbook.cli.audit_options import audit_options, opened_log
from portbook.cli.audit_record_in_words import in_lines
from portbook.cli.output_and_errors import claim_stdout, fail, print_data
from portbook.escaping import escaped

__all__ = ["verb"]


@click.command("show")
@click.argument("identifier", metavar="ID")
@audit_options
def verb(identifier: str, *, log_dir: Path | None, config: Path | None, is_json: bool) -> None:
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
