"""Every record of one call, from all streams, and its outcome as far as it is known."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from portbook.audit.journal import BASIS_STREAM, ENVELOPE_STREAM, EXECUTION_STREAM, INTENT_STREAM
from portbook.audit.log_reader_and_follower import (
    Located,
    files_in,
    is_written_to,
    lines_of,
    record_of,
    stream_folder,
    without_outcome,
)
from portbook.model import JSONObject

__all__ = ["basis_of", "call_data", "outcome_of", "records_of_call", "request_id_of"]

# More than a record's number ever has; a request id has more.
_MAX_DIGITS: Final = 20

# What the id of a call is called in each stream.
_STREAMS: Final = {EXECUTION_STREAM: "request_id", INTENT_STREAM: "request_id", ENVELOPE_STREAM: "requestId"}


def records_of_call(log_dir: Path, request_id: str) -> dict[str, list[Located]]:
    """Return the records with this id, by stream; empty lists where there are none.

    Raises `OSError` where a file cannot be read.
    """
    return {
        stream: _found(stream_folder(log_dir, stream), member, request_id)
        for stream, member in _STREAMS.items()
    }


def request_id_of(log_dir: Path, identifier: str) -> str:
    """Return the request id that `identifier` stands for: a number is a record of the newest run.

    Raises `OSError` where a file cannot be read.
    """
    newest = files_in(stream_folder(log_dir, EXECUTION_STREAM))[-1:]
    if newest and len(identifier) < _MAX_DIGITS and identifier.isdecimal():
        for record in map(record_of, lines_of(newest[0])):
            if record is not None and record.get("seq") == int(identifier):
                return str(record.get("request_id"))
    return identifier


def basis_of(log_dir: Path, found: dict[str, list[Located]]) -> JSONObject | None:
    """Return the line that says what the basis of a call's last record is made of, if there is one.

    Raises `OSError` where a file cannot be read.
    """
    for located in found[EXECUTION_STREAM][-1:]:
        path = stream_folder(log_dir, BASIS_STREAM) / located.file
        for record in map(record_of, lines_of(path)) if path.exists() else ():
            if record is not None and record.get("basis") == located.record.get("basis"):
                return record
    return None


def outcome_of(log_dir: Path, found: dict[str, list[Located]]) -> str:
    """Return the outcome of a call, as far as it is known; where an id repeats, of the last call.

    Raises `OSError` where a file cannot be read.
    """
    intents = stream_folder(log_dir, INTENT_STREAM)
    without = [
        located
        for located in without_outcome(intents, stream_folder(log_dir, EXECUTION_STREAM))
        if located in found[INTENT_STREAM]
    ]
    if without and is_written_to(intents / without[-1].file):
        return "running"
    if without or not found[EXECUTION_STREAM]:
        return "unknown"
    return "failure" if "error_class" in found[EXECUTION_STREAM][-1].record else "success"


def call_data(
    request_id: str, found: dict[str, list[Located]], outcome: str, basis: JSONObject | None = None
) -> dict[str, Any]:
    """Return all of it as JSON."""
    records = {stream: [located._asdict() for located in located_in] for stream, located_in in found.items()}
    return {"request_id": request_id, "outcome": outcome, **records, "basis": basis}


def _found(folder: Path, member: str, request_id: str) -> list[Located]:
    """Return the records of a stream that have the id; most lines need not be parsed for that."""
    mark = request_id.encode()
    found: list[Located] = []
    for path in files_in(folder):
        for number, line in enumerate(lines_of(path), 1):
            if mark in line and line.endswith(b"\n"):
                record = record_of(line)
                if record is not None and record.get(member) == request_id:
                    found.append(Located(path.name, number, record))
    return found
