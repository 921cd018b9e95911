"""Records of the execution log as `portbook audit` prints them: one line, a list of members, CSV."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import Final, TextIO

from portbook.escaping import escaped, escaped_json, escaped_lines
from portbook.model import JSON, JSONObject

__all__ = ["COLUMNS", "CsvWriter", "in_a_line", "in_lines"]

COLUMNS: Final = (
    *("seq", "prev", "timestamp", "session_id", "trace_id", "request_id", "tool_id", "endpoint", "domain"),
    *("method", "agent_step", "attempt", "status_code", "latency_ms", "error_class", "redaction_applied"),
    *("decision", "rule", "caller", "approval_id", "effect", "input_bytes", "output_bytes"),
    *("arguments", "hash", "record_version", "basis"),
)

# A spreadsheet runs a cell that begins so as a formula; the last four are full-width forms of the first.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")


def in_a_line(record: JSONObject) -> str:
    """Return the main members of a record on one line."""
    parts = [
        _shown(record.get("timestamp")),
        _shown(record.get("status_code")).rjust(3),
        _shown(record.get("tool_id")).removeprefix("mcp.tool:"),
        _shown(record.get("error_class") or (None if record.get("status_code") is None else "OK")),
        f"{_shown(record.get('latency_ms'))} ms",
        _shown(record.get("decision")),
        _shown(record.get("caller")),
        _shown(record.get("request_id")),
    ]
    return "  ".join(parts)


def in_lines(record: JSONObject) -> Iterator[str]:
    """Yield one line for each member of a record, and for each member of an object in it."""
    for name, value in _flat(record, ""):
        yield f"  {escaped(name, 64)}: {_shown(value)}"


class CsvWriter:
    """Writes records as CSV: a header, then a row each."""

    def __init__(self, out: TextIO) -> None:
        self._writer = csv.writer(out, lineterminator="\n")
        self._writer.writerow(COLUMNS)

    def write(self, record: JSONObject) -> None:
        """Write one record."""
        self._writer.writerow([_cell(record.get(name)) for name in COLUMNS])


def _cell(value: JSON) -> str | float:
    """Return a value as a cell that no spreadsheet runs as a formula."""
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        return escaped_json(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    text = escaped_lines(value)
    return f"'{text}" if value.startswith(_FORMULA) else text


def _flat(value: JSONObject, prefix: str) -> Iterator[tuple[str, JSON]]:
    for name, item in value.items():
        if isinstance(item, dict) and item:
            yield from _flat(item, f"{prefix}{name}.")
        else:
            yield prefix + name, item


def _shown(value: JSON) -> str:
    if value is None:
        return "-"
    return escaped(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
