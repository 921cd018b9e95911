"""The server behind gateways: the floor with one tool in its list, so that the gateway is measured."""

import orjson
from bare_loop import answer, main

_TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
_ECHO = {
    "name": "echo",
    "description": "Say it again.",
    "inputSchema": _TEXT,
    "outputSchema": _TEXT,
    "annotations": {"readOnlyHint": True},
}


def answered(message: dict) -> bytes | None:
    """Return the answer of a server of the handshake era that has one tool."""
    method, identifier = message.get("method"), message.get("id")
    if method == "tools/call" or identifier is None:
        return answer(message)
    if method == "initialize":
        result = {
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "fast", "version": "1"},
        }
    elif method in ("tools/list", "ping"):
        result = {"tools": [_ECHO]} if method == "tools/list" else {}
    else:
        error = {"code": -32601, "message": "Method not found"}
        return orjson.dumps({"jsonrpc": "2.0", "id": identifier, "error": error})
    return orjson.dumps({"jsonrpc": "2.0", "id": identifier, "result": result})


if __name__ == "__main__":
    main(answered)
