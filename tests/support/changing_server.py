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

# Tests start it often, and `pathlib` and `typing` take a third of a start.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDER = sys.argv[1]
DEFINITIONS = f"{FOLDER}/definitions.json"
_writing = threading.Lock()


def send(message: dict[str, Any]) -> None:
    with _writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def note(name: str, line: str) -> None:
    with open(f"{FOLDER}/{name}", "a") as file:  # noqa: PTH123 - see above
        file.write(line + "\n")


def definitions() -> bytes:
    with open(DEFINITIONS, "rb") as file:  # noqa: PTH123 - likewise
        return file.read()


def stamp() -> tuple[int, int, int]:
    found = os.stat(DEFINITIONS)  # noqa: PTH116 - likewise
    return found.st_ino, found.st_mtime_ns, found.st_size


def watch() -> None:
    stamped, before = stamp(), definitions()
    while True:
        time.sleep(0.02)
        if (at := stamp()) == stamped:
            continue
        stamped, now = at, definitions()
        if now != before:
            before = now
            send({"method": "notifications/tools/list_changed"})


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    offered: dict[str, Any] = json.loads(definitions())
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
