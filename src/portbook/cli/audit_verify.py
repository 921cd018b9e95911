"""`portbook audit verify`: whether a record was changed, removed or added after it was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import click

from portbook.audit.chain import ChainVerdict, Head, verify
from portbook.audit.journal import EXECUTION_STREAM, INTENT_STREAM
from portbook.audit.log_reader import (
    Located,
    files_in,
    is_written_to,
    lines_of,
    stream_folder,
    without_outcome,
)
from portbook.cli.audit_formats import in_a_line
from portbook.cli.audit_options import audit_options, opened_log
from portbook.cli.exit_codes import ExitCode
from portbook.cli.terminal import claim_stdout, print_data
from portbook.escaping import escaped

__all__ = ["verb"]

_STREAMS: Final = (EXECUTION_STREAM, INTENT_STREAM)

# At most this many calls without an outcome are listed; only many crashes leave more.
_MAX_NAMED: Final = 100


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
        verdicts = {
            stream: _verified(
                stream_folder(settings.log_dir, stream),
                settings.keep_runs,
                [head for of, head in heads if of == stream],
            )
            for stream in _STREAMS
        }
        unknown = _unknown(settings.log_dir)
    is_whole = all(verdict.broken is None for verdict in verdicts.values())
    data = {
        "whole": is_whole,
        "streams": [_as_data(stream, verdict) for stream, verdict in verdicts.items()],
        "unknown": [_as_place(located) for located in unknown],
    }
    words = [_in_words(stream, verdict) for stream, verdict in verdicts.items()]
    words += [f"unknown: {in_a_line(located.record)}" for located in unknown]
    print_data(data, words, out, is_json=is_json)
    if not is_whole:
        raise click.exceptions.Exit(ExitCode.FAILURE)


def _noted(text: str) -> tuple[str, Head]:
    stream, _, rest = text.partition("/")
    head = Head.read(rest)
    if head is None or stream not in _STREAMS:
        raise click.UsageError("--head must be STREAM/FILE#SEQ:HASH, as verify prints it")
    return stream, head


def _verified(folder: Path, keep: int, heads: list[Head]) -> ChainVerdict:
    return verify({path.name: _opener(path) for path in files_in(folder)}, keep, heads)


def _opener(path: Path) -> Callable[[], Iterator[bytes]]:
    return lambda: lines_of(path)


def _unknown(log_dir: Path) -> list[Located]:
    """Return the intents of calls whose process died."""
    intents = stream_folder(log_dir, INTENT_STREAM)
    found = without_outcome(intents, stream_folder(log_dir, EXECUTION_STREAM))
    return [located for located in found if not is_written_to(intents / located.file)][:_MAX_NAMED]


def _as_data(stream: str, verdict: ChainVerdict) -> dict[str, Any]:
    broken = verdict.broken
    return {
        "stream": stream,
        "whole": broken is None,
        "files": verdict.files,
        "records": verdict.records,
        "head": None if verdict.head is None else f"{stream}/{verdict.head}",
        "heads": [f"{stream}/{head}" for head in verdict.heads],
        "pruned": verdict.is_pruned,
        "cut": list(verdict.cut),
        "broken": None
        if broken is None
        else {
            "file": broken.file,
            "line": broken.line,
            "seq": broken.seq,
            "problem": broken.problem,
            "message": broken.sentence,
        },
    }


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


def _as_place(located: Located) -> dict[str, Any]:
    named = {name: located.record.get(name) for name in ("request_id", "tool_id", "timestamp")}
    return {"file": located.file, "line": located.line, **named}
