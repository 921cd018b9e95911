"""`portbook audit show`: every record of one call, and its outcome."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from portbook.audit.call_records import call_data, outcome_of, records_of_call
from portbook.audit.journal import EXECUTION_STREAM
from portbook.audit.log_reader import files_in, lines_of, record_of, stream_folder
from portbook.cli.audit_formats import in_lines
from portbook.cli.audit_options import audit_options, opened_log
from portbook.cli.terminal import claim_stdout, fail, print_data
from portbook.escaping import escaped

__all__ = ["verb"]

# More than a record's number ever has; a request id has more.
_MAX_DIGITS: Final = 20


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
        request = _request_id(root, identifier)
        found = records_of_call(root, request)
        outcome = outcome_of(root, found)
    if not any(found.values()):
        raise fail(f"there is no record of {escaped(identifier)}; `portbook audit tail` shows the newest")
    words = [f"outcome: {outcome}"]
    for stream, records in found.items():
        for located in records:
            words += [f"{stream}: {escaped(located.file)}:{located.line}", *in_lines(located.record)]
    print_data(call_data(request, found, outcome), words, out, is_json=is_json)


def _request_id(root: Path, identifier: str) -> str:
    """Return the request id that `identifier` stands for: a number is a record of the newest run."""
    newest = files_in(stream_folder(root, EXECUTION_STREAM))[-1:]
    if newest and len(identifier) < _MAX_DIGITS and identifier.isdecimal():
        for record in map(record_of, lines_of(newest[0])):
            if record is not None and record.get("seq") == int(identifier):
                return str(record.get("request_id"))
    return identifier
