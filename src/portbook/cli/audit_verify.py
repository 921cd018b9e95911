"""`portbook audit verify`: whether a record was changed, removed or added after it was written."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from portbook.audit.chain import Head
from portbook.audit.chain_verification import ChainVerdict
from portbook.audit.checkpoint_and_log_verification import (
    CHAINED_STREAMS,
    CheckpointVerdict,
    CoveredLog,
    lost_calls,
    proof_data,
    verified_streams,
    verify_checkpoints,
    written_files,
)
from portbook.audit.checkpoints_made_and_stored import log_name
from portbook.cli.audit_options import (
    audit_options,
    checkpoint_options,
    checkpoints_of,
    marks_of,
    opened_log,
    trusted_keys,
)
from portbook.cli.audit_record_in_words import in_a_line
from portbook.cli.exit_codes import ExitCode
from portbook.cli.output_and_errors import claim_stdout, print_data
from portbook.escaping import escaped

__all__ = ["verb"]

_UNKNOWN: Final = "unknown, check what it did before you repeat it"


@click.command("verify")
@click.option(
    "--head",
    "noted",
    metavar="STREAM/FILE#SEQ:HASH",
    multiple=True,
    help="A record that must still exist: the newest one of an earlier verify. Repeatable.",
)
@click.option(
    "--checkpoints",
    "exported",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="What `audit checkpoints` printed, for files of one or several machines.  [default: the store's]",
)
@checkpoint_options
@audit_options
def verb(
    noted: tuple[str, ...],
    *,
    exported: Path | None,
    marks: tuple[str, ...],
    public_keys: tuple[Path, ...],
    log_dir: Path | None,
    config: Path | None,
    is_json: bool,
) -> None:
    """Verify that no record was changed, removed or added since it was written; exit with 1 if one was.

    Checkpoints show whether records were cut off at the end, and whether a file was removed. A call whose
    process died has only an intent on record; it is listed as unknown.
    """
    heads, known, keys = [_noted(text) for text in noted], marks_of(marks), trusted_keys(public_keys)
    out = claim_stdout()
    with opened_log(config, log_dir) as settings:
        covered = checkpoints_of(settings, exported)  # before the records, which grow meanwhile
        checked = verify_checkpoints(covered, known, keys)
        name = log_name(settings.log_dir, spans_machines=settings.store_url is not None)
        log = CoveredLog(covered, None if exported else name, written_files(settings.log_dir))
        verdicts = verified_streams(settings.log_dir, settings.keep_runs, heads, log)
        lost = lost_calls(settings.log_dir)
    uncovered = log.uncovered_in(verdicts)
    data = proof_data(verdicts, lost, checked, uncovered)
    words = [_in_words(stream, verdict) for stream, verdict in verdicts.items()]
    words.append(_of_checkpoints(checked, uncovered))
    words += [f"{_UNKNOWN}: {in_a_line(located.record)}" for located in lost]
    print_data(data, words, out, is_json=is_json)
    if not data["whole"]:
        raise click.exceptions.Exit(ExitCode.FAILURE)


def _noted(text: str) -> tuple[str, Head]:
    stream, _, rest = text.partition("/")
    head = Head.read(rest)
    if head is None or stream not in CHAINED_STREAMS:
        raise click.UsageError("--head must be STREAM/FILE#SEQ:HASH, as verify prints it")
    return stream, head


def _in_words(stream: str, verdict: ChainVerdict) -> str:
    if broken := verdict.broken:
        number = "a line" if broken.seq is None else f"record {broken.seq}"
        where = f"{escaped(broken.file)}:{broken.line}"
        return f"{stream}: broken: {where}: {number} {escaped(broken.sentence, 512)} ({broken.problem})"
    counts = f"{_count(verdict.records, 'record')} in {_count(verdict.files, 'file')}"
    pruned = "; older files were pruned" if verdict.is_pruned else ""
    cut = f"; {_count(len(verdict.cut), 'file')} cut by a kill" if verdict.cut else ""
    head = f"; newest {stream}/{escaped(str(verdict.head), 512)}" if verdict.head else ""
    return f"{stream}: whole: {counts}{pruned}{cut}{head}"


def _of_checkpoints(verdict: CheckpointVerdict, uncovered: int) -> str:
    if broken := verdict.broken:
        return f"checkpoints: broken: checkpoint {broken.number} {broken.sentence} ({broken.problem})"
    if verdict.newest is None:
        return "checkpoints: none; nothing but the chain vouches for the newest records"
    signed = f"; signed by {escaped(verdict.signed_by)}" if verdict.signed_by else ""
    rest = f"; {_count(uncovered, 'record')} not covered" if uncovered else ""
    return f"checkpoints: whole: newest {verdict.newest} at {verdict.at}{signed}{rest}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun if number == 1 else noun + 's'}"
