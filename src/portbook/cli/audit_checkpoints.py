"""`portbook audit checkpoints`: the checkpoints of the store, for an auditor who gets files alone."""

from __future__ import annotations

from pathlib import Path

import click

from portbook.audit.checkpoint import CheckpointBody, CoveredRecords, as_line
from portbook.cli.audit_options import checkpoints_of
from portbook.cli.options import START_ERRORS, config_option, json_option, settings_from
from portbook.cli.output_and_errors import claim_stdout, print_data, stop_with
from portbook.escaping import escaped

__all__ = ["verb"]


@click.command("checkpoints")
@config_option
@json_option()
def verb(*, config: Path | None, is_json: bool) -> None:
    """Print every checkpoint with what it covers, oldest first.

    `portbook audit verify --checkpoints FILE` verifies collected records against it.
    """
    out = claim_stdout()
    try:
        for covered in checkpoints_of(settings_from(config), None):
            print_data(as_line(covered), [_in_words(covered)], out, is_json=is_json)
    except BrokenPipeError:  # the reader of our output has closed it
        raise
    except (*START_ERRORS, OSError) as error:
        raise stop_with(error) from None


def _in_words(covered: CoveredRecords) -> str:
    row, segments = covered.checkpoint, covered.segments
    body = CheckpointBody.read(row)
    records = sum(each.last - each.first + 1 for each in segments)
    at = "altered" if body is None else escaped(body.at)
    signed = "signed" if row.signature else "not signed"
    return f"{row.number}:{escaped(row.hash)}  {at}  {records} records in {len(segments)} files  {signed}"
