"""`portbook audit tail`: print the newest records, and follow the log."""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path
from typing import Final, TextIO

import click

from portbook.audit.journal import EXECUTION_STREAM
from portbook.audit.log_reader import Follower, files_in, lines_from_end, record_of, stream_folder
from portbook.cli.audit_options import audit_options, opened_log
from portbook.cli.audit_record_in_words import in_a_line
from portbook.cli.output_and_errors import claim_stdout, print_data
from portbook.model import JSONObject

__all__ = ["verb"]

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
def verb(count: int, *, follow: bool, log_dir: Path | None, config: Path | None, is_json: bool) -> None:
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
        lines = list(islice(lines_from_end(path), count))
        newest += [record for line in reversed(lines) if (record := record_of(line))]
    newest.sort(key=lambda record: str(record.get("timestamp")))
    return newest[max(len(newest) - count, 0) :]


def _print_records(records: list[JSONObject], out: TextIO, *, is_json: bool) -> None:
    for record in records:
        print_data(record, [in_a_line(record)], out, is_json=is_json)
    out.flush()
