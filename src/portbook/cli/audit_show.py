"""`portbook audit show`: every record of one call, and its outcome."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import click

from portbook.audit.journal import EXECUTION_STREAM, INTENT_STREAM
from portbook.audit.log_reader import (
    Located,
    files_in,
    is_written_to,
    lines_of,
    record_of,
    stream_folder,
    without_outcome,
)
from portbook.audit.log_writer import ENVELOPE_STREAM
from portbook.cli.audit_filters import status_of
from portbook.cli.audit_formats import in_lines
from portbook.cli.audit_options import audit_options, opened_log, records_of
from portbook.cli.terminal import claim_stdout, fail, print_data
from portbook.escaping import escaped

__all__ = ["verb"]

# More than a record's number ever has; a request id has more.
_MAX_DIGITS: Final = 20

# What the id of a call is called in each stream.
_STREAMS: Final = {EXECUTION_STREAM: "request_id", INTENT_STREAM: "request_id", ENVELOPE_STREAM: "requestId"}


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
        found = {
            stream: [located for located in records_of(root, stream) if located.record.get(name) == request]
            for stream, name in _STREAMS.items()
        }
        outcome = _outcome(root, found)
    if not any(found.values()):
        raise fail(f"there is no record of {escaped(identifier)}; `portbook audit tail` shows the newest")
    data: dict[str, Any] = {"request_id": request, "outcome": outcome}
    words = [f"outcome: {outcome}"]
    for stream, records in found.items():
        data[stream] = [located._asdict() for located in records]
        for located in records:
            words += [f"{stream}: {escaped(located.file)}:{located.line}", *in_lines(located.record)]
    print_data(data, words, out, is_json=is_json)


def _request_id(root: Path, identifier: str) -> str:
    """Return the request id that `identifier` stands for: a number is a record of the newest run."""
    newest = files_in(stream_folder(root, EXECUTION_STREAM))[-1:]
    if newest and len(identifier) < _MAX_DIGITS and identifier.isdecimal():
        for record in map(record_of, lines_of(newest[0])):
            if record is not None and record.get("seq") == int(identifier):
                return str(record.get("request_id"))
    return identifier


def _outcome(root: Path, found: dict[str, list[Located]]) -> str:
    """Return the outcome of the call, as far as it is known; where an id repeats, of the last call."""
    intents = stream_folder(root, INTENT_STREAM)
    without = [
        located
        for located in without_outcome(intents, stream_folder(root, EXECUTION_STREAM))
        if located in found[INTENT_STREAM]
    ]
    if without and is_written_to(intents / without[-1].file):
        return "running"
    if without or not found[EXECUTION_STREAM]:
        return "unknown"
    return status_of(found[EXECUTION_STREAM][-1].record)
