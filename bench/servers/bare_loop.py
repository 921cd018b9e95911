"""The floor: an MCP server that answers, and does nothing else. It checks nothing and records nothing.

Reads and writes in batches. Whatever a call costs here, no server in Python can save.
"""

import os
from collections.abc import Callable

import orjson

__all__ = ["answer", "main"]

_CHUNK = 1 << 16


def main(answered: "Callable[[dict], bytes | None] | None" = None) -> None:
    """Answer every line of standard input until it ends, with `answer` unless told otherwise."""
    respond, tail = answered or answer, b""
    while chunk := os.read(0, _CHUNK):
        *lines, tail = (tail + chunk).split(b"\n")
        answers = [found for line in lines if (found := respond(orjson.loads(line))) is not None]
        if answers:
            _write_all(b"\n".join(answers) + b"\n")


def answer(message: dict) -> bytes | None:
    """Return the answer to one message, None where it needs none."""
    if "id" not in message:
        return None
    params = message["params"]
    if message["method"] == "initialize":
        about = {"name": "bare", "version": "1"}
        result = {"protocolVersion": params["protocolVersion"], "capabilities": {}, "serverInfo": about}
    else:
        echo = {"text": params["arguments"]["text"]}
        content = [{"type": "text", "text": orjson.dumps(echo).decode()}]
        result = {"content": content, "structuredContent": echo}
    return orjson.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result})


def _write_all(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


if __name__ == "__main__":
    main()
