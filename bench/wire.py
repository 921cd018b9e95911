"""What is sent, and whether the answers are right, for each wire contract."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias

from bench.child import WrongAnswer

__all__ = ["REVISION", "Dialect", "check", "check_texts", "frames", "greeting", "initialized", "message"]

REVISION: Final = "2025-11-25"

Dialect: TypeAlias = Literal["mcp", "envelope", "bare"]


def message(method: str, identifier: int, params: dict[str, Any]) -> bytes:
    """Return one JSON-RPC request, without a line end."""
    request = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": params}
    return json.dumps(request, separators=(",", ":")).encode()


def greeting(revision: str = REVISION) -> bytes:
    """Return the request that a connection of the handshake era begins with."""
    client = {"name": "bench", "version": "1"}
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": client}
    return message("initialize", 0, params)


def initialized() -> bytes:
    """Return the notification that follows."""
    return b'{"jsonrpc":"2.0","method":"notifications/initialized"}'


def _call(dialect: Dialect, tool: str, meta: dict[str, Any]) -> Callable[[int, dict[str, Any]], bytes]:
    extra = {"_meta": meta} if meta else {}
    if dialect == "mcp":
        return lambda number, given: message("tools/call", number, {"name": tool, "arguments": given} | extra)
    if dialect == "envelope":
        named = f"mcp.tool:{tool}"
        return lambda number, given: message(
            "mcp.tool.invoke", number, {"tool": named, "input": given} | extra
        )
    return lambda number, given: message(tool, number, given | extra)


def frames(
    dialect: Dialect,
    tool: str,
    numbers: Sequence[int],
    *,
    meta: dict[str, Any] | None = None,
    items: Sequence[str] | None = None,
) -> list[bytes]:
    """Return one call for each number: an echo of `message <number>`, or of `items` and that."""
    call = _call(dialect, tool, meta or {})
    if items is None:
        return [call(number, {"text": f"message {number}"}) for number in numbers]
    return [call(number, {"items": [*items, f"message {number}"]}) for number in numbers]


def check_texts(answers: Sequence[bytes], numbers: Sequence[int]) -> None:
    """Check that answers without an id are the echoes of all numbers, in any order.

    Raises `WrongAnswer` otherwise.
    """
    texts = sorted(json.loads(answer)["result"]["text"] for answer in answers)
    if texts != sorted(f"message {number}" for number in numbers):
        raise WrongAnswer("a call was not answered with its echo")


def check(answers: bytes, numbers: Sequence[int]) -> None:
    """Check that there is one answer for each number, in any order, and that each is its echo.

    Raises `WrongAnswer` otherwise.
    """
    left = set(numbers)
    for line in answers.splitlines():
        answer = json.loads(line)
        number = answer.get("id")
        if "error" in answer or number not in left or b"message %d" % number not in line:
            raise WrongAnswer(f"a call was not answered with its echo: {line[:300].decode(errors='replace')}")
        left.remove(number)
    if left:
        raise WrongAnswer(f"{len(left)} calls were not answered")
