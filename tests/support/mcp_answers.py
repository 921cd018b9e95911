"""What a client that can be asked anything declares and answers."""

from __future__ import annotations

from typing import Any

ALL = {"elicitation": {}, "sampling": {}, "roots": {}}
SAMPLED = {
    "role": "assistant",
    "content": {"type": "text", "text": "Paris"},
    "model": "m",
    "stopReason": "endTurn",
}

# What is asked for, by method, and what a client answers.
ANSWERS: dict[str, Any] = {
    "elicitation/create": {"action": "accept", "content": {"name": "Alice", "ok": True, "color": "blue"}},
    "sampling/createMessage": SAMPLED,
    "roots/list": {"roots": [{"uri": "file:///work", "name": "work"}]},
}
