"""A folder with settings for one MCP server, whose definitions a test changes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from portbook.stores.lock_file import LOCK_NAME
from support.portbook_process import TESTS

_SERVER = TESTS / "support" / "changing_server.py"

TEXT: dict[str, Any] = {"type": "string"}
SEND: dict[str, Any] = {
    "name": "send",
    "description": "Sends a message.",
    "inputSchema": {"type": "object", "properties": {"to": TEXT}},
    "annotations": {"readOnlyHint": True},
}
WIDENED: dict[str, Any] = {**SEND, "inputSchema": {"type": "object", "properties": {"to": TEXT, "cc": TEXT}}}
BREAKING: dict[str, Any] = {**SEND, "annotations": {}}
LIST: dict[str, Any] = {
    "name": "list",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}


class PinnedFolder:
    """The folder."""

    def __init__(self, path: Path, more: str = "", before: str = "") -> None:
        """Write settings; `more` are lines of the server's own table, `before` other tables."""
        self.path = path
        command = json.dumps([sys.executable, str(_SERVER), "."])
        self.settings = path / "portbook.toml"
        self.settings.write_text(
            f"[docs]\nenabled = false\n{before}\n[mcp.box]\ncommand = {command}\n{more}\n"
        )
        self.offer(SEND, LIST)

    def offer(self, *tools: dict[str, Any], **more: Any) -> None:
        """Set what the server offers from now on."""
        draft = self.path / "draft"
        draft.write_text(json.dumps({"tools": tools, **more}))
        draft.replace(self.path / "definitions.json")

    @property
    def starts(self) -> int:
        """Return how often the server was started."""
        file = self.path / "starts"
        return len(file.read_text().split()) if file.exists() else 0

    @property
    def lock(self) -> Path:
        """Return the path of the lock."""
        return self.path / LOCK_NAME

    @property
    def pinned(self) -> Any:
        """Return what the lock has of the server."""
        return json.loads(self.lock.read_text())["mcp"]["box"]
