"""A log of records as a server leaves it, and `portbook audit` on it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from portbook.audit.journal import ChainedSink, JsonlSink
from portbook.canonical import json_bytes
from support import forked_process
from support.portbook_process import PORTBOOK, Finished, environment, run

IDS = [f"{number}0000000-0000-4000-a000-000000000000" for number in range(10)]


def record(number: int, **members: Any) -> dict[str, Any]:
    return {
        "timestamp": f"2026-01-02T03:04:{number:02d}.000Z",
        "session_id": None,
        "request_id": IDS[number],
        "tool_id": "mcp.tool:orders.refund",
        "status_code": 200,
        "latency_ms": 1.5,
        "redaction_applied": False,
        "decision": "allow",
        **members,
    }


class Log:
    """What a server leaves behind: one run, or several."""

    def __init__(self, log_dir: Path) -> None:
        self.log_dir = log_dir
        self._opened: list[JsonlSink] = []
        self.executions: list[ChainedSink] = []
        self._day = 0

    def new_run(self) -> None:
        self._day += 1
        names: dict[str, Any] = {"started": f"2026-01-{self._day:02d}T00:00:00.000Z", "run": "r", "keep": 50}
        self.execution = ChainedSink(self.log_dir, "execution", **names)
        self.intent = ChainedSink(self.log_dir, "intent", **names)
        self.envelope = JsonlSink(self.log_dir, "envelope_validation", **names)
        self.executions.append(self.execution)
        self._opened += [self.execution, self.intent, self.envelope]

    def write(self, *numbers: int, **members: Any) -> None:
        for number in numbers:
            self.execution.write(json_bytes(record(number, **members)))
            self.envelope.write(
                json_bytes({"requestId": IDS[number], "status": "ok", "metadata": {"toolId": "t"}})
            )

    def end(self) -> None:
        while self._opened:
            self._opened.pop().close()

    def audit(self, *arguments: str, code: int = 0) -> Finished:
        finished = run(
            "audit", arguments[0], "--log-dir", str(self.log_dir), *arguments[1:], cwd=self.log_dir
        )
        assert finished.code == code, finished.err
        return finished

    def on_a_terminal(self, *arguments: str) -> str:
        controller, terminal = os.openpty()
        forked_process.run(
            [*PORTBOOK, "audit", arguments[0], "--log-dir", str(self.log_dir), *arguments[1:]],
            stdout=terminal,
            env=environment(NO_COLOR="1"),
            check=False,
            timeout=60,
        )
        os.close(terminal)
        shown = os.read(controller, 65536).decode()
        os.close(controller)
        return shown.replace("\r\n", "\n")
