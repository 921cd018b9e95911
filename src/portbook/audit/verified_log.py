"""Whether the log of a folder is whole: the chain of each stream, and the calls that have no outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

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

__all__ = ["CHAINED_STREAMS", "lost_calls", "proof_data", "verified_streams"]

CHAINED_STREAMS: Final = (EXECUTION_STREAM, INTENT_STREAM)

# At most this many calls without an outcome are listed; only many crashes leave more.
_MAX_NAMED: Final = 100


def verified_streams(
    log_dir: Path, keep: int, noted: Iterable[tuple[str, Head]] = ()
) -> dict[str, ChainVerdict]:
    """Verify every chained stream; `noted` are records that must still exist, with their stream.

    Raises `OSError` where a file cannot be read.
    """
    heads = list(noted)
    return {
        stream: _verified(stream_folder(log_dir, stream), keep, [head for of, head in heads if of == stream])
        for stream in CHAINED_STREAMS
    }


def lost_calls(log_dir: Path) -> list[Located]:
    """Return the intents of calls whose process died.

    Raises `OSError` where a file cannot be read.
    """
    intents = stream_folder(log_dir, INTENT_STREAM)
    found = without_outcome(intents, stream_folder(log_dir, EXECUTION_STREAM))
    return [located for located in found if not is_written_to(intents / located.file)][:_MAX_NAMED]


def proof_data(verdicts: Mapping[str, ChainVerdict], lost: Iterable[Located]) -> dict[str, Any]:
    """Return what was found, as JSON."""
    return {
        "whole": all(verdict.broken is None for verdict in verdicts.values()),
        "streams": [_as_data(stream, verdict) for stream, verdict in verdicts.items()],
        "unknown": [_as_place(located) for located in lost],
    }


def _verified(folder: Path, keep: int, heads: list[Head]) -> ChainVerdict:
    return verify({path.name: _opener(path) for path in files_in(folder)}, keep, heads)


def _opener(path: Path) -> Callable[[], Iterator[bytes]]:
    return lambda: lines_of(path)


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


def _as_place(located: Located) -> dict[str, Any]:
    named = {name: located.record.get(name) for name in ("request_id", "tool_id", "timestamp")}
    return {"file": located.file, "line": located.line, **named}
