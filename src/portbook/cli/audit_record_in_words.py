"""Records of the execution log in words, as `portbook audit` prints them: one line, a list of members."""

from __future__ import annotations

import json
from collections.abc import Iterator

from portbook.escaping import escaped
from portbook.model import JSON, JSONObject

__all__ = ["in_a_line", "in_lines"]


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
