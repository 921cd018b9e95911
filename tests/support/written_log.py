"""A log folder that a test writes as running processes do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from portbook.audit.call_index_filters_and_figures import CallRow

__all__ = ["WrittenLog", "at", "ids"]


def at(second: float) -> str:
    return f"2026-01-31T09:00:{second:06.3f}Z"


class WrittenLog:
    """A log folder that a test writes as processes do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0

    def add(self, second: float, *, file: str = "a.jsonl", door: str = "stdio", **members: Any) -> str:
        self._count += 1
        request = f"r{self._count}"
        record = {"seq": self._count, "timestamp": at(second), "request_id": request, "latency_ms": 1.5}
        self._write("execution", file, {**record, "tool_id": "mcp.tool:echo", "status_code": 200, **members})
        self._write("envelope_validation", file, {"requestId": request, "transport": door, "route": "/rpc"})
        return request

    def _write(self, stream: str, file: str, record: dict[str, Any]) -> None:
        folder = self.folder / "mcp_server" / stream
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / file).open("a") as out:
            out.write(json.dumps(record) + "\n")


def ids(rows: list[CallRow]) -> list[str]:
    return [row.request_id for row in rows]
