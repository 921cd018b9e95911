"""An MCP server over standard streams whose definitions are a file, which a test changes while it runs.

It reads the file for every list, says that its lists have changed whenever the file has, and appends the name
of every tool that is called to a second file, and a line for each start to a third. A call with the argument
`a` set to `end` ends it. With `silent` as its second argument, it does not say that its lists have changed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
DEFINITIONS = FOLDER / "definitions.json"
_writing = threading.Lock()


def send(message: dict[str, Any]) -> None:
    with _writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def note(name: str, line: str) -> None:
    with (FOLDER / name).open("a") as file:
        file.write(line + "\n")


def watch() -> None:
    before = DEFINITIONS.read_bytes()
    while True:
        time.sleep(0.02)
        now = DEFINITIONS.read_bytes()
        if now != before:
            before = now
            send({"method": "notifications/tools/list_changed"})


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    offered: dict[str, Any] = json.loads(DEFINITIONS.read_bytes())
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}, "prompts": {}, "resources": {}}
        about = {"name": "changing", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": about}
        words = offered.get("instructions")
        return {**result, "instructions": words} if words else result
    if method in ("tools/list", "prompts/list", "resources/list"):
        member = method.partition("/")[0]
        return {member: offered.get(member, [])}
    if method == "resources/templates/list":
        return {"resourceTemplates": []}
    if method == "tools/call":
        note("calls", params["name"])
        if params.get("arguments") == {"a": "end"}:
            os._exit(1)
        return {"content": [{"type": "text", "text": f"{params['name']} ran"}]}
    return {} if method == "ping" else None


def main() -> None:
    note("starts", "started")
    if "silent" not in sys.argv:
        threading.Thread(target=watch, daemon=True).start()
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answer(message.get("method"), message.get("params") or {})
        if result is None:
            send({"id": message["id"], "error": {"code": -32601, "message": "Method not found"}})
        else:
            send({"id": message["id"], "result": result})


main()
