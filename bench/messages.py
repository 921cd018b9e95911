"""The messages that are sent, and the answers that have to come back."""

from __future__ import annotations

__all__ = ["answers", "messages"]


def messages(count: int) -> list[bytes]:
    """Return `count` calls of the echo tool, each a line and no two alike."""
    return [
        b'{"jsonrpc":"2.0","id":%d,"method":"mcp.tool.invoke",'
        b'"params":{"tool":"mcp.tool:echo","input":{"text":"message %d"}}}\n' % (number, number)
        for number in range(1, count + 1)
    ]


def answers(count: int) -> list[bytes]:
    """Return what the first `count` messages have to be answered with, byte for byte."""
    return [
        b'{"jsonrpc":"2.0","id":%d,"result":{"text":"message %d"}}\n' % (number, number)
        for number in range(1, count + 1)
    ]
