"""`portbook audit verify`: whether a record was changed, removed or added after it was written."""

from __future__ import annotations

from pathlib import Path

import click

from portbook.audit.chain import ChainVerdict, Head
from portbook.audit.verified_log import CHAINED_STREAMS, lost_calls, proof_data, verified_streams
from portbook.cli.audit_formats import in_a_line
from portbook.cli.audit_options import audit_options, opened_log
from portbook.cli.exit_codes import ExitCode
from portbook.cli.terminal import claim_stdout, print_data
from portbook.escaping import escaped

__all__ = ["verb"]


@click.command("verify")
@click.option(
    "--head",
    "noted",
    metavar="STREAM/FILE#SEQ:HASH",
    multiple=True,
    help="A record that must still exist: the newest one of an earlier verify. Repeatable.",
)
@audit_options
def verb(noted: tuple[str, ...], *, log_dir: Path | None, config: Path | None, is_json: bool) -> None:
    """Verify that no record was changed, removed or added since it was written; exit with 1 if one was.

    A call whose process died has only an intent on record; it is listed as unknown.
    """
    heads = [_noted(text) for text in noted]
    out = claim_stdout()
    with opened_log(config, log_dir) as settings:
        verdicts = verified_streams(settings.log_dir, settings.keep_runs, heads)
        lost = lost_calls(settings.log_dir)
    data = proof_data(verdicts, lost)
    words = [_in_words(stream, verdict) for stream, verdict in verdicts.items()]
    words += [f"unknown: {in_a_line(located.record)}" for located in lost]
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


def _count(number: int, noun: str) -> str:
    return f"{number} {noun if number == 1 else noun + 's'}"
